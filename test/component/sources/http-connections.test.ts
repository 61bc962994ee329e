import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { createSecureServer } from 'node:http2'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { issueCertificate } from '../../../src/server/access/own-authority.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import { getOnce, postOnce } from '../../../src/sources/http/http-get.ts'
import { HttpRoutes } from '../../../src/sources/http/http-routes.ts'
import type { HttpSourceOptions } from '../../../src/sources/http/http-source.ts'
import { createHttpSource } from '../../../src/sources/http/http-source.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { SourceRun, makeScratch, podYaml } from './source-rig.ts'

let scratch = ''
let removeScratch = async (): Promise<void> => undefined
const runs: SourceRun[] = []
const servers: Server[] = []
const sockets: Socket[] = []

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
})

afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.stop()))
  for (const server of servers.splice(0)) server.close()
  for (const socket of sockets.splice(0)) socket.destroy()
  await removeScratch()
})

function start(url: string, options: Partial<HttpSourceOptions> = {}): SourceRun {
  const source = createHttpSource({
    name: 'http:fleet',
    url,
    headers: {},
    periodMs: 50,
    clock: systemClock,
    logger: silentLogger,
    lastGood: createLastGoodStore(join(scratch, 'state')),
    decode: createDecodeSource(systemClock),
    env: {},
    ...options,
  })
  const run = new SourceRun(source)
  runs.push(run)
  return run
}

