import { describe, expect, it } from 'vitest'
import { secretsOfUrl, showUrl } from '../../../src/base/http.ts'
import {
  completeConfig,
  listOptions,
  kubeletConfigOf,
  redactConfig,
  redactValue,
  secretTexts,
} from '../../../src/config/options.ts'

const config = completeConfig({
  staticPodUrl: 'https://user:hunter2-url@host/pods?token=hunter2-query#hunter2-hash',
  staticPodUrlHeader: { Authorization: ['Bearer hunter2-head'] },
  values: { SITE: 'hunter2-value' },
  report: {
    url: 'https://fleet:hunter2-report@fleet.example/report',
    periodMs: 60_000,
    allowHttp: false,
    headers: { 'X-Key': ['hunter2-key'] },
    headerFiles: {},
    caFile: undefined,
    certFile: undefined,
    keyFile: undefined,
  },
  sources: [
    {
      kind: 'http',
      name: 'fleet',
      periodMs: undefined,
      substitute: true,
      url: 'https://hunter2-name@${SITE}.example/pods?key=hunter2%20escaped',
      allowHttp: false,
      headers: { 'X-Key': ['hunter2-other'] },
      headerFiles: { 'X-File': '/etc/podd/key' },
      caFile: undefined,
      certFile: undefined,
      keyFile: undefined,
      push: 'Auto',
      // A setting of a later podd, which nobody has said anything about.
      later: 'hunter2-later',
    },
    {
      kind: 'http',
      name: 'agent',
      periodMs: undefined,
      substitute: false,
      url: 'unix:///run/agent.sock:/pods?key=hunter2-unix',
      allowHttp: false,
      headers: {},
      headerFiles: {},
      caFile: undefined,
      certFile: undefined,
      keyFile: undefined,
      push: 'Auto',
    },
  ],
})

describe('the settings as they are shown', () => {
  it.each(listOptions().map(([key, { secret }]) => [key, secret]))(
    '%s says whether it may be a secret',
    (_, secret) => {
      expect(secret).toBeDefined()
    },
  )

  it('have nothing of an option that does not say so', () => {
    expect(redactValue({}, 'hunter2')).toBe('<redacted>')
  })

  it.each([
    ['in a support bundle', redactConfig(config)],
    ['on the kubelet’s port', kubeletConfigOf(config)],
  ])('have no credential %s', (_, shown) => {
    expect(JSON.stringify(shown)).not.toContain('hunter2')
  })

  it('say what is set', () => {
    expect(kubeletConfigOf(config)).toMatchObject({
      staticPodURL: 'https://host/pods?…',
      staticPodURLHeader: { Authorization: ['<redacted>'] },
      maxPods: 110,
      syncFrequency: '1m',
    })
    expect(redactConfig(config)).toMatchObject({
      values: { SITE: '<redacted>' },
      report: { url: 'https://fleet.example/report', headers: { 'X-Key': ['<redacted>'] }, periodMs: 60_000 },
      sources: [
        {
          name: 'fleet',
          url: 'https://${SITE}.example/pods?…',
          headers: { 'X-Key': ['<redacted>'] },
          headerFiles: { 'X-File': '/etc/podd/key' },
        },
        { name: 'agent', url: 'unix:///run/agent.sock:/pods?…' },
      ],
    })
  })

  it('have all that is hidden in a list, so that it is hidden elsewhere', () => {
    const hidden = secretTexts(config)
    const parts = ['report', 'key', 'url', 'query', 'hash', 'value', 'name', 'other', 'unix', 'later']
    for (const part of parts) expect(hidden).toContain(`hunter2-${part}`)
    expect(hidden).toContain('hunter2 escaped')
    expect(hidden).not.toContain('agent')
  })
})

describe('a URL', () => {
  it.each([
    ['https://host', 'https://host/', []],
    ['https://u:p%40w@host:8443/a@b', 'https://host:8443/a@b', ['p%40w', 'p@w']],
    ['http://token@host/?a=1&flag', 'http://host/?…', ['token', '1', 'flag']],
    ['https://host/#top', 'https://host/', ['top']],
    ['unix:///run/a@b.sock:/pods?x=y#z', 'unix:///run/a@b.sock:/pods?…', ['y', 'z']],
    ['https://u:p@${HOST}/x', 'https://${HOST}/x', ['p']],
    ['user:word@host', '…', []],
  ])('%s is shown as %s', (url, shown, secrets) => {
    expect(showUrl(url)).toBe(shown)
    expect([...new Set(secretsOfUrl(url))]).toEqual(secrets)
  })
})
