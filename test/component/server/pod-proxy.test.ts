import { createServer } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ApiRig } from '../../support/api-rig.ts'
import { freePort } from '../../support/free-port.ts'
import { podObject } from '../../support/pod-objects.ts'
import { request as ask } from '../../support/raw-request.ts'

/** An address of this machine that a pod could have; undefined where it has only a loopback device. */
const address = Object.values(networkInterfaces())
  .flat()
  .find(
    (found) => found?.family === 'IPv4' && !found.internal && !found.address.startsWith('169.254.'),
  )?.address

let server: Server
let port: number
let rig: ApiRig

/** Headers that would hold for podd's own origin, or have a browser do something. */
const hostile = {
  'access-control-allow-credentials': 'true',
  'access-control-allow-origin': 'null',
  'alt-svc': 'h3=":443"',
  'clear-site-data': '"*"',
  'content-security-policy': "default-src *; script-src 'unsafe-inline'",
  'cross-origin-resource-policy': 'cross-origin',
  link: '</x.js>; rel=preload; as=script',
  nel: '{}',
  'permissions-policy': 'camera=*',
  refresh: '0; url=/api/v1/pods',
  'report-to': '{}',
  'service-worker-allowed': '/',
  'set-cookie': ['a=1', 'b=2'],
  'strict-transport-security': 'max-age=31536000',
  'www-authenticate': 'Basic realm="podd"',
  'x-content-type-options': 'sniff',
  'x-own': 'x',
}

/** Headers about the body. */
const own = { 'cache-control': 'max-age=5', etag: '"1"', 'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT' }

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

beforeAll(async () => {
  server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const { method, url, headers } = request
      if (url === '/moved') response.writeHead(302, { location: '/there?x=1' })
      else if (url === '/none') response.writeHead(404, { 'content-type': 'text/plain' })
      else if (url?.startsWith('/leaves/') === true)
        response.writeHead(302, { location: decodeURIComponent(url.slice('/leaves/'.length)) })
      else response.writeHead(200, { 'content-type': 'application/json', ...hostile, ...own })
      response.end(url === '/none' ? 'nothing' : JSON.stringify({ method, url, headers, body }))
    })
  })
  await new Promise<void>((ready) => server.listen(0, address ?? '127.0.0.1', ready))
  const bound = server.address()
  port = bound === null || typeof bound === 'string' ? 0 : bound.port
})

afterAll(() => server.close())

beforeEach(async () => {
  rig = await ApiRig.start()
  const status = { phase: 'Running', podIP: address ?? '' } as const
  const spec = { containers: [{ name: 'main', ports: [{ containerPort: port }] }] }
  rig.pods.put({ ...podObject({ name: 'web', status }), spec })
  rig.pods.put({ ...podObject({ name: 'done', status: { ...status, phase: 'Succeeded' } }), spec })
})

afterEach(() => rig[Symbol.asyncDispose]())

const proxy = (name: string) => `/api/v1/namespaces/default/pods/${name}/proxy`
const call = (
  method: string,
  path: string,
  options: { headers?: Record<string, string>; body?: string } = {},
) => ask(rig.socketPath, { method, path, ...options })

