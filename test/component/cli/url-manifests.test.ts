import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli } from '../../support/cli-rig.ts'
import type { CliOutcome } from '../../support/cli-rig.ts'
import { slowness } from '../../support/slowness.ts'

let rig: ApiRig
let server: Server
let url: string
let answer: { readonly code: number; readonly text: string }

beforeEach(async () => {
  rig = await ApiRig.start()
  server = createServer((_request, response) => response.writeHead(answer.code).end(answer.text))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pods`
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await rig[Symbol.asyncDispose]()
})

const manifest = (name: string, image = 'web:1') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'main', image }] },
})
const podd = (...argv: readonly string[]): Promise<CliOutcome> =>
  callCli(argv, { env: { PODD_SOCKET: rig.socketPath } })

describe('manifests at a URL', () => {
  it('are compared with what runs of it: what it no longer gives ends', async () => {
    answer = { code: 200, text: JSON.stringify(manifest('web', 'web:2')) }
    const running = (name: string) => ({
      key: `default/${name}`,
      path: url,
      manifest: manifest(name),
      isPastChange: false,
      isUpToDate: true,
    })
    rig.applied = { ...rig.applied, pods: [running('web'), running('old')] }
    expect(await podd('diff', '-f', url)).toEqual({
      exitCode: 1,
      stdout:
        'update   pod default/web: container main restarts: image web:1 -> web:2\nend      pod default/old\n',
      stderr: '1 to update, 1 to end\n',
    })
  })

  it('are validated with their place, without what may be secret in it', async () => {
    answer = { code: 200, text: 'apiVersion: v1\nkind: Pod\nmetadata: {name: A}\nspec: {}\n' }
    const { exitCode, stdout } = await podd('validate', url.replace('//', '//me:word@'))
    expect(exitCode).toBe(1)
    expect(stdout).toContain(`${url}:3:`)
    expect(stdout).not.toContain('word')
  })

  it.each([
    ['what the server answers', 404, '', 'the server answered 404'],
    ['what is too large', 200, ' '.repeat(10 * 2 ** 20 + 1), 'the answer is larger than 10 MiB'],
  ])('fail with %s', async (_what, code, text, message) => {
    answer = { code, text }
    expect(await podd('validate', url)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `podd: cannot read ${url}: ${message}\n`,
    })
  })

  it('say of an empty answer what a source makes of it', async () => {
    answer = { code: 200, text: '' }
    expect((await podd('validate', url)).stdout).toBe(
      `${url}: the answer is empty: a source takes nothing from it\n`,
    )
  })

  it('have the values of the host where that is asked for', async () => {
    answer = { code: 200, text: JSON.stringify(manifest('web-${SITE}', 'web:${NODE_NAME}')) }
    const config = join(rig.directory, 'config.yaml')
    const head = { apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration', hostnameOverride: 'box' }
    await writeFile(config, JSON.stringify({ ...head, values: { SITE: 'berlin' } }))
    const flags = ['--substitute', '--config', config]
    expect((await podd('diff', '-f', url, ...flags)).stdout).toBe('create   pod default/web-berlin\n')
    expect(await podd('validate', url, ...flags)).toMatchObject({ exitCode: 0 })
    expect((await podd('validate', url)).stdout).toContain('metadata.name')
    answer = { code: 200, text: JSON.stringify(manifest('web', 'web:${SIET}')) }
    expect((await podd('validate', url, ...flags)).stdout).toContain('this host has no value ${SIET}')
  })

  it('have the name of the node that the daemon has, unless a config that is named says another', async () => {
    answer = { code: 200, text: JSON.stringify(manifest('web-${NODE_NAME}')) }
    const unsaid = rig.status
    rig.status = { ...unsaid, nodeName: 'fleet-7' }
    const diff = async (...flags: readonly string[]): Promise<string> =>
      (await podd('diff', '-f', url, '--substitute', ...flags)).stdout
    expect(await diff()).toBe('create   pod default/web-fleet-7\n')
    const config = join(rig.directory, 'config.yaml')
    const head = { apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration' }
    await writeFile(config, JSON.stringify(head))
    expect(await diff('--config', config)).toBe('create   pod default/web-fleet-7\n')
    await writeFile(config, JSON.stringify({ ...head, hostnameOverride: 'box' }))
    expect(await diff('--config', config)).toBe('create   pod default/web-box\n')
    // Of a daemon that doesn't say, and of none, the host's is as good as any.
    rig.status = unsaid
    const own = `create   pod default/web-${hostname().toLowerCase()}\n`
    expect(await diff()).toBe(own)
    const alone = await callCli(['validate', url, '--substitute', '--socket', join(rig.directory, 'none')])
    expect(alone).toMatchObject({ exitCode: 0, stdout: '', stderr: '1 valid pod, 0 errors in 1 file\n' })
  })

  it('have the name of the host where the daemon hangs, which is asked only for that', async () => {
    const socket = join(rig.directory, 'hung.sock')
    let asked = 0
    const hung = createServer(() => void (asked += 1)).listen(socket)
    await once(hung, 'listening')
    const validate = (): Promise<CliOutcome> =>
      callCli(['validate', url, url, '--substitute', '--socket', socket])
    try {
      answer = { code: 200, text: JSON.stringify(manifest('web-${ARCH}', 'web:NODE_NAME')) }
      expect((await validate()).stderr).not.toContain('does not answer')
      expect(asked).toBe(0)
      answer = {
        code: 200,
        text: JSON.stringify(manifest('web-${NODE_NAME}')).replace('$', String.raw`\u0024`),
      }
      const startMs = performance.now()
      expect((await validate()).stderr).toContain(
        `podd: podd at ${socket} does not answer; \${NODE_NAME} is taken to be ${hostname().toLowerCase()}\n`,
      )
      expect(performance.now() - startMs).toBeLessThan(4500 * slowness)
      expect(asked).toBe(1)
    } finally {
      hung.closeAllConnections()
      hung.close()
    }
  })

  it('are applied under the name of the first object', async () => {
    answer = { code: 200, text: JSON.stringify(manifest('web')) }
    const directory = join(rig.directory, 'pods')
    await mkdir(directory)
    rig.applied = { ...rig.applied, manifestDirectory: directory }
    expect((await podd('apply', '-f', url)).exitCode).toBe(0)
    expect(await readFile(join(directory, 'web.yaml'), 'utf8')).toBe(answer.text)
  })

  it('are written and not waited for where the directory is held', async () => {
    answer = { code: 200, text: JSON.stringify(manifest('web')) }
    const directory = join(rig.directory, 'pods')
    await mkdir(directory)
    rig.applied = { ...rig.applied, manifestDirectory: directory }
    const heldSince = '2026-01-01T00:00:00Z'
    rig.status = {
      ...rig.status,
      sources: [{ source: 'file', path: directory, ready: true, pods: 0, heldSince }],
    }
    const told = {
      stdout: 'create   pod default/web\n',
      stderr: `1 to create\npodd: the source file is held: nothing of ${directory} is applied\nThe manifests are written; \`podd resume file\` applies that.\n`,
    }
    expect(await podd('apply', '-f', url, '--wait')).toEqual({ exitCode: 1, ...told })
    expect(await podd('apply', '-f', url)).toEqual({ exitCode: 0, ...told })
  })
})
