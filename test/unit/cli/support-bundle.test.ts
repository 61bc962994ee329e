import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import type { Json } from '../../../src/base/json.ts'
import { completeConfig, redactConfig, secretTexts } from '../../../src/config/options.ts'
import type { BundleSource } from '../../../src/cli/verbs/support-bundle.ts'
import { readLogs, makeBundle } from '../../../src/cli/verbs/support-bundle.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const unpack = (
  sources: readonly BundleSource[],
  secrets: readonly Json[] = [],
  settings: readonly string[] = [],
): string => gunzipSync(makeBundle(sources, secrets, settings)).toString('utf8')
const json = (content: Json): BundleSource => ({ path: 'state/records/u.json', kind: 'json', content })

const secret = (data: { readonly [key: string]: Json }): Json => ({ apiVersion: 'v1', kind: 'Secret', data })

describe('a support bundle', () => {
  it.each<[string, Json, string]>([
    ['an environment variable', { env: [{ name: 'PASSWORD', value: 'hunter2-env' }] }, 'hunter2-env'],
    ['a header of a probe', { httpHeaders: [{ name: 'X-Key', value: 'hunter2-head' }] }, 'hunter2-head'],
    ['a Secret', secret({ word: base64('hunter2-data') }), 'hunter2-data'],
    ['a Secret that is a number', secret({ pin: base64('123456') }), '123456'],
    ['stringData', { kind: 'Secret', stringData: { word: 'hunter2-text' } }, 'hunter2-text'],
    ['a ConfigMap', { kind: 'ConfigMap', data: { 'app.conf': 'key = hunter2-conf' } }, 'hunter2-conf'],
    [
      'a Secret of a registry',
      secret({
        '.dockerconfigjson': base64(JSON.stringify({ auths: { r: { auth: base64('u:hunter2-reg') } } })),
      }),
      'hunter2-reg',
    ],
    [
      'the manifest in an annotation',
      { 'kubectl.kubernetes.io/last-applied-configuration': '{"env":[{"name":"A","value":"hunter2-last"}]}' },
      'hunter2-last',
    ],
    [
      'a header of the configuration',
      { staticPodUrlHeader: { Authorization: ['Bearer hunter2-conf'] } },
      'hunter2-conf',
    ],
    ['a URL with a password', { staticPodUrl: 'https://user:hunter2-url@host/pods' }, 'hunter2-url'],
    [
      'a URL of a socket with a token',
      { url: 'unix:///run/agent.sock:/pods?token=hunter2-unix' },
      'hunter2-unix',
    ],
    ['a URL with a token', { staticPodUrl: 'https://host/pods?token=hunter2-query' }, 'hunter2-query'],
  ])('has no value of %s, in its file or in any log', (_title, content, word) => {
    const log: BundleSource = {
      path: 'logs/podd.log',
      kind: 'text',
      content: `probe said: ${word}!\n${base64(word)}\n"${JSON.stringify(JSON.stringify(content))}"\nthe end\n`,
    }
    const bundle = unpack([log, json(content)])
    expect(bundle).not.toContain(word)
    expect(bundle).not.toContain(base64(word))
    expect(bundle).toContain('probe said: <redacted>!')
    expect(bundle).toContain('the end')
  })

  it('has no value of the settings that may not be shown, but for words that occur everywhere', () => {
    const config = {
      ...completeConfig({}),
      values: { TOKEN: 'hunter2-value', PIN: '123456', LEVEL: 'info' },
      staticPodUrlHeader: { Authorization: ['Bearer hunter2-head'] },
    }
    const shown: BundleSource = { path: 'config.json', kind: 'json', content: redactConfig(config) }
    const content = 'info: hunter2-value at https://host/hunter2-value with hunter2-head, 123456\n'
    const bundle = unpack([shown, { path: 'logs/podd.log', kind: 'text', content }], [], secretTexts(config))
    expect(bundle).not.toMatch(/hunter2|123456/u)
    expect(bundle).toContain('info: <redacted> at https://host/<redacted> with <redacted>, <redacted>')
    for (const name of ['TOKEN', 'PIN', 'Authorization']) expect(bundle).toContain(name)
  })

  it('has the log of a podd without systemd', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'podd-log-'))
    const path = join(directory, 'podd.log')
    writeFileSync(path, 'what podd said')
    const logs = await readLogs('/nowhere/root', '/nowhere/run', path)
    rmSync(directory, { recursive: true })
    expect(logs).toContainEqual({ path: 'logs/podd-plain.log', kind: 'text', content: 'what podd said' })
  })

  it('says why it has no log', async () => {
    vi.stubEnv('PATH', '')
    try {
      const logs = await readLogs('/nowhere/root', '/nowhere/run', '/nowhere/podd.log')
      expect(logs.map(({ path }) => path)).toEqual(['logs/podd.log', 'logs/containerd-unit.log'])
      for (const { content } of logs) expect(content).toContain('left out: cannot run journalctl')
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it('has nothing of the credentials of the node, nor what a log writes before an @', () => {
    const config = {
      auths: { 'r.test': { auth: base64('robot:hunter2-node'), identitytoken: 'hunter2-idt' } },
    }
    const content = 'GET https://someone:else@r.test/v2\nrobot hunter2-node hunter2-idt\n'
    const bundle = unpack([{ path: 'logs/podd.log', kind: 'text', content }], [config])
    expect(bundle).not.toMatch(/hunter2|someone|else@/u)
    expect(bundle).toContain('https://<redacted>@r.test/v2')
  })

  it('keeps the words that are needed to read it', () => {
    const env = [
      { name: 'DEBUG', value: 'true' },
      { name: 'PORT', value: '8080' },
    ]
    const content = 'ready: true on port 8080\n'
    const bundle = unpack([json({ env }), { path: 'logs/podd.log', kind: 'text', content }])
    expect(bundle).toContain(content)
    expect(bundle).not.toContain('"value": "8080"')
  })

  it('is bounded, and names what no longer fits', () => {
    const content = 'x'.repeat(10 * 2 ** 20)
    const logs = ['a', 'b', 'c'].map((name): BundleSource => ({
      path: `logs/${name}`,
      kind: 'text',
      content,
    }))
    const long: BundleSource = { path: `state/${'n'.repeat(100)}`, kind: 'text', content: '' }
    const bundle = unpack([...logs, long])
    expect(bundle.length).toBeLessThan(25 * 2 ** 20)
    expect(bundle).toContain(`logs/c (${content.length} bytes)`)
    expect(bundle).toContain('n'.repeat(100))
    expect(bundle).not.toContain('(0 bytes)')
  })
})
