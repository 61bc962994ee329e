import { describe, expect, it } from 'vitest'
import type { Json } from '../../../src/base/json.ts'
import { readConfigFile } from '../../../src/config/read-config-file.ts'
import { makeSigner } from '../../support/minisign.ts'

async function read(...sources: readonly Json[]) {
  const text = JSON.stringify({ apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration', sources })
  return readConfigFile(text, 'config.yaml')
}
const problem = async (source: Json): Promise<string | undefined> => (await read(source)).problems[0]?.message
const fleet = { name: 'fleet', url: 'https://fleet.example/pods' }

describe('the list of sources', () => {
  it('has directories and URLs in their order', async () => {
    const { values, problems } = await read(
      { name: 'edge', path: '/srv/pods', recursive: true, checkFrequency: '5s' },
      {
        ...fleet,
        headerFiles: { Authorization: '/run/token' },
        caFile: '/ca.pem',
        push: 'Off',
        substitute: true,
      },
    )
    expect(problems).toEqual([])
    expect(values.sources).toEqual([
      {
        kind: 'file',
        name: 'edge',
        path: '/srv/pods',
        recursive: true,
        periodMs: 5000,
        substitute: false,
        verify: undefined,
        imagePolicy: { requireDigest: false },
      },
      {
        kind: 'http',
        ...fleet,
        periodMs: undefined,
        substitute: true,
        verify: undefined,
        imagePolicy: { requireDigest: false },
        headers: {},
        headerFiles: { Authorization: '/run/token' },
        allowHttp: false,
        caFile: '/ca.pem',
        certFile: undefined,
        keyFile: undefined,
        push: 'Off',
      },
    ])
  })

  it.each([
    'http://127.0.0.1:8080/pods',
    'http://localhost/pods',
    'http://[::1]/pods',
    'unix:///run/fleet.sock:/pods?a=b',
    'https://${SITE}.fleet.example/${NODE_NAME}.yaml',
  ])('takes %s', async (url) => {
    expect(await problem({ ...fleet, url })).toBeUndefined()
  })

  it.each<[Json, RegExp]>([
    ['x', /must be a mapping/u],
    [{ path: '/x' }, /name must be/u],
    [{ name: 'A_b', path: '/x' }, /name must be/u],
    [{ name: 'a' }, /a: must have a path/u],
    [{ name: 'a', path: 'x' }, /a: path must be an absolute path/u],
    [{ name: 'a', path: '/x', recursiv: true }, /unknown field recursiv; did you mean recursive\?/u],
    [{ ...fleet, path: '/x' }, /has a path and a url/u],
    [{ ...fleet, url: 'ftp://x/' }, /must be an https/u],
    [{ ...fleet, url: 'unix:///run/fleet.sock' }, /must be unix/u],
    [{ ...fleet, url: 'http://fleet.example/' }, /not encrypted/u],
    [{ ...fleet, url: 'http://127.0.0.1.example/' }, /not encrypted/u],
    [{ ...fleet, url: 'http://${SITE}/' }, /not encrypted/u],
    [{ ...fleet, certFile: '/cert.pem' }, /need each other/u],
    [{ ...fleet, headerFiles: { 'a b': '/x' } }, /not a header name/u],
  ])('refuses %j', async (source, message) => {
    expect(await problem(source)).toMatch(message)
  })

  it.each<[Json, RegExp]>([
    [{ ...fleet, verify: 'x' }, /fleet: verify must be a mapping/u],
    [{ ...fleet, verify: {} }, /verify\.keys must list one or more public keys/u],
    [{ ...fleet, verify: { keys: [] } }, /verify\.keys must list one or more public keys/u],
    [{ ...fleet, verify: { key: ['x'] } }, /verify has the unknown field key; did you mean keys\?/u],
    [{ ...fleet, verify: { keys: [makeSigner().publicKey, 'x'] } }, /verify\.keys\[1\] is no public key/u],
    [
      { ...fleet, verify: { keys: [7] } },
      /verify\.keys\[0\] is no public key of minisign: a text that begins/u,
    ],
    [{ ...fleet, imagePolicy: true }, /imagePolicy must be a mapping/u],
    [{ ...fleet, imagePolicy: { requireDigest: 'yes' } }, /imagePolicy\.requireDigest must be/u],
    [
      { ...fleet, imagePolicy: { requireDigests: true } },
      /imagePolicy has the unknown field requireDigests/u,
    ],
  ])('refuses %j, which would verify nothing or something else', async (source, message) => {
    expect(await problem(source)).toMatch(message)
  })

  it('has keys that its manifests must be signed with, and may ask for digests of images', async () => {
    const keys = [
      makeSigner().publicKey,
      `untrusted comment: minisign public key 7\n${makeSigner().publicKey}\n`,
    ]
    const trust = { verify: { keys }, imagePolicy: { requireDigest: true } }
    const { values, problems } = await read({ name: 'edge', path: '/srv', ...trust }, { ...fleet, ...trust })
    expect(problems).toEqual([])
    const wanted = { verify: { keys: keys.map((key) => key.trim()) }, imagePolicy: { requireDigest: true } }
    expect(values.sources).toMatchObject([wanted, wanted])
  })

  it('takes http where that is said', async () => {
    expect(await problem({ ...fleet, url: 'http://fleet.example/', allowHTTP: true })).toBeUndefined()
  })

  it('refuses two of one name', async () => {
    const { problems } = await read({ name: 'a', path: '/x' }, { name: 'a', path: '/y' })
    expect(problems[0]?.message).toBe('has two sources named a')
  })

  it.each<[Json, RegExp]>([
    [{ ignoreKinds: ['NetworkPolicy'] }, /"NetworkPolicy" is a kind of Kubernetes' own/u],
    [{ ignoreKinds: ['Service'] }, /"Service" is a kind of Kubernetes' own/u],
    [{ ignoreKinds: ['servicemonitors'] }, /must be a kind as documents have it/u],
    [{ values: { 'a-b': 'x' } }, /"a-b" must be of letters, digits and underscores/u],
    [{ values: { VERSION: 1.2 } }, /VERSION must be text: put it in quotes/u],
    [{ values: { NODE_NAME: 'x' } }, /must not name NODE_NAME, which the host itself gives/u],
    [{ valueFiles: { TOKEN: 'token' } }, /TOKEN must be an absolute path/u],
  ])('goes by values and kinds that are well named: %j', async (config, message) => {
    const head = { apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration' }
    const text = JSON.stringify(Object.assign(head, config))
    expect((await readConfigFile(text, 'config.yaml')).problems[0]?.message).toMatch(message)
  })
})

describe('the address for reports', () => {
  const report = async (setting: Json) =>
    readConfigFile(
      JSON.stringify({ apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration', report: setting }),
      'config.yaml',
    )

  it('is asked as a source is, every five minutes where nothing else is said', async () => {
    const url = 'https://fleet.example/${NODE_NAME}'
    const { values, problems } = await report({ url, headerFiles: { Authorization: '/run/token' } })
    expect(problems).toEqual([])
    expect(values.report).toMatchObject({
      url,
      periodMs: 300_000,
      headerFiles: { Authorization: '/run/token' },
      allowHttp: false,
    })
    const { values: often } = await report({ url, period: '30s' })
    expect(often).toMatchObject({ report: { periodMs: 30_000 } })
  })

  it.each<[Json, string]>([
    ['https://fleet.example/', 'must be a mapping: report: {url: https://fleet.example/report}'],
    [{}, 'url must be text'],
    [
      { url: 'http://fleet.example/' },
      'url is not encrypted and leads off this host: use https, or set allowHTTP: true',
    ],
    [{ url: 'https://fleet.example/', peroid: '1m' }, 'has the unknown field peroid; did you mean period?'],
    [{ url: 'https://fleet.example/', certFile: '/a.pem' }, 'certFile and keyFile need each other'],
  ])('is refused as %j', async (setting, message) => {
    expect((await report(setting)).problems[0]?.message).toBe(message)
  })
})
