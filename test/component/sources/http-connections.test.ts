import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { createSecureServer } from 'node:http2'
import type { AddressInfo, Server, Socket } from 'node:net'
import { join } from 'node:path'
import { Agent, Dispatcher } from 'undici'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { issueCertificate } from '../../../src/server/access/own-authority.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import { getOnce } from '../../../src/sources/http/http-get.ts'
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

/** Speaks TLS and, where it is asked to, HTTP/2. */
async function serveSecurely(onRequest: Asked): Promise<{ readonly url: string; readonly caFile: string }> {
  const dayMs = 86_400_000
  const { key, certificate } = issueCertificate({
    subject: { commonName: 'fleet' },
    use: { kind: 'server', names: ['127.0.0.1'] },
    fromMs: Date.now() - dayMs,
    untilMs: Date.now() + dayMs,
  })
  const caFile = join(scratch, 'ca.pem')
  await writeFile(caFile, certificate)
  const server = createSecureServer({ key, cert: certificate, allowHTTP1: true })
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
    class Silent extends Dispatcher {
      override dispatch(): boolean {
        return true
      }
    }
    let destroyed = 0
    const routes = {
      find: async () => ({ dispatcher: new Silent(), proxy: undefined }),
      destroy: async () => void (destroyed += 1),
    }
    const signal = AbortSignal.timeout(50)
    const get = { url: new URL('https://fleet.example/'), headers: {}, validators: undefined }
    expect(await getOnce(routes, get, signal)).toMatchObject({ kind: 'failed' })
    expect(await getOnce(routes, get, signal)).toMatchObject({ kind: 'failed' })
    expect(destroyed).toBe(2)
  })
})

describe('a redirect from this host to another', () => {
  /** Follows one, and gives the addresses that were asked and how that ended. */
  async function follow(location: string, allowHttp?: boolean): Promise<readonly unknown[]> {
    const redirect: RequestListener = (_request, response) =>
      void response.writeHead(302, { location, connection: 'close' }).end()
    const url = new URL(`http://127.0.0.1:${await listen(createServer(redirect))}/`)
    const dispatcher = new Agent()
    const asked: string[] = []
    const routes = {
      find: async (found: URL) => {
        asked.push(found.hostname)
        if (found.hostname === 'elsewhere.example') throw new Error('asked elsewhere')
        return { dispatcher, proxy: undefined }
      },
      destroy: () => dispatcher.destroy(),
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
