import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import type { HttpSourceOptions } from '../../../src/sources/http/http-source.ts'
import { createHttpSource } from '../../../src/sources/http/http-source.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import type { ReportingSource } from '../../../src/sources/source.ts'
import { SourceRun, makeScratch, podYaml } from './source-rig.ts'

/** Waits a hundredth of the period, and gives answers the time that they have. */
const clock: Clock = {
  ...systemClock,
  sleep: (delayMs, signal) => systemClock.sleep(delayMs / 100, signal),
}

let scratch = ''
let removeScratch = async (): Promise<void> => undefined
const runs: SourceRun[] = []
const servers: Server[] = []
let source: ReportingSource
let requests: IncomingMessage[] = []

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

function start(url: string, options: Partial<HttpSourceOptions> = {}): SourceRun {
  source = createHttpSource({
    name: 'http:fleet',
    url,
    headers: {},
    periodMs: 2_000,
    clock,
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

async function listen(server: Server, path?: string): Promise<number> {
  servers.push(server)
  server.on('request', (request: IncomingMessage) => requests.push(request))
  if (path === undefined) server.listen(0, '127.0.0.1')
  else server.listen(path)
  await once(server, 'listening')
  return path === undefined ? (server.address() as AddressInfo).port : 0
}

const is =
  (...wanted: string[]) =>
  (summary: { pods: string[] }): boolean =>
    JSON.stringify(summary.pods) === JSON.stringify(wanted)
const fails =
  (part: string) =>
  (summary: { problems: string[] }): boolean =>
    summary.problems.some((problem) => problem.includes(part))
const sends =
  (body: string): RequestListener =>
  (_request, response) =>
    void response.end(body)

async function untilRequests(count: number): Promise<void> {
  await expect.poll(() => requests.length, { interval: 5 }).toBeGreaterThanOrEqual(count)
}

describe('a URL with settings of its own', () => {
  it('may be a path on a unix socket', async () => {
    const socket = join(scratch, 'fleet.sock')
    const run = start(`unix://${socket}:/pods?host=a`)
    await run.until(fails('there is no such socket'))
    await listen(createServer(sends(podYaml('a'))), socket)
    await run.until(is('a=busybox:1.36'))
    expect(requests[0]?.url).toBe('/pods?host=a')
    expect(run.last()).toMatchObject({
      source: 'http:fleet',
      location: `unix://${socket}:/pods?…`,
      problems: [],
    })
  })

  it('takes headers from files, which may change and may be missing', async () => {
    const token = join(scratch, 'token')
    await writeFile(token, 'Bearer one\n')
    const port = await listen(createServer(sends(podYaml('a'))))
    const run = start(`http://127.0.0.1:${port}/`, { headerFiles: { Authorization: token } })
    await untilRequests(1)
    expect(requests[0]?.headers.authorization).toBe('Bearer one')
    await writeFile(`${token}.new`, 'Bearer two\n')
    await rename(`${token}.new`, token)
    await expect.poll(() => requests.at(-1)?.headers.authorization, { interval: 5 }).toBe('Bearer two')
    await rm(token)
    await run.until(fails(`cannot use ${token}`))
    expect(run.last()?.pods).toHaveLength(1)
    await writeFile(token, 'Bearer three')
    await run.until(({ problems }) => problems.length === 0)
  })

  it('gives its headers and its client certificate to no other server', async () => {
    const other = await listen(createServer(sends(podYaml('a'))))
    const port = await listen(
      createServer((_request, response) => {
        response.writeHead(302, { location: `http://127.0.0.1:${other}/moved` }).end()
      }),
    )
    const run = start(`http://me:word@127.0.0.1:${port}/`, { headers: { 'X-Token': ['secret'] } })
    await run.until(is('a=busybox:1.36'))
    const moved = requests.find(({ url }) => url === '/moved')
    expect(requests[0]?.headers).toMatchObject({ 'x-token': 'secret' })
    expect(moved?.headers).not.toHaveProperty('x-token')
    expect(moved?.headers).not.toHaveProperty('authorization')
  })

  it('is left alone for as long as the server says', async () => {
    const port = await listen(
      createServer((_request, response) => void response.writeHead(503, { 'retry-after': '3000' }).end()),
    )
    const run = start(`http://127.0.0.1:${port}/`)
    await run.until(fails('the server answered 503'))
    await systemClock.sleep(200)
    expect(requests).toHaveLength(1)
    expect(source.report()).toMatchObject({ mode: 'poll', failure: { message: 'the server answered 503' } })
  })
})

describe('TLS of its own', () => {
  const openssl = spawnSync('openssl', ['version']).status === 0

  function call(...args: readonly string[]): void {
    expect(spawnSync('openssl', args, { cwd: scratch }).status).toBe(0)
  }

  /** An authority, and what it has signed for these names. */
  function makeAuthority(name: string, days = '2'): void {
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    call(
      'req',
      '-x509',
      ...ec,
      '-subj',
      `/CN=${name}`,
      '-days',
      days,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.pem`,
    )
  }
  async function makeCertificate(name: string, authority: string, names: string, days = '2'): Promise<void> {
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    await writeFile(join(scratch, `${name}.ext`), `subjectAltName=${names}\n`)
    call('req', ...ec, '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.csr`)
    const signed = ['-CA', `${authority}.pem`, '-CAkey', `${authority}.key`, '-CAcreateserial', '-days', days]
    call('x509', '-req', '-in', `${name}.csr`, ...signed, '-extfile', `${name}.ext`, '-out', `${name}.pem`)
  }
  const at = (name: string): string => join(scratch, name)
  const read = (name: string): Promise<string> => readFile(at(name), 'utf8')

  it.skipIf(!openssl)('trusts the authority that it names, and shows its client certificate', async () => {
    makeAuthority('ca')
    await makeCertificate('server', 'ca', 'IP:127.0.0.1')
    await makeCertificate('one', 'ca', 'DNS:one')
    await makeCertificate('two', 'ca', 'DNS:two')
    const server = createTlsServer(
      {
        key: await read('server.key'),
        cert: await read('server.pem'),
        ca: await read('ca.pem'),
        requestCert: true,
        rejectUnauthorized: true,
      },
      (request, response) => {
        const { subject } = (request.socket as TLSSocket).getPeerCertificate()
        response.end(podYaml(String(subject.CN)))
      },
    )
    const url = `https://127.0.0.1:${await listen(server)}/`
    await start(url).until(fails('no authority that this host trusts'))
    const tls = { caFile: at('ca.pem'), certFile: at('client.pem'), keyFile: at('client.key') }
    await writeFile(tls.certFile, await read('one.pem'))
    const run = start(url, { name: 'http:own', tls })
    await run.until(fails(`cannot use ${tls.keyFile}`))
    await writeFile(tls.keyFile, await read('one.key'))
    await run.until(is('one=busybox:1.36'))
    await writeFile(tls.certFile, await read('two.pem'))
    await writeFile(tls.keyFile, await read('two.key'))
    await run.until(is('two=busybox:1.36'))
    await run.until(({ problems }) => problems.length === 0)
    expect(source.report().failure).toBeUndefined()
  })

  it.skipIf(!openssl)(
    'keeps its pods while the certificate is over, for another name or nobody’s, and says so',
    async () => {
      makeAuthority('ca')
      makeAuthority('stranger')
      await makeCertificate('good', 'ca', 'IP:127.0.0.1')
      await makeCertificate('elsewhere', 'ca', 'DNS:elsewhere')
      await makeCertificate('foreign', 'stranger', 'IP:127.0.0.1')
      await makeCertificate('over', 'ca', 'IP:127.0.0.1', '-1')
      const contextOf = async (name: string) => ({
        key: await read(`${name}.key`),
        cert: await read(`${name}.pem`),
      })
      const server = createTlsServer(await contextOf('good'), (_request, response) => {
        response.setHeader('connection', 'close')
        response.end(podYaml('a'))
      })
      const url = `https://127.0.0.1:${await listen(server)}/`
      const run = start(url, { tls: { caFile: at('ca.pem') } })
      await run.until(is('a=busybox:1.36'))
      for (const [name, message] of [
        ['elsewhere', "the server's certificate is for another name"],
        ['foreign', 'no authority that this host trusts'],
        ['over', "the server's certificate has expired"],
      ] as const) {
        server.setSecureContext(await contextOf(name))
        await run.until(fails(message))
        expect(source.report().failure?.message).toContain(message)
        expect(run.last()).toMatchObject({ ready: true })
        expect(run.last()?.pods).toHaveLength(1)
        server.setSecureContext(await contextOf('good'))
        await run.until(({ problems }) => problems.length === 0)
      }
    },
  )

  it.skipIf(!openssl)('is refused with a certificate for another name', async () => {
    makeAuthority('ca')
    await makeCertificate('server', 'ca', 'DNS:elsewhere')
    const server = createTlsServer(
      { key: await read('server.key'), cert: await read('server.pem') },
      sends(podYaml('a')),
    )
    const run = start(`https://127.0.0.1:${await listen(server)}/`, { tls: { caFile: at('ca.pem') } })
    await run.until(fails("the server's certificate is for another name"))
    expect(requests).toEqual([])
  })
})

describe('a server that holds answers back', () => {
  /** examples/source-server.ts, and its address. */
  async function serveReference(directory: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
    const path = join(import.meta.dirname, '../../../examples/source-server.ts')
    const child = spawn(process.execPath, [path, directory, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const [, port] = /port: (\d+)/u.exec(line.toString()) ?? []
    return {
      url: `http://127.0.0.1:${port}/pods.yaml`,
      async stop() {
        const closed = once(child, 'close')
        child.kill()
        await closed
      },
    }
  }

  it('pushes changes: the reference server of the docs', async () => {
    const directory = join(scratch, 'served')
    await mkdir(directory)
    const publish = async (text: string): Promise<void> => {
      await writeFile(join(scratch, 'next'), text)
      await rename(join(scratch, 'next'), join(directory, 'pods.yaml'))
    }
    await publish(podYaml('a'))
    const server = await serveReference(directory)
    // By polling, the next answer would come after an hour.
    const run = start(server.url, { periodMs: 3_600_000, clock: systemClock })
    await run.until(is('a=busybox:1.36'))
    expect(source.report()).toMatchObject({ mode: 'push', failure: undefined })
    const delays: number[] = []
    for (const image of ['i:1', 'i:2', 'i:3', 'i:4', 'i:5']) {
      await systemClock.sleep(150)
      const fromMs = performance.now()
      await publish(podYaml('a', image))
      delays.push((await run.until(is(`a=${image}`))) - fromMs)
    }
    console.log(`from publication to the snapshot: ${delays.map((ms) => ms.toFixed(1)).join(', ')} ms`)
    await server.stop()
    await run.until(fails('the server'))
    expect(source.report()).toMatchObject({ failure: { sinceMs: expect.any(Number) as number } })
    expect(run.last()?.pods).toHaveLength(1)
  })

  it('is asked plainly where what lies between breaks off, drops or stalls what is held back', async () => {
    let image = 'i:1'
    const port = await listen(
      createServer((request, response) => {
        const etag = `"${image}"`
        const isHeld = request.headers['prefer'] !== undefined && request.headers['if-none-match'] === etag
        // The connection of a held request dies; of others the proxy knows nothing.
        if (isHeld) systemClock.startTimer(5, () => request.socket.destroy())
        else if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end()
        else response.writeHead(200, { etag, 'preference-applied': 'wait=60' }).end(podYaml('a', image))
      }),
    )
    const run = start(`http://127.0.0.1:${port}/`)
    await run.until(is('a=i:1'))
    await expect.poll(() => source.report().mode, { interval: 5 }).toBe('poll')
    await expect
      .poll(() => requests.filter(({ headers }) => headers['prefer'] === undefined).length, { interval: 5 })
      .toBeGreaterThanOrEqual(5)
    image = 'i:2'
    await run.until(is('a=i:2'))
    await run.until(({ problems }) => problems.length === 0)
    expect(
      run.snapshots
        .filter(({ snapshot }) => snapshot.ready)
        .every(({ snapshot }) => snapshot.pods.length === 1),
    ).toBe(true)
  })
})
