import { execFile, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import type { HttpSourceOptions } from '../../../src/sources/http.ts'
import { createHttpSource, showUrl } from '../../../src/sources/http.ts'
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
      url,
      headers: {},
      periodMs: 2_000,
      clock: patientClock,
      logger: silentLogger,
      lastGood: createLastGoodStore(join(scratch, 'state')),
      decode: createDecodeSource(systemClock),
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

async function untilRequests(count: number): Promise<void> {
  while (requests.length < count) await systemClock.sleep(5)
}

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

  it.each<[string, RequestListener, string]>([
    ['an error', text('oh', 503), 'the server answered 503'],
    ['no such page', text('oh', 404), 'the server answered 404'],
    ['no entry', text('', 401), 'the server answered 401'],
    ['no content', text('', 204), 'the server answered 204'],
    ['an empty body', text(''), 'the answer is empty'],
    ['comments only', text('# moved\n---\n'), 'the answer is empty'],
    ['unchanged, without having been asked', text('', 304), 'the server answered 304'],
    ['a web page', text('<html><body>Log in: <b>here</b></body></html>'), ''],
    ['bytes', text(Buffer.from([0xff, 0x00])), 'not a text in UTF-8'],
    ['what it packed', text('x', 200, { 'content-encoding': 'gzip' }), 'the server sent gzip'],
    ['nothing, and hangs up', gone, 'the server broke the connection off'],
    ['half of it', halfway, 'the answer is shorter or longer than the server said'],
    ['nothing at all', hangs, 'no full answer within 10 s'],
    ['a bit at a time', drips, 'no full answer within 10 s'],
    ['more than anyone needs', floods, 'the answer is larger than 10 MiB'],
    ['a redirect in circles', text('', 302, { location: '/' }), 'redirects more than 5 times'],
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
  it.skipIf(spawnSync('openssl', ['version']).status !== 0)(
    'trusts whom this host trusts',
    { timeout: 60_000 },
    async () => {
      const [key, cert] = [join(scratch, 'key.pem'), join(scratch, 'cert.pem')]
      const request =
        'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=podd -days 2'
      const names = ['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert]
      expect(spawnSync('openssl', [...request.split(' '), ...names]).status).toBe(0)
      const certificate = { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') }
      const { port, close } = await serveHttps(text(podYaml('a')), certificate)
      const ask = async (env: Readonly<Record<string, string>>): Promise<string> => {
        const script = join(import.meta.dirname, 'ask-once.ts')
        const args = [script, `https://127.0.0.1:${port}/`, join(scratch, 'state')]
        return (await promisify(execFile)(process.execPath, args, { env })).stdout
      }
      expect(await ask({})).toBe("nobody whom this host trusts vouches for the server's certificate\n")
      expect(await ask({ SSL_CERT_FILE: cert })).toBe('a=busybox:1.36\n')
      await close()
    },
  )
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