describe.skipIf(address === undefined)('the proxy of a pod', () => {
  it('passes requests on to the first port, and answers back, without what tells who asks', async () => {
    const path = `${proxy('web')}/a%2Fb/c?x=1&y=%20`
    const ann = { 'impersonate-user': 'ann', 'impersonate-group': 'system:masters' }
    const headers = { authorization: 'Bearer secret', cookie: 'of=another', ...ann, 'x-own': 'yes' }
    const { status, headers: told, text } = await call('POST', path, { headers, body: 'hello' })
    expect(status).toBe(200)
    expect(told).toMatchObject({ 'content-type': 'application/json', ...own })
    const seen = JSON.parse(text)
    expect(seen).toMatchObject({
      method: 'POST',
      url: '/a%2Fb/c?x=1&y=%20',
      body: 'hello',
      headers: { 'x-own': 'yes', 'x-forwarded-uri': path.split('?', 1)[0], host: `${address}:${port}` },
    })
    for (const name of ['authorization', 'cookie', 'impersonate-user'])
      expect(seen.headers).not.toHaveProperty(name)
  })

  it.each(['web', 'http:web'])('takes a port in the name %s, and all methods', async (name) => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE'])
      expect(JSON.parse((await call(method, `${proxy(`${name}:${port}`)}/`)).text)).toMatchObject({
        method,
        url: '/',
      })
  })

  it('keeps redirects and refusals as they are, within the proxy', async () => {
    expect(await call('GET', proxy('web'))).toMatchObject({
      status: 301,
      headers: { location: `${proxy('web')}/` },
    })
    expect(await call('GET', `${proxy('web')}/moved`)).toMatchObject({
      status: 302,
      headers: { location: `${proxy('web')}/there?x=1` },
    })
    expect(await call('GET', `${proxy('web')}/none`)).toMatchObject({ status: 404, text: 'nothing' })
  })

  it('passes back no header that would hold for podd’s own origin, and puts each body into a sandbox', async () => {
    const { headers: told } = await call('GET', `${proxy('web')}/`)
    expect(told['content-security-policy']).toMatch(/^sandbox; default-src 'none';/u)
    expect(told['content-security-policy']).not.toContain('allow-')
    expect(told).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    })
    const replaced = ['content-security-policy', 'x-content-type-options', 'cross-origin-resource-policy']
    for (const name of Object.keys(hostile).filter((each) => !replaced.includes(each)))
      expect(told).not.toHaveProperty(name)
  })

  const path = '/api/v1/namespaces/default/pods/other/proxy/'
  it.each([
    ['climbs out of its path', '../../other/proxy/', `${proxy('web')}/other/proxy/`],
    ['names a path', path, `${proxy('web')}${path}`],
    ['names another host', 'https://example.com/', 'https://example.com/'],
    ['names podd', `http://localhost:8001${path}`, `http://localhost:8001${path}`],
  ])('keeps a browser in the pod where a redirect %s', async (_, location, passed) => {
    const target = `${proxy('web')}/leaves/${encodeURIComponent(location)}`
    expect((await call('GET', target)).headers['location']).toBe(passed)
    const headers = { host: 'localhost:8001', 'sec-fetch-site': 'none' }
    const told = await call('GET', target, { headers })
    const isWithin = passed.startsWith('/')
    expect([told.status, told.headers['location']]).toEqual(isWithin ? [302, passed] : [403, undefined])
  })

  it.each<[string, number, Record<string, string>]>([
    ['a user who opens its address', 200, { 'sec-fetch-site': 'none', 'sec-fetch-dest': 'document' }],
    ['a page of podd', 200, { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'empty' }],
    ['a program', 200, { 'user-agent': 'curl/8.5.0' }],
    [
      'a foreign page with a token that nobody reads',
      403,
      { 'sec-fetch-site': 'cross-site', authorization: 'Bearer x' },
    ],
    [
      'a dashboard with a proxy of its own',
      200,
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'x-forwarded-for': '127.0.0.1' },
    ],
    [
      'a link of another site through a user’s proxy',
      403,
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'x-forwarded-for': '127.0.0.1' },
    ],
    ['a link of another site', 403, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }],
    ['a link of another port', 403, { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate' }],
    ['a browser that does not say who asks', 403, { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64)' }],
    ['a page in a sandbox', 403, { origin: 'null' }],
    ['a script of the status page', 403, { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'script' }],
    ['a frame', 403, { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'iframe' }],
    [
      'a service worker',
      403,
      { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'serviceworker', 'service-worker': 'script' },
    ],
    [
      'an address with a password',
      403,
      { 'sec-fetch-site': 'cross-site', authorization: `Basic ${Buffer.from('a:b').toString('base64')}` },
    ],
  ])('answers a GET of %s with %i', async (_, status, headers) => {
    const told = await call('GET', `${proxy('web')}/`, { headers: { host: 'localhost:8001', ...headers } })
    expect(told.status).toBe(status)
  })

  it.each([
    ['lines that end in LF alone', 'HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 2\n\nok'],
    [
      'a folded header',
      'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok',
    ],
    [
      'headers of 100 KiB',
      `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(100_000)}\r\nContent-Type: text/plain\r\n\r\nok`,
    ],
    [
      'a header that HTTP can’t carry, without that one',
      'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: "\u0001"\r\nLocation: /\u0001\r\n\r\nok',
    ],
  ])('passes back, as Kubernetes’ does, an answer with %s', async (_what, answer) => {
    const odd = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(answer))
    })
    await new Promise<void>((ready) => odd.listen(0, address ?? '127.0.0.1', ready))
    const bound = odd.address()
    const at = bound === null || typeof bound === 'string' ? 0 : bound.port
    const told = await call('GET', `${proxy(`web:${at}`)}/`)
    odd.close()
    expect(told).toMatchObject({ status: 200, text: 'ok', headers: { 'content-type': 'text/plain' } })
    expect(told.headers).not.toHaveProperty('etag')
  })

  it('says what it cannot reach', async () => {
    const closed = await freePort()
    expect(await call('GET', `${proxy(`web:${closed}`)}/`)).toMatchObject({
      status: 503,
      text: expect.stringContaining('error trying to reach service: '),
    })
    expect(await call('GET', `${proxy('done')}/`)).toMatchObject({ status: 503 })
    expect(await call('GET', `${proxy('gone')}/`)).toMatchObject({ status: 404 })
    expect(await call('GET', `${proxy('web:name')}/`)).toMatchObject({ status: 400 })
    expect(await call('GET', `${proxy('ftp:web:80')}/`)).toMatchObject({ status: 400 })
  })
})

describe('the proxy', () => {
  it.each(['127.0.0.1', '127.9.9.9', '0.0.0.0', '169.254.1.1', '::1', '::', 'fe80::1', '::ffff:127.0.0.1'])(
    'does not reach %s, which is the host’s own, through a pod of the host’s network',
    async (podIP) => {
      const status = { phase: 'Running', podIP } as const
      rig.pods.put({ ...podObject({ name: 'host', status }), spec: { containers: [], hostNetwork: true } })
      const { status: code, text } = await call('GET', `${proxy(`host:${port}`)}/`)
      expect([code, JSON.parse(text).message]).toEqual([
        400,
        `pod "host" is at ${podIP}, which is the host's own: the proxy reaches pods alone`,
      ])
    },
  )
})
