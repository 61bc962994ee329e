import { mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { PageRig } from '../../support/page-rig.ts'
import { ask, readKubeconfig } from '../../support/tls-client.ts'
import type { Login } from '../../support/tls-client.ts'

let rig: PageRig
let ca: string

beforeAll(async () => {
  rig = new PageRig(await mkdtemp(join(tmpdir(), 'podd-page-')))
  await rig.fill()
  await rig.listenAt(await freePort())
  ca = (await login('view')).ca
})

afterAll(() => rig[Symbol.asyncDispose]())

async function login(role: string): Promise<Login> {
  return readKubeconfig((await rig.call(`/podd/v1/kubeconfig?user=ann&role=${role}`, 'POST')).text)
}

const get = (path: string, options: Partial<Login> & { readonly headers?: Record<string, string> } = {}) =>
  ask(`${rig.url}${path}`, { ca, ...options })

describe('the status page', () => {
  it('is for everybody to load, and holds nothing of the host', async () => {
    const { code, text, headers } = await get('/ui')
    expect([code, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(text).toContain('<meta name="podd-user" content="" />')
    expect(text).not.toContain('gateway-7')
    const files = [...text.matchAll(/(?:src|href)="(?<path>\/[^"]*)"/gu)].map(([, path = '']) => path)
    expect(files).toEqual(['/ui/icon.svg', '/ui/page.css', '/ui/page.js'])
    for (const path of files) expect((await get(path)).code).toBe(200)
    for (const path of ['/ui/', '/ui']) expect((await get(path)).code).toBe(200)
  })

  it('runs nothing and loads nothing but its own files', async () => {
    const { text, headers } = await get('/ui')
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
    expect(text).not.toMatch(/<style| style=| on\w+=|<script(?![^>]* src=)/u)
  })

  it('is smaller than 60 KB, with all its files', async () => {
    const files = await readdir(join(rig.directory, 'page'))
    expect(files.sort()).toEqual(['icon.svg', 'index.html', 'page.css', 'page.js'])
    const sizes = await Promise.all(files.map((file) => readFile(join(rig.directory, 'page', file))))
    expect(sizes.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(60_000)
  })

  it.each(['/ui/package.json', '/ui/..%2ftokens', '/ui/constructor', '/ui/a/b'])(
    'has no %s',
    async (path) => {
      expect((await get(path)).code).toBe(404)
    },
  )

  it('knows a browser with a certificate, and asks it for no token', async () => {
    expect((await get('/ui', await login('view'))).text).toContain('name="podd-user" content="ann"')
    expect((await rig.call('/ui')).text).toContain('name="podd-user" content="root"')
  })

  it('tells what was used to who may look, and to nobody else', async () => {
    expect((await get('/podd/v1/usage')).code).toBe(401)
    const headers = { authorization: `Bearer ${rig.token}` }
    const { code, text } = await get('/podd/v1/usage', { headers })
    expect([code, JSON.parse(text)]).toMatchObject([200, { periodSeconds: 30, spanSeconds: 3600 }])
    expect((await get('/podd/v1/sources', { headers })).code).toBe(200)
  })
})

describe('whatever podd answers', () => {
  it.each([
    '/api/v1/pods',
    '/livez',
    '/metrics',
    '/api/v1/namespaces/default/pods/web-0/log',
    '/no/such/path',
  ])('runs no script in a browser: %s', async (path) => {
    const { headers } = await get(path, await login('admin'))
    expect(headers).toMatchObject({
      'content-security-policy': expect.stringMatching(/^sandbox;/u),
      'x-content-type-options': 'nosniff',
    })
  })
})

describe('a page of another site', () => {
  const foreign = { 'sec-fetch-site': 'cross-site' }

  it('changes nothing with the certificate of who looks at it', async () => {
    const admin = await login('admin')
    const drain = (headers: Record<string, string>) =>
      ask(`${rig.url}/podd/v1/drain`, { ...admin, method: 'POST', headers })
    expect((await drain(foreign)).code).toBe(403)
    expect((await drain({ 'sec-fetch-site': 'same-site' })).code).toBe(403)
    expect((await drain({ 'sec-fetch-site': 'same-origin' })).code).toBe(200)
    expect((await drain({})).code).toBe(200)
    // Browsers send no `Sec-Fetch-Site` to what they don't trust, and the origin with all that changes something.
    const { host } = new URL(rig.url)
    for (const origin of ['null', 'https://evil.example', `https://localhost:${rig.port}`])
      expect([origin, (await drain({ origin, host })).code]).toEqual([origin, 403])
    expect((await drain({ origin: rig.url, host })).code).toBe(200)
    const pods = await get('/api/v1/pods', { ...admin, headers: foreign })
    expect([pods.code, pods.headers['access-control-allow-origin']]).toEqual([200, undefined])
  })

  it('runs no command through a WebSocket', async () => {
    const admin = await login('admin')
    const headers = {
      ...foreign,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-protocol': 'v5.channel.k8s.io',
    }
    const path = '/api/v1/namespaces/default/pods/web-0/exec?command=true&stdout=true'
    expect((await get(path, { ...admin, headers })).code).toBe(403)
  })

  it('reaches the socket through no tunnel by a name of its own', async () => {
    const browser = { 'sec-fetch-site': 'same-origin' }
    // To a plain address that is not localhost a browser sends no `Sec-Fetch-Site`.
    const old = {
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36',
      'accept-language': 'en',
    }
    const renamed = { 'user-agent': 'curl/8.5.0', 'accept-language': 'en' }
    for (const headers of [old, renamed])
      expect((await rig.call('/api/v1/secrets', 'GET', { ...headers, host: 'evil.example:8001' })).code).toBe(
        403,
      )
    expect((await rig.call('/api/v1/pods', 'GET', { ...old, host: 'localhost:8001' })).code).toBe(200)
    expect((await rig.call('/api/v1/pods', 'GET', { 'user-agent': 'curl/8.5.0', host: 'podd' })).code).toBe(
      200,
    )
    expect((await rig.call('/api/v1/pods', 'GET', { ...browser, host: 'evil.example:8001' })).code).toBe(403)
    expect((await rig.call('/api/v1/pods', 'GET', { ...browser, host: 'localhost:8001' })).code).toBe(200)
    expect((await rig.call('/podd/v1/drain', 'POST', { ...foreign, host: 'localhost:8001' })).code).toBe(403)
    // Nobody reads a token on the socket, so that one lets no page in.
    const token = { ...browser, authorization: 'Bearer x', host: 'evil.example:8001' }
    expect((await rig.call('/api/v1/secrets', 'GET', token)).code).toBe(403)
  })

  it('takes no POST through a proxy of the user’s own that any page may send', async () => {
    const proxied = { ...foreign, host: 'localhost:8001', 'x-forwarded-for': '127.0.0.1' }
    for (const type of [undefined, 'text/plain; charset=utf-8', 'multipart/form-data; boundary=b']) {
      const headers = { ...proxied, ...(type !== undefined && { 'content-type': type }) }
      expect((await rig.call('/podd/v1/drain', 'POST', headers)).code).toBe(403)
    }
  })
})

it('is not there where it is not turned on', async () => {
  const plain = new PageRig(await mkdtemp(join(tmpdir(), 'podd-page-')))
  await using _ = plain
  await plain.listenAt(await freePort())
  expect((await plain.call('/ui')).code).toBe(404)
  expect((await plain.call('/podd/v1/usage')).code).toBe(404)
})
