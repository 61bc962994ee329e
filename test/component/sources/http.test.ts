import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource, DecodeUnavailable } from '../../../src/sources/decode-source.ts'
import type { HttpSourceOptions } from '../../../src/sources/http/http-source.ts'
import { createHttpSource } from '../../../src/sources/http/http-source.ts'
import { showUrl } from '../../../src/base/http.ts'
import type { LastGoodStore } from '../../../src/store/last-good.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { makeBadCertificate } from '../probes/bad-certificate.ts'
import { serveHttps } from '../probes/bad-servers.ts'
import { SourceRun, makeScratch, podYaml, summarize } from './source-rig.ts'
import { freePort } from '../../support/free-port.ts'
import { slowness } from '../../support/slowness.ts'

/** Waits a hundredth of what it is asked to. */
const hastyClock: Clock = {
  ...systemClock,
  startTimer: (delayMs, fire) => systemClock.startTimer(delayMs / 100, fire),
  sleep: (delayMs, signal) => systemClock.sleep(delayMs / 100, signal),
}

/** Asks as soon again, but gives answers the time that they have. */
const patientClock: Clock = {
  ...hastyClock,
  startTimer: (delayMs, fire) => systemClock.startTimer(delayMs, fire),
}

let scratch = ''
let removeScratch = async (): Promise<void> => undefined
const runs: SourceRun[] = []
const servers: Server[] = []
let requests: IncomingMessage[] = []
let answer: RequestListener = (_request, response) => void response.end()

// Loaded when the first source starts, which would count as the server's delay.
beforeAll(async () => void (await import('undici')))

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
  requests = []
})

afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.stop()))
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
  await removeScratch()
})

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The server whose answers a test changes as it goes. */
const serve = (): Promise<string> =>
  listen((request, response) => {
    requests.push(request)
    answer(request, response)
  })

function start(url: string, options: Partial<HttpSourceOptions> = {}): SourceRun {
  const run = new SourceRun(
    createHttpSource({
      name: 'http',
      url,
      headers: {},
      periodMs: 2_000,
      clock: patientClock,
      logger: silentLogger,
      lastGood: createLastGoodStore(join(scratch, 'state')),
      decode: createDecodeSource(systemClock),
      env: {},
      ...options,
    }),
  )
  runs.push(run)
  return run
}

const text =
  (body: string | Buffer, status = 200, headers: Record<string, string> = {}): RequestListener =>
  (_request: IncomingMessage, response: ServerResponse) =>
    void response.writeHead(status, headers).end(body)

const is =
  (...wanted: string[]) =>
  (summary: { pods: string[] }): boolean =>
    JSON.stringify(summary.pods) === JSON.stringify(wanted)
const fails =
  (part: string) =>
  (summary: { problems: string[] }): boolean =>
    summary.problems.some((problem) => problem.includes(part))

/** One of its own authority, for a subject such as `DNS:host`; undefined where there is no openssl. */
async function makeCertificate(
  subject: string,
): Promise<{ readonly key: string; readonly cert: string; readonly path: string } | undefined> {
  if (spawnSync('openssl', ['version']).status !== 0) return undefined
  const [key, path] = [join(scratch, 'key.pem'), join(scratch, 'cert.pem')]
  const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=podd -days 2'
  const names = ['-addext', `subjectAltName=${subject}`, '-keyout', key, '-out', path]
  expect(spawnSync('openssl', [...request.split(' '), ...names]).status).toBe(0)
  return { key: await readFile(key, 'utf8'), cert: await readFile(path, 'utf8'), path }
}

/** What a source in a process of its own, with this environment, says first. */
async function askOnce(url: string, env: Readonly<Record<string, string>>): Promise<string> {
  const args = [join(import.meta.dirname, 'ask-once.ts'), url, join(scratch, 'state')]
  return (await promisify(execFile)(process.execPath, args, { env })).stdout
}

async function untilRequests(count: number): Promise<void> {
  await expect.poll(() => requests.length, { interval: 5 }).toBeGreaterThanOrEqual(count)
}