async function listen(server: Server): Promise<number> {
  servers.push(server)
  server.on('connection', (socket) => sockets.push(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

type Asked = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => void

/** A certificate of its own authority, and the file that has it trusted. */
async function makeTrusted(): Promise<{ key: string; cert: string; caFile: string }> {
  const dayMs = 86_400_000
  const { key, certificate } = issueCertificate({
    subject: { commonName: 'fleet' },
    use: { kind: 'server', names: ['127.0.0.1'] },
    fromMs: Date.now() - dayMs,
    untilMs: Date.now() + dayMs,
  })
  const caFile = join(scratch, 'ca.pem')
  await writeFile(caFile, certificate)
  return { key, cert: certificate, caFile }
}

/** Speaks TLS and, where it is asked to, HTTP/2. */
async function serveSecurely(onRequest: Asked): Promise<{ readonly url: string; readonly caFile: string }> {
  const { key, cert, caFile } = await makeTrusted()
  const server = createSecureServer({ key, cert, allowHTTP1: true })
  server.on('request', onRequest)
  return { url: `https://127.0.0.1:${await listen(server)}/`, caFile }
}

const is =
  (...wanted: string[]) =>
  (summary: { pods: string[] }): boolean =>
    JSON.stringify(summary.pods) === JSON.stringify(wanted)
const fails =
  (part: string) =>
  (summary: { problems: string[] }): boolean =>
    summary.problems.some((problem) => problem.includes(part))

describe('connections', () => {
  it('are made for each request, also to a server that speaks HTTP/2', async () => {
    const seen: string[] = []
    const { url, caFile } = await serveSecurely((request, response) => {
      seen.push(`${request.httpVersion} ${request.socket.remotePort}`)
      response.end(podYaml('a'))
    })
    await start(url, { tls: { caFile } }).until(is('a=busybox:1.36'))
    await expect.poll(() => seen.length, { interval: 5 }).toBeGreaterThanOrEqual(4)
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen[0]).toMatch(/^1\.1 /u)
  })

  it.each([
    ['of two lines', 'one\ntwo\n'],
    ['with a control character', 'one\u0001'],
    ['that is too large', 'x'.repeat(2 ** 20 + 1)],
  ])('bear no token %s, and the next one at once', async (_, bad) => {
    const { url, caFile } = await serveSecurely((request, response) => {
      response.end(podYaml(String(request.headers['x-token'])))
    })
    const token = join(scratch, 'token')
    await writeFile(token, 'good\n')
    const run = start(url, { tls: { caFile }, headerFiles: { 'X-Token': token } })
    await run.until(is('good=busybox:1.36'))
    await writeFile(token, bad)
    await run.until(fails(`cannot use ${token}`))
    expect(run.last()?.pods).toHaveLength(1)
    await writeFile(token, 'better\n')
    await run.until(is('better=busybox:1.36'))
  })

  it('bear no token that a pipe would give some day', async () => {
    const seen: unknown[] = []
    const port = await listen(
      createServer((request, response) => {
        seen.push(request.headers['x-token'])
        response.end(podYaml('a'))
      }),
    )
    const token = join(scratch, 'pipe')
    execFileSync('mkfifo', [token])
    const run = start(`http://127.0.0.1:${port}/`, { headerFiles: { 'X-Token': token } })
    await run.until(is('a=busybox:1.36'))
    expect(seen[0]).toBe('')
  })

  it('are given up while they are made', async () => {
    let destroyed = 0
    const routes = {
      find: async () => ({ request: () => new Promise<never>(() => undefined), proxy: undefined }),
      destroy: async () => void (destroyed += 1),
    }
    const signal = AbortSignal.timeout(50)
    const get = { url: new URL('https://fleet.example/'), headers: {}, validators: undefined }
    expect(await getOnce(routes, get, signal)).toMatchObject({ kind: 'failed' })
    expect(await getOnce(routes, get, signal)).toMatchObject({ kind: 'failed' })
    expect(destroyed).toBe(2)
  })
})

describe('a server whose answer Go’s client takes and undici refuses is followed as any other, with', () => {
  const long = `ETag: "1"\r\nContent-Length: ${podYaml('a').length}\r\n\r\n${podYaml('a')}`
  it.each([
    ['lines that end in LF alone', `HTTP/1.1 200 OK\n${long.replaceAll('\r', '')}`],
    ['LF alone and no length', `HTTP/1.0 200 OK\nETag: "1"\n\n${podYaml('a')}`],
    ['a folded header', `HTTP/1.1 200 OK\r\nX: a\r\n b\r\n${long}`],
    ['100 Continue before it', `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n${long}`],
  ])('%s', async (_what, whole) => {
    const asked: string[] = []
    const server = createTcpServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.once('data', (head: Buffer) => {
        asked.push(head.toString())
        const isKnown = head.toString().toLowerCase().includes('if-none-match: "1"')
        socket.end(isKnown ? 'HTTP/1.1 304 Not Modified\n\n' : whole)
      })
    })
    const run = start(`http://127.0.0.1:${await listen(server)}/pods?x=1`, { headers: { 'X-Own': ['mine'] } })
    await run.until(is('a=busybox:1.36'))
    await expect.poll(() => asked.length, { interval: 5 }).toBeGreaterThan(4)
    expect(run.last()?.problems).toEqual([])
    expect(run.snapshots).toHaveLength(1)
    // Once by undici, then by the client that takes it.
    expect(asked.filter((head) => !head.includes('if-none-match'))).toHaveLength(2)
    for (const head of asked) {
      expect(head).toMatch(/^GET \/pods\?x=1 HTTP\/1\.1\r\n/u)
      expect(head).toMatch(/^x-own: mine\r$/mu)
      expect(head).toMatch(/^connection: close\r$/imu)
    }
  })

  it('headers of 100 KiB, at the first request', async () => {
    const port = await listen(
      createServer({ maxHeaderSize: 2 ** 20 }, (_request, response) => {
        response.writeHead(200, { x: 'a'.repeat(100_000) }).end(podYaml('a'))
      }),
    )
    const run = start(`http://127.0.0.1:${port}/`)
    await run.until(is('a=busybox:1.36'))
    expect(run.last()?.problems).toEqual([])
  })

  it('lines that end in LF alone over TLS, while its certificate is trusted', async () => {
    const { key, cert, caFile } = await makeTrusted()
    const server = createTlsServer({ key, cert }, (socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(`HTTP/1.1 200 OK\n\n${podYaml('a')}`))
    })
    const url = `https://127.0.0.1:${await listen(server)}/`
    await start(url, { tls: { caFile } }).until(is('a=busybox:1.36'))
    const untrusting = start(url)
    await untrusting.until(fails('no authority that this host trusts'))
    expect(untrusting.last()?.ready).toBe(false)
  })

  it('a unix socket, and takes reports too', async () => {
    const bodies: string[] = []
    const server = createTcpServer((socket) => {
      sockets.push(socket)
      socket.on('data', (piece: Buffer) => {
        if (!piece.toString().includes('report')) return
        bodies.push(piece.toString())
        socket.end('HTTP/1.1 204 No Content\nX: y\n\n')
      })
    })
    servers.push(server)
    const path = join(scratch, 'server.sock')
    await new Promise<void>((resolve) => server.listen(path, resolve))
    const routes = new HttpRoutes({}, path)
    const url = new URL('http://localhost/hosts')
    const post = { url, headers: {}, body: Buffer.from('report') }
    expect(await postOnce(routes, post, new AbortController().signal)).toBeUndefined()
    expect(bodies.at(-1)).toMatch(/content-length: 6\r\n/iu)
    await routes.destroy()
  })
})

describe('a redirect from this host to another', () => {
  /** Follows one, and gives the addresses that were asked and how that ended. */
  async function follow(location: string, allowHttp?: boolean): Promise<readonly unknown[]> {
    const redirect: RequestListener = (_request, response) =>
      void response.writeHead(302, { location, connection: 'close' }).end()
    const url = new URL(`http://127.0.0.1:${await listen(createServer(redirect))}/`)
    const own = new HttpRoutes({})
    const asked: string[] = []
    const routes = {
      find: async (found: URL) => {
        asked.push(found.hostname)
        if (found.hostname === 'elsewhere.example') throw new Error('asked elsewhere')
        return own.find(found)
      },
      destroy: () => own.destroy(),
    }
    const get = { url, headers: {}, validators: undefined, allowHttp }
    const answer = await getOnce(routes, get, new AbortController().signal)
    return [asked, answer.kind === 'failed' && answer.message]
  }

  it('is not followed over plain HTTP', async () => {
    expect(await follow('http://elsewhere.example/pods')).toEqual([
      ['127.0.0.1'],
      'the server answered 302 and leads off this host, unencrypted',
    ])
  })

  it('is followed where the config allows it', async () => {
    const [asked] = await follow('http://elsewhere.example/pods', true)
    expect(asked).toEqual(['127.0.0.1', 'elsewhere.example'])
  })
})
