import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { IncomingHttpHeaders, RequestListener } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { systemClock } from '../../../src/base/clock.ts'
import { runHttpHook, runHttpProbe } from '../../../src/probes/http-probe.ts'
import type { HttpGetAction } from '../../../src/probes/http-probe.ts'
import type { ProbeOutcome } from '../../../src/probes/probe-outcome.ts'
import { makeBadCertificate } from './bad-certificate.ts'
import type { Certificate } from './bad-certificate.ts'
import { serveHttp, serveHttp2, serveHttps, serveTcp, serveTls } from './bad-servers.ts'
import type { RunningServer } from './bad-servers.ts'
import { freePort } from '../../support/free-port.ts'
import { slowness } from '../../support/slowness.ts'

let certificate: Certificate
beforeAll(() => {
  certificate = makeBadCertificate()
})

const open: RunningServer[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()))
})

async function use(starting: Promise<RunningServer>): Promise<RunningServer> {
  const server = await starting
  open.push(server)
  return server
}

interface Given {
  readonly podIp?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

function probe(port: number, change: Partial<HttpGetAction> = {}, given: Given = {}): Promise<ProbeOutcome> {
  return probeAction({ path: '/', port, scheme: 'HTTP', httpHeaders: [], ...change }, given)
}

function probeAction(action: HttpGetAction, given: Given = {}): Promise<ProbeOutcome> {
  const target = { containerId: 'c', podIps: [given.podIp ?? '127.0.0.1'], ports: [] }
  return runHttpProbe(action, target, 'kube-probe/1.36', {
    clock: systemClock,
    timeoutMs: given.timeoutMs ?? 2_000 * slowness,
    signal: given.signal ?? new AbortController().signal,
  })
}

const withStatus =
  (status: number, body = 'body'): RequestListener =>
  (_request, response) =>
    response.writeHead(status).end(body)

describe('an HTTP probe that is answered with status', () => {
  it.each<[number, Partial<ProbeOutcome>]>([
    [200, { result: 'success', output: 'body' }],
    [204, { result: 'success', output: '' }],
    [299, { result: 'success' }],
    [300, { result: 'warning', output: 'Probe terminated redirects, Response body: body' }],
    [301, { result: 'warning' }],
    [304, { result: 'warning' }],
    [399, { result: 'warning' }],
    [400, { result: 'failure', output: 'HTTP probe failed with statuscode: 400' }],
    [404, { result: 'failure', output: 'HTTP probe failed with statuscode: 404' }],
    [500, { result: 'failure', output: 'HTTP probe failed with statuscode: 500' }],
    [503, { result: 'failure' }],
  ])('%i has the result that a kubelet’s has', async (status, outcome) => {
    const { port } = await use(serveHttp(withStatus(status)))
    expect(await probe(port)).toMatchObject(outcome)
  })
})

describe('an HTTP probe takes, as a kubelet’s does, an answer with', () => {
  it.each([
    ['lines that end in LF alone', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    ['LF alone and no length', 'HTTP/1.0 200 OK\n\nok'],
    ['a folded header', 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok'],
    ['headers of 100 KiB', `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(100_000)}\r\nContent-Length: 2\r\n\r\nok`],
    [
      'two kinds of length',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    ],
    ['blanks after its length', 'HTTP/1.1 200 OK\r\nContent-Length: 2 \r\n\r\nok'],
    ['100 Continue before it', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
  ])('%s', async (_what, answer) => {
    const { port } = await use(serveTcp((socket) => socket.once('data', () => socket.end(answer))))
    expect(await probe(port)).toEqual({ result: 'success', output: 'ok' })
  })

  it.each([
    ['101, which nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\n\r\n', 101],
    ['a status below 100', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n', 99],
  ])('%s, as a failure', async (_what, answer, status) => {
    const { port } = await use(serveTcp((socket) => socket.once('data', () => socket.end(answer))))
    expect(await probe(port)).toEqual({
      result: 'failure',
      output: `HTTP probe failed with statuscode: ${status}`,
    })
  })

  it('lines that end in LF alone over TLS, and asks such a server once each time from then on', async () => {
    let asked = 0
    const { port } = await use(
      serveTls((socket) => {
        socket.once('data', () => {
          asked += 1
          socket.end('HTTP/1.1 200 OK\nContent-Length: 2\n\nok')
        })
      }, certificate),
    )
    const action: HttpGetAction = { path: '/', port, scheme: 'HTTPS', httpHeaders: [] }
    const ask = () => probeAction(action)
    const outcomes = [await ask(), await ask(), await ask()]
    expect(outcomes).toEqual(Array.from({ length: 3 }, () => ({ result: 'success', output: 'ok' })))
    expect(asked).toBe(4)
  })

  it('a redirect that leads nowhere, with a warning', async () => {
    const answer = 'HTTP/1.1 302 Found\r\nLocation: \r\nContent-Length: 0\r\n\r\n'
    const { port } = await use(serveTcp((socket) => socket.once('data', () => socket.end(answer))))
    expect(await probe(port)).toMatchObject({ result: 'warning' })
  })
})

describe('one HTTP probe again and again', () => {
  it('has a connection of its own each time, whatever became of the last one, and follows its pod', async () => {
    const peers: (number | undefined)[] = []
    let answers = 0
    const listener: RequestListener = (request, response) => {
      peers.push(request.socket.remotePort)
      answers += 1
      if (answers === 2) request.socket.destroy()
      else if (answers === 3) response.write('half')
      else response.end('whole')
    }
    const [first, second] = [await use(serveHttp(listener)), await use(serveHttp(listener))]
    const action: HttpGetAction = { path: '/', port: 'web', scheme: 'HTTP', httpHeaders: [] }
    const ask = ({ port }: RunningServer, timeoutMs = 2000 * slowness) =>
      runHttpProbe(
        action,
        {
          containerId: 'c',
          podIps: ['127.0.0.1'],
          ports: [{ name: 'web', containerPort: port, protocol: 'TCP' }],
        },
        'kube-probe/1.36',
        { clock: systemClock, timeoutMs, signal: new AbortController().signal },
      )
    expect(await ask(first)).toMatchObject({ result: 'success', output: 'whole' })
    expect(await ask(first)).toMatchObject({ result: 'failure' })
    expect(await ask(first, 300)).toMatchObject({ result: 'unknown', timedOut: true })
    for (const server of [first, first, second, first])
      expect(await ask(server)).toMatchObject({ result: 'success', output: 'whole' })
    expect(new Set(peers)).toHaveProperty('size', 7)
  })
})

describe('what an HTTP probe sends', () => {
  async function received(change: Partial<HttpGetAction>, host = '127.0.0.1') {
    const seen: { headers: IncomingHttpHeaders; url: string | undefined }[] = []
    const { port } = await use(
      serveHttp((request, response) => {
        seen.push({ headers: request.headers, url: request.url })
        response.end()
      }, host),
    )
    const outcome = await probe(port, change, { podIp: host })
    return { port, outcome, ...seen[0] }
  }

  it('is a bare GET on a connection of its own', async () => {
    const { headers, port, url } = await received({ path: '/healthz?full=1' })
    expect(url).toBe('/healthz?full=1')
    expect(headers).toEqual({
      host: `127.0.0.1:${port}`,
      'user-agent': 'kube-probe/1.36',
      accept: '*/*',
      connection: 'close',
    })
  })

  it('has the headers of the manifest', async () => {
    const { headers } = await received({
      httpHeaders: [
        { name: 'Host', value: 'shop.example' },
        { name: 'X-Token', value: 'a' },
        { name: 'User-Agent', value: 'mine' },
        { name: 'Accept', value: '' },
      ],
    })
    expect(headers).toEqual({
      host: 'shop.example',
      'x-token': 'a',
      'user-agent': 'mine',
      connection: 'close',
    })
  })

  it('goes to IPv6 in brackets', async () => {
    const { headers, outcome, port } = await received({}, '::1')
    expect(outcome.result).toBe('success')
    expect(headers?.host).toBe(`[::1]:${port}`)
  })

  it('goes to the host that the manifest names', async () => {
    const { port } = await use(serveHttp(withStatus(200)))
    expect(await probe(port, { host: 'localhost' }, { podIp: '192.0.2.1' })).toMatchObject({
      result: 'success',
    })
  })

  it('passes by a proxy of the environment', async () => {
    const { port } = await use(serveHttp(withStatus(200)))
    const before = process.env['http_proxy']
    process.env['http_proxy'] = `http://127.0.0.1:${await freePort()}`
    try {
      expect((await probe(port)).result).toBe('success')
    } finally {
      if (before === undefined) delete process.env['http_proxy']
      else process.env['http_proxy'] = before
    }
  })
})

describe('an HTTP probe over TLS', () => {
  it('takes any certificate', async () => {
    const { port } = await use(serveHttps(withStatus(200, 'safe'), certificate))
    expect(await probe(port, { scheme: 'HTTPS' })).toEqual({ result: 'success', output: 'safe' })
  })

  it('speaks HTTP/2 where the server wants it', async () => {
    const seen: IncomingHttpHeaders[] = []
    const { port } = await use(
      serveHttp2((request, response) => {
        seen.push(request.headers)
        response.end('two')
      }, certificate),
    )
    const httpHeaders = [
      { name: 'X-Token', value: 'a' },
      { name: 'Connection', value: 'close' },
    ]
    const outcome = await probe(port, { scheme: 'HTTPS', path: '/healthz', httpHeaders })
    expect(outcome).toEqual({ result: 'success', output: 'two' })
    expect(seen).toMatchObject([
      {
        ':path': '/healthz',
        ':authority': `127.0.0.1:${port}`,
        'user-agent': 'kube-probe/1.36',
        'x-token': 'a',
      },
    ])
  })

  it.each<[string, (response: Http2ServerResponse) => void, string]>([
    ['before its answer', (response) => response.stream.session?.destroy(), 'failure'],
    ['by a reset of the stream', (response) => response.stream.close(2), 'failure'],
    [
      'in its body',
      (response) => response.write('half', () => response.stream.session?.destroy()),
      'unknown',
    ],
  ])('tells of a server of HTTP/2 that breaks off %s', async (_, breakOff, result) => {
    const { port } = await use(serveHttp2((_request, response) => breakOff(response), certificate))
    expect(await probe(port, { scheme: 'HTTPS' })).toMatchObject({ result })
  })

  it('fails on a server of HTTP/2 that says nothing when its time is up', async () => {
    const { port } = await use(serveHttp2(() => undefined, certificate))
    expect(await probe(port, { scheme: 'HTTPS' }, { timeoutMs: 150 * slowness })).toMatchObject({
      result: 'failure',
      timedOut: true,
    })
  })

  it('tells of a server without it', async () => {
    const { port } = await use(serveHttp(withStatus(200)))
    expect(await probe(port, { scheme: 'HTTPS' })).toEqual({
      result: 'failure',
      output: `Get "https://127.0.0.1:${port}/": http: server gave HTTP response to HTTPS client`,
    })
  })

  it('fails on a server that breaks it off', async () => {
    const { port } = await use(serveTcp((socket) => socket.on('data', () => socket.destroy())))
    expect(await probe(port, { scheme: 'HTTPS' })).toMatchObject({ result: 'failure' })
  })
})

describe('redirects of an HTTP probe', () => {
  async function redirecting(locations: Record<string, string>) {
    const paths: string[] = []
    const hosts: (string | undefined)[] = []
    const server = await use(
      serveHttp((request, response) => {
        paths.push(request.url ?? '')
        hosts.push(request.headers.host)
        const location = locations[request.url ?? '']?.replace('PORT', String(server.port))
        if (location === undefined) response.end('arrived')
        else response.writeHead(302, { location }).end('moved')
      }),
    )
    return { port: server.port, paths, hosts }
  }

  it('are followed on the same host, the Host header kept', async () => {
    const { port, paths, hosts } = await redirecting({ '/': '/a', '/a': 'b?c=1' })
    const outcome = await probe(port, { httpHeaders: [{ name: 'Host', value: 'x.example' }] })
    expect(outcome).toEqual({ result: 'success', output: 'arrived' })
    expect(paths).toEqual(['/', '/a', '/b?c=1'])
    expect(hosts).toEqual(['x.example', 'x.example', 'x.example'])
  })

  it('are followed to another port of the host', async () => {
    const other = await use(serveHttp(withStatus(200, 'other port')))
    const { port } = await redirecting({ '/': `http://127.0.0.1:${other.port}/` })
    expect(await probe(port)).toEqual({ result: 'success', output: 'other port' })
  })

  it('are not followed to another host', async () => {
    const { port } = await redirecting({ '/': 'http://other.invalid/' })
    expect(await probe(port)).toEqual({
      result: 'warning',
      output: 'Probe terminated redirects, Response body: moved',
    })
  })

  it('in a circle fail after ten requests', async () => {
    const { port, paths } = await redirecting({ '/': '/b', '/b': '/' })
    expect(await probe(port)).toMatchObject({
      result: 'failure',
      output: expect.stringContaining('stopped after 10 redirects') as string,
    })
    expect(paths).toHaveLength(10)
  })

  it('to nonsense fail', async () => {
    const { port } = await redirecting({ '/': 'http://[bad' })
    expect(await probe(port)).toMatchObject({ result: 'failure' })
  })

  it('share one timeout', async () => {
    const server = await use(
      serveHttp((_request, response) => {
        setTimeout(() => response.writeHead(302, { location: '/' }).end(), 80)
      }),
    )
    const startMs = performance.now()
    expect(await probe(server.port, {}, { timeoutMs: 200 })).toMatchObject({ timedOut: true })
    expect(performance.now() - startMs).toBeLessThan(450 * slowness)
  })
})

describe('an HTTP probe of a server that', () => {
  const quick = { timeoutMs: 150 * slowness }

  it('refuses connections fails', async () => {
    const port = await freePort()
    expect(await probe(port)).toEqual({
      result: 'failure',
      output: `Get "http://127.0.0.1:${port}/": dial tcp 127.0.0.1:${port}: connect: connection refused`,
    })
  })

  it('accepts and says nothing fails when its time is up', async () => {
    const { port } = await use(serveTcp(() => undefined))
    expect(await probe(port, {}, quick)).toEqual({
      result: 'failure',
      timedOut: true,
      output: `Get "http://127.0.0.1:${port}/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
    })
  })

  it('accepts and says nothing on TLS fails when its time is up', async () => {
    const { port } = await use(serveTcp(() => undefined))
    expect(await probe(port, { scheme: 'HTTPS' }, quick)).toMatchObject({ result: 'failure', timedOut: true })
  })

  it('drips its headers', async () => {
    const { port } = await use(
      serveTcp((socket) => {
        socket.write('HTTP/1.1 200 OK\r\n')
        const drip = setInterval(() => socket.write('X-Drop: 1\r\n'), 20)
        socket.on('close', () => clearInterval(drip))
      }),
    )
    expect(await probe(port, {}, quick)).toMatchObject({ result: 'failure', timedOut: true })
  })

  it('drips its body says nothing about itself', async () => {
    const { port } = await use(
      serveHttp((_request, response) => {
        response.writeHead(200)
        const drip = setInterval(() => response.write('.'), 20)
        response.on('close', () => clearInterval(drip))
      }),
    )
    expect(await probe(port, {}, quick)).toEqual({
      result: 'unknown',
      timedOut: true,
      output: 'context deadline exceeded (Client.Timeout or context cancellation while reading body)',
    })
  })

  it('resets fails', async () => {
    const { port } = await use(serveTcp((socket) => socket.on('data', () => socket.resetAndDestroy())))
    expect(await probe(port)).toEqual({
      result: 'failure',
      output: `Get "http://127.0.0.1:${port}/": read tcp 127.0.0.1:${port}: read: connection reset by peer`,
    })
  })

  it('hangs up fails', async () => {
    const { port } = await use(serveTcp((socket) => socket.on('data', () => socket.end())))
    expect(await probe(port)).toEqual({ result: 'failure', output: `Get "http://127.0.0.1:${port}/": EOF` })
  })

  it('resets in its body', async () => {
    const { port } = await use(
      serveTcp((socket) =>
        socket.on('data', () => {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
          setTimeout(() => socket.resetAndDestroy(), 30)
        }),
      ),
    )
    expect(await probe(port)).toMatchObject({ result: 'unknown' })
  })

  it('talks nonsense fails', async () => {
    const { port } = await use(serveTcp((socket) => socket.end('220 mail.example ESMTP\r\n')))
    expect(await probe(port)).toMatchObject({ result: 'failure' })
  })

  it('sends 10 MB is read as far as needed', async () => {
    let sentBytes = 0
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const { port } = await use(
      serveHttp((_request, response) => {
        const pump = (): void => {
          while (sentBytes < 10_000_000) {
            sentBytes += chunk.length
            if (!response.write(chunk)) return void response.once('drain', pump)
          }
          response.end()
        }
        pump()
      }),
    )
    const outcome = await probe(port)
    expect(outcome.result).toBe('success')
    expect(outcome.output).toHaveLength(10 * 1024)
    expect(sentBytes).toBeLessThan(9_000_000)
  })
})

describe('an HTTP probe called off', () => {
  it('ends at once and closes its connection', async () => {
    const closed = Promise.withResolvers<void>()
    const accepted = Promise.withResolvers<void>()
    const { port } = await use(
      serveTcp((socket) => {
        accepted.resolve()
        socket.on('close', () => closed.resolve())
        socket.resume()
      }),
    )
    const controller = new AbortController()
    const running = probe(port, {}, { signal: controller.signal, timeoutMs: 60_000 })
    await accepted.promise
    controller.abort()
    expect(await running).toMatchObject({ result: 'unknown' })
    await closed.promise
  })

  it('beforehand is not sent', async () => {
    let connections = 0
    const { port } = await use(serveTcp(() => (connections += 1)))
    expect(await probe(port, {}, { signal: AbortSignal.abort() })).toMatchObject({ result: 'unknown' })
    expect(connections).toBe(0)
  })

  it('while it connects holds nothing open', async () => {
    const controller = new AbortController()
    // 192.0.2.0/24 is for documentation: nobody answers, or the network says so at once.
    const running = probe(80, {}, { signal: controller.signal, podIp: '192.0.2.1', timeoutMs: 60_000 })
    setTimeout(() => controller.abort(), 20)
    expect(['unknown', 'failure']).toContain((await running).result)
  })
})

describe('an HTTP probe with a header that HTTP lacks', () => {
  it.each([
    ['bad name', 'x'],
    ['X-Fine', 'line\nbreak'],
  ])('%j: %j is a failure', async (name, value) => {
    const { port } = await use(serveHttp(withStatus(200)))
    expect(await probe(port, { httpHeaders: [{ name, value }] })).toMatchObject({ result: 'failure' })
  })
})

describe('a lifecycle hook', () => {
  function hook(port: number, change: Partial<HttpGetAction> = {}) {
    const action: HttpGetAction = { path: '/', port, scheme: 'HTTP', httpHeaders: [], ...change }
    const bounds = { clock: systemClock, timeoutMs: 300 }
    return runHttpHook(action, { podIps: ['127.0.0.1'], ports: [] }, 'kube-lifecycle/1.36', bounds)
  }

  it.each([200, 404, 500])('is done with status %i', async (status) => {
    const { port } = await use(serveHttp(withStatus(status)))
    expect(await hook(port)).toEqual({ kind: 'done', warning: undefined })
  })

  it('falls back from HTTPS to HTTP, without credentials, and says so', async () => {
    const seen: IncomingHttpHeaders[] = []
    const { port } = await use(
      serveHttp((request, response) => {
        seen.push(request.headers)
        response.end()
      }),
    )
    const httpHeaders = [
      { name: 'Authorization', value: 'secret' },
      { name: 'X', value: '1' },
    ]
    expect(await hook(port, { scheme: 'HTTPS', httpHeaders })).toEqual({
      kind: 'done',
      warning: `request to HTTPS lifecycle hook 127.0.0.1:${port} got HTTP response, retry with HTTP succeeded`,
    })
    expect(seen).toHaveLength(1)
    expect(seen[0]).toMatchObject({ x: '1', 'user-agent': 'kube-lifecycle/1.36' })
    expect(seen[0]).not.toHaveProperty('authorization')
  })

  it.each(['HTTP/1.0 200 OK\n\n', 'HTTP/1.1 302 Found\nLocation: \n\n'])(
    'is sent once to a server that undici doesn’t understand: %j',
    async (answer) => {
      let asked = 0
      const { port } = await use(
        serveTcp((socket) => {
          socket.once('data', () => {
            asked += 1
            socket.end(answer)
          })
        }),
      )
      expect(await hook(port)).toEqual({ kind: 'done', warning: undefined })
      expect(asked).toBe(1)
    },
  )

  it('fails, and asks nobody twice, where the answer is no HTTP', async () => {
    let asked = 0
    const { port } = await use(
      serveTcp((socket) => {
        socket.once('data', () => {
          asked += 1
          socket.end('hello\r\n\r\n')
        })
      }),
    )
    expect(await hook(port)).toMatchObject({ kind: 'failed' })
    expect(asked).toBe(1)
  })

  it('fails with a header that HTTP lacks', async () => {
    const { port } = await use(serveHttp(withStatus(200)))
    const httpHeaders = [{ name: 'bad name', value: 'x' }]
    expect(await hook(port, { httpHeaders })).toMatchObject({ kind: 'failed' })
  })

  it('fails when nobody answers', async () => {
    const silent = await use(serveTcp(() => undefined))
    expect(await hook(silent.port)).toMatchObject({ kind: 'failed' })
    expect(await hook(await freePort())).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('connection refused') as string,
    })
  })
})

afterAll(() => {
  expect(open).toEqual([])
})