it('tells its own server of the host with each request, and no other', async () => {
  const elsewhere: IncomingMessage[] = []
  const other = await listen((request, response) => {
    elsewhere.push(request)
    response.end(podYaml('a'))
  })
  answer = (_request, response) => void response.writeHead(302, { location: other }).end()
  let told: string | undefined
  const run = start(await serve(), {
    headers: { 'Podd-Node': ['chosen'] },
    describeHost: (failure) => {
      told = failure
      return { 'podd-node': ['box'], 'podd-health': ['healthy'] }
    },
  })
  await run.until(({ pods }) => pods.length === 1)
  expect(requests[0]?.headers).toMatchObject({ 'podd-node': 'chosen', 'podd-health': 'healthy' })
  expect(Object.keys(elsewhere[0]?.headers ?? {}).filter((name) => name.startsWith('podd-'))).toEqual([])
  expect(run.last()?.digest).toBe(createHash('sha256').update(podYaml('a')).digest('hex'))
  expect(told).toBeUndefined()
  answer = (_request, response) => void response.writeHead(500).end()
  await expect.poll(() => told).toBe('the server answered 500; the pods it gave before are kept (1)')
})

describe('a URL', () => {
  it('gives its pods, follows its changes, and says nothing while there are none', async () => {
    answer = text(`${podYaml('a')}---\n${podYaml('b')}`)
    const run = start(await serve())
    await run.until(is('a=busybox:1.36', 'b=busybox:1.36'))
    expect(run.last()).toMatchObject({ source: 'http', ready: true, problems: [] })
    const before = run.snapshots.length
    await untilRequests(4)
    expect(run.snapshots).toHaveLength(before)
    answer = text(podYaml('a', 'i:2'))
    await run.until(is('a=i:2'))
    answer = text('{"apiVersion":"v1","kind":"List","items":[]}')
    await run.until(is())
    expect(run.last()?.problems).toEqual([])
  })

  it('is asked again after a fault in taking its answer', async () => {
    answer = text(podYaml('a'))
    const decode = createDecodeSource(systemClock)
    let faults = 0
    const run = start(await serve(), {
      clock: hastyClock,
      decode: (bytes, options) => {
        faults += 1
        return faults <= 2 ? Promise.reject(new Error('a fault')) : decode(bytes, options)
      },
    })
    await run.until(fails('the answer cannot be taken: a fault'))
    await run.until(is('a=busybox:1.36'))
    expect(run.last()?.problems).toEqual([])
  })

  it('is asked again while the system keeps its answer from being decoded, and none of its pods goes', async () => {
    answer = text(podYaml('a'), 200, { etag: '"v1"' })
    const decode = createDecodeSource(systemClock)
    let isExhausted = false
    const run = start(await serve(), {
      clock: hastyClock,
      decode: (bytes, options) =>
        isExhausted ? Promise.reject(new DecodeUnavailable('EAGAIN')) : decode(bytes, options),
    })
    await run.until(is('a=busybox:1.36'))
    isExhausted = true
    answer = text(podYaml('a', 'i:2'), 200, { etag: '"v2"' })
    await run.until(fails('cannot be decoded for now: EAGAIN; the pods it gave before are kept (1)'))
    isExhausted = false
    await run.until(is('a=i:2'))
    expect(run.last()).toMatchObject({ problems: [], revision: '"v2"' })
  })

  it('is asked with the headers that were configured, and conditionally', async () => {
    answer = (request, response) => {
      if (request.headers['if-none-match'] === '"v1"') response.writeHead(304).end()
      else {
        response.writeHead(200, { etag: '"v1"', 'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT' })
        response.end(podYaml('a'))
      }
    }
    const run = start(await serve(), { headers: { 'X-Fleet': ['one', 'two'], Accept: ['text/yaml'] } })
    await run.until(is('a=busybox:1.36'))
    await untilRequests(3)
    expect(requests[0]?.headers).toMatchObject({
      'x-fleet': 'one, two',
      accept: 'text/yaml',
      'user-agent': 'podd',
    })
    expect(requests[0]?.headers).not.toHaveProperty('if-none-match')
    expect(requests[2]?.headers).toMatchObject({
      'if-none-match': '"v1"',
      'if-modified-since': 'Thu, 01 Jan 2026 00:00:00 GMT',
    })
    expect(run.snapshots).toHaveLength(1)
    expect(run.last()?.problems).toEqual([])
  })

  it.each<[string, RequestListener]>([
    [
      'names what it sends otherwise each time',
      (_request, response) => {
        response.writeHead(200, { etag: `"${requests.length}"` })
        response.end(podYaml('a'))
      },
    ],
    [
      'gives what is unchanged another name',
      (request, response) => {
        const isKnown = request.headers['if-none-match'] !== undefined
        response.writeHead(isKnown ? 304 : 200, { etag: `"${requests.length}"` })
        response.end(isKnown ? undefined : podYaml('a'))
      },
    ],
  ])('is followed where the server %s', async (_what, listener) => {
    answer = listener
    const run = start(await serve())
    await run.until(is('a=busybox:1.36'))
    await untilRequests(4)
    expect(run.snapshots).toHaveLength(1)
    expect(run.last()?.problems).toEqual([])
    answer = (_request, response) => {
      response.writeHead(200, { etag: '"new"' })
      response.end(podYaml('a', 'i:2'))
    }
    await run.until(is('a=i:2'))
  })

  it.each(['gzip', 'x-gzip', 'GZip'])('may pack its answer, and call that %s', async (encoding) => {
    answer = (request, response) => {
      expect(request.headers['accept-encoding']).toBe('gzip')
      response.writeHead(200, { 'content-encoding': encoding }).end(gzipSync(podYaml('a')))
    }
    await start(await serve()).until(is('a=busybox:1.36'))
  })

  it('may carry credentials, which are sent and never shown', async () => {
    answer = text(podYaml('a').replace('image', 'imagee'))
    const url = new URL(await serve())
    url.username = 'me'
    url.password = 'p@ss'
    url.search = '?token=secret'
    const run = start(url.href)
    await run.until(({ problems }) => problems.length > 0)
    expect(requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from('me:p@ss').toString('base64')}`)
    expect(requests[0]?.url).toBe('/?token=secret')
    expect(JSON.stringify(run.last())).not.toMatch(/p@ss|p%40ss|secret|me:/)
  })

  it.each([
    ['https://me:word@host:8443/pods.yaml?token=x#y', 'https://host:8443/pods.yaml?…'],
    ['http://host/pods', 'http://host/pods'],
  ])('%s is shown as %s', (url, shown) => {
    expect(showUrl(url)).toBe(shown)
  })

  it('whose document turns bad keeps that one’s pod and follows the others', async () => {
    answer = text(`${podYaml('a')}---\n${podYaml('b')}`)
    const run = start(await serve())
    await run.until(is('a=busybox:1.36', 'b=busybox:1.36'))
    answer = text(`${podYaml('a').replace('image', 'imagee')}---\n${podYaml('b', 'i:2')}`)
    await run.until(is('b=i:2', 'a=busybox:1.36'))
    expect(run.last()?.problems).toMatchObject([{ place: { line: 8, column: 5 }, object: 'default/a' }])
  })
})

describe('a server that misbehaves leaves the pods as they were', () => {
  const gone: RequestListener = (request) => request.socket.destroy()
  const halfway: RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-length': '1000' })
    response.write(podYaml('other'))
    systemClock.startTimer(20, () => response.destroy())
  }
  const hangs: RequestListener = () => undefined
  const drips: RequestListener = (_request, response) => {
    response.writeHead(200)
    const drip = (): void => {
      if (response.writable) response.write('# still here\n')
      if (!response.destroyed) systemClock.startTimer(10, drip)
    }
    drip()
  }
  const floods: RequestListener = (_request, response) => {
    response.writeHead(200)
    const pour = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(1 << 20, 'x')));
    }
    response.on('drain', pour)
    pour()
  }

  const bomb = text(gzipSync(Buffer.alloc(100 * 2 ** 20, '#')), 200, { 'content-encoding': 'gzip' })

  it.each<[string, RequestListener, string]>([
    ['an error', text('oh', 503), 'the server answered 503'],
    ['no such page', text('oh', 404), 'the server answered 404'],
    ['no entry', text('', 401), 'the server answered 401'],
    ['no content', text('', 204), 'the server answered 204'],
    ['an empty body', text(''), 'the answer is empty'],
    ['comments only', text('# moved\n---\n'), 'the answer is empty'],
    ['null, as JSON has it', text('null'), 'the answer is empty'],
    ['nulls, as YAML has them', text('--- ~ # none\n---\n  null\n'), 'the answer is empty'],
    ['unchanged, without having been asked', text('', 304), 'the server answered 304'],
    ['a web page', text('<html><body>Log in: <b>here</b></body></html>'), ''],
    ['bytes', text(Buffer.from([0xff, 0x00])), 'not a text in UTF-8'],
    [
      'what it says is packed',
      text('x', 200, { 'content-encoding': 'gzip' }),
      'the answer cannot be unpacked',
    ],
    ['what is packed otherwise', text('x', 200, { 'content-encoding': 'br' }), 'the server sent br'],
    ['what is small only while packed', bomb, 'the answer is larger than 10 MiB'],
    ['nothing, and hangs up', gone, 'the server broke the connection off'],
    ['half of it', halfway, 'the answer is shorter or longer than the server said'],
    ['nothing at all', hangs, 'no full answer within 10 s'],
    ['a bit at a time', drips, 'no full answer within 10 s'],
    ['more than anyone needs', floods, 'the answer is larger than 10 MiB'],
    [
      'a stream of events that stalls',
      (_request, response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n'),
      'the server sends a stream of events',
    ],
    ['a redirect in circles', text('', 302, { location: '/' }), 'redirects more than 5 times'],
    ['a redirect to https', text('', 302, { location: 'https://host/' }), 'leads from http to https'],
    ['a redirect to nowhere', text('', 302, { location: 'ftp://host/' }), 'leads to no web address'],
  ])('%s', async (_what, misbehave, message) => {
    answer = text(podYaml('a'))
    // Those who let podd wait are waited for a hundredth of the time; the others have all of it, on a slow host too.
    const clock = message.startsWith('no full answer') ? hastyClock : patientClock
    const run = start(await serve(), { clock })
    await run.until(is('a=busybox:1.36'))
    answer = misbehave
    await run.until(({ problems }) => problems.length > 0 && problems[0]!.includes(message))
    expect(summarize(run.last()!).pods).toEqual(['a=busybox:1.36'])
    answer = text(podYaml('a', 'i:2'))
    await run.until(is('a=i:2'))
    expect(run.last()?.problems).toEqual([])
  })
})

describe('a last good copy that can’t be saved', () => {
  it.each<[what: string, listener: RequestListener]>([
    ['has nothing new', text('', 304)],
    ['is away', text('', 503)],
  ])('is saved later, also where the server %s', async (_what, later) => {
    const store = createLastGoodStore(join(scratch, 'state'))
    let isFull = true
    const lastGood: LastGoodStore = {
      load: (...place) => store.load(...place),
      isThere: (source) => store.isThere(source),
      save: (...copy) => (isFull ? Promise.reject(new Error('no space left')) : store.save(...copy)),
    }
    answer = (request, response) => {
      if (request.headers['if-none-match'] !== undefined) return later(request, response)
      response.writeHead(200, { etag: '"v1"' }).end(podYaml('a'))
    }
    const url = await serve()
    const run = start(url, { lastGood })
    await run.until(fails('cannot be saved: no space left'))
    await untilRequests(3)
    isFull = false
    await run.until(({ problems }) => problems.every((problem) => !problem.includes('cannot be saved')))
    await run.stop()
    answer = text('', 500)
    const next = start(url, { lastGood })
    await next.until(is('a=busybox:1.36'))
    expect(next.last()?.ready).toBe(true)
  })
})

describe('TLS', () => {
  it('is refused with a certificate that is not good, and nothing is asked for', async () => {
    const asked: string[] = []
    const listener: RequestListener = (request, response) => {
      asked.push(request.url ?? '')
      response.end(podYaml('a'))
    }
    const { port, close } = await serveHttps(listener, makeBadCertificate())
    const run = start(`https://127.0.0.1:${port}/?token=secret`)
    await run.until(fails("the server's certificate has expired"))
    expect(run.last()).toMatchObject({
      ready: false,
      pods: [],
      problems: [{ hint: expect.stringContaining('clock') as string }],
    })
    expect(asked).toEqual([])
    await close()
  })

  it('is refused where the server speaks none', async () => {
    const { port } = new URL(await serve())
    const run = start(`https://127.0.0.1:${port}/`)
    await run.until(fails('the server does not speak TLS'))
    expect(run.last()).toMatchObject({ ready: false, pods: [] })
  })

  // The authorities are read once for each process.
  it('trusts whom this host trusts', { timeout: 60_000 * slowness }, async (context) => {
    const certificate = await makeCertificate('IP:127.0.0.1')
    if (certificate === undefined) return context.skip('no openssl')
    const { port, close } = await serveHttps(text(podYaml('a')), certificate)
    const url = `https://127.0.0.1:${port}/`
    expect(await askOnce(url, {})).toBe(
      "no authority that this host trusts has signed the server's certificate\n",
    )
    expect(await askOnce(url, { SSL_CERT_FILE: certificate.path })).toBe('a=busybox:1.36\n')
    await close()
  })
})

describe('proxies of the environment', () => {
  /** What came by the proxies of a test, and what it was told of who asks. */
  let passed: { readonly line: string; readonly authorization: string | undefined }[] = []
  beforeEach(() => void (passed = []))

  /** A proxy that leads every name to this host. */
  async function serveProxy(status = 200): Promise<string> {
    const note = (request: IncomingMessage): void => {
      const line = `${request.method} ${request.url}`
      passed.push({ line, authorization: request.headers['proxy-authorization'] })
    }
    const url = await listen((request, response) => {
      note(request)
      if (status !== 200) return void response.writeHead(status).end()
      answer(request, response)
    })
    servers.at(-1)?.on('connect', (request: IncomingMessage, socket: Duplex) => {
      note(request)
      if (status !== 200) return void socket.end(`HTTP/1.1 ${status} No\r\n\r\n`)
      const port = Number(request.url?.split(':').at(-1))
      const target = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
      socket.on('error', () => target.destroy())
      target.on('error', () => socket.destroy())
      socket.pipe(target).pipe(socket)
    })
    return url.replace('http://', '')
  }

  it.each([['HTTP_PROXY'], ['http_proxy']])('are asked for an http URL: %s', async (name) => {
    answer = text(podYaml('a'))
    const run = start('http://fleet.example/pods?all', {
      env: { [name]: `http://me:word@${await serveProxy()}` },
    })
    await run.until(is('a=busybox:1.36'))
    expect(passed[0]).toEqual({
      line: 'GET http://fleet.example/pods?all',
      authorization: `Basic ${Buffer.from('me:word').toString('base64')}`,
    })
  })

  it('are tunnelled through to an https server, whose certificate counts', async () => {
    const { port, close } = await serveHttps(text(podYaml('a')), makeBadCertificate())
    const env = { HTTPS_PROXY: await serveProxy(), HTTP_PROXY: 'http://nobody.example' }
    const run = start(`https://fleet.example:${port}/`, { env })
    await run.until(fails("the server's certificate has expired (through the proxy http://127.0.0.1:"))
    expect(passed[0]?.line).toBe(`CONNECT fleet.example:${port}`)
    await close()
  })

  it('are passed by for the loopback', async () => {
    answer = text(podYaml('a'))
    const run = start(await serve(), { env: { HTTP_PROXY: await serveProxy() } })
    await run.until(is('a=busybox:1.36'))
    expect(passed).toEqual([])
  })

  it('are passed by for what NO_PROXY names', async () => {
    // Which no resolver knows.
    const run = start('http://fleet.invalid/', {
      env: { HTTP_PROXY: await serveProxy(), NO_PROXY: '.invalid' },
    })
    await run.until(({ problems }) => problems.length > 0)
    expect(run.last()?.problems[0]?.message).not.toContain('proxy')
    expect(passed).toEqual([])
  })

  it.each<[env: (proxy: string) => Record<string, string>, url: string, message: string]>([
    [
      (proxy) => ({ http_proxy: proxy }),
      'http://fleet.example/',
      'the server answered 403 (through the proxy http://',
    ],
    [(proxy) => ({ https_proxy: proxy }), 'https://fleet.example/', '403'],
    [() => ({ HTTP_PROXY: 'ftp://proxy' }), 'http://fleet.example/', 'HTTP_PROXY in podd'],
  ])('that refuse, or are none, are a problem (%#)', async (env, url, message) => {
    const run = start(url, { env: env(await serveProxy(403)) })
    await run.until(fails(message))
    expect(run.last()?.ready).toBe(false)
  })

  // The authorities are read once for each process.
  it('lead to a server that this host trusts', { timeout: 60_000 * slowness }, async (context) => {
    const certificate = await makeCertificate('DNS:fleet.example')
    if (certificate === undefined) return context.skip('no openssl')
    const { port, close } = await serveHttps(text(podYaml('a')), certificate)
    const env = { SSL_CERT_FILE: certificate.path, https_proxy: await serveProxy() }
    expect(await askOnce(`https://fleet.example:${port}/`, env)).toBe('a=busybox:1.36\n')
    expect(passed[0]?.line).toBe(`CONNECT fleet.example:${port}`)
    await close()
  })
})

describe('redirects', () => {
  it('are followed, with what is private kept from other servers', async () => {
    const elsewhere: IncomingMessage[] = []
    const other = await listen((request, response) => {
      elsewhere.push(request)
      response.end(podYaml('a'))
    })
    answer = (request, response) =>
      request.url === '/start'
        ? text('', 301, { location: '/next' })(request, response)
        : text('', 307, { location: `${other}/pods` })(request, response)
    const url = new URL(`${await serve()}/start`)
    url.username = 'me'
    const run = start(url.href, { headers: { 'X-Token': ['secret'] } })
    await run.until(is('a=busybox:1.36'))
    expect(requests[1]?.headers).toMatchObject({ 'x-token': 'secret', authorization: expect.anything() })
    expect(elsewhere[0]?.headers).not.toHaveProperty('x-token')
    expect(elsewhere[0]?.headers).not.toHaveProperty('authorization')
    expect(run.last()?.pods[0]?.place.path).not.toContain(other)
  })
})

describe('at the start', () => {
  const closedPort = async (): Promise<string> => `http://127.0.0.1:${await freePort()}/`

  it('an unreachable server leaves the source not ready, and the reason shown', async () => {
    const run = start(await closedPort())
    await run.until(fails('the server refuses connections'))
    expect(run.last()).toMatchObject({ ready: false, pods: [] })
  })

  it('an unreachable server is stood in for by the last good copy', async () => {
    answer = text(podYaml('a'))
    const url = await serve()
    const first = start(url)
    await first.until(is('a=busybox:1.36'))
    await first.stop()
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
    const second = start(url)
    await second.until(fails('the server refuses connections; the pods it gave before are kept (1)'))
    expect(second.last()?.ready).toBe(true)
    expect(summarize(second.last()!).pods).toEqual(['a=busybox:1.36'])
    const another = start(`${url}/other`)
    await another.until(fails('the server refuses connections'))
    expect(another.last()).toMatchObject({ ready: false, pods: [] })
  })

  it('a server that hangs holds nothing up for long', async () => {
    answer = text(podYaml('a'))
    const url = await serve()
    const first = start(url)
    await first.until(is('a=busybox:1.36'))
    await first.stop()
    answer = () => undefined
    const second = start(url, { clock: hastyClock })
    await second.until(is('a=busybox:1.36'))
    expect(summarize(second.last()!).problems[0]).toContain('the server has not answered yet')
  })

  it('failures are retried sooner than after the period', async () => {
    answer = text('', 500)
    const run = start(await serve(), { periodMs: 100_000 })
    await run.until(fails('500'))
    answer = text(podYaml('a'))
    const fromMs = performance.now()
    await run.until(is('a=busybox:1.36'))
    expect(performance.now() - fromMs).toBeLessThan(500 * slowness)
  })
})
