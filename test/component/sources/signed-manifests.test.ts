import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import type { DecodeSource } from '../../../src/sources/decode-source.ts'
import { createDirectorySource } from '../../../src/sources/directory/directory-source.ts'
import { createHttpSource } from '../../../src/sources/http/http-source.ts'
import type { ReportingSource } from '../../../src/sources/source.ts'
import { AcceptedSignatures, ManifestVerifier, readKeys } from '../../../src/sources/verify-manifest.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { smallFile } from '../../../src/store/state-report.ts'
import { makeSigner } from '../../support/minisign.ts'
import { SourceRun, makeScratch, podYaml, summarize } from './source-rig.ts'

let scratch = ''
let pods = ''
let removeScratch = async (): Promise<void> => undefined
const runs: SourceRun[] = []
const servers: Server[] = []
const signer = makeSigner()
const other = makeSigner()
const reports: string[] = []
/** Why signatures could not be remembered. */
let accepted: AcceptedSignatures[] = []

/** Waits a hundredth between requests, but gives answers their time. */
const hastyClock: Clock = {
  ...systemClock,
  sleep: (delayMs, signal) => systemClock.sleep(delayMs / 100, signal),
}

// Loaded when the first source starts, which would count as the server's delay.
beforeAll(async () => void (await import('undici')))

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
  pods = join(scratch, 'pods')
  await mkdir(pods)
  reports.length = 0
  accepted = []
})

afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.stop()))
  await Promise.all(accepted.map((each) => each.flush()))
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
  await removeScratch()
})

const idOf = (publicKey: string): string => readKeys([publicKey])[0]?.id ?? ''

const timesPath = (): string => join(scratch, 'signatures.json')

function verifier(keys = [signer.publicKey], source = { name: 'file', location: scratch }): ManifestVerifier {
  const report = ({ message }: { readonly message: string }): void => void reports.push(message)
  const times = new AcceptedSignatures(smallFile(timesPath()), { report, logger: silentLogger })
  accepted.push(times)
  return new ManifestVerifier(source, keys, times, systemClock)
}

interface StartOptions {
  readonly keys?: string[]
  readonly decode?: DecodeSource
  readonly path?: string
  readonly recursive?: boolean
  readonly clock?: Clock
  /** Its name and where it is, as the verifier knows it. */
  readonly source?: { readonly name: 'http' | `http:${string}`; readonly location: string }
}

const common = ({ keys, source, decode = createDecodeSource(systemClock) }: StartOptions) => ({
  logger: silentLogger,
  lastGood: createLastGoodStore(join(scratch, 'state')),
  decode,
  verifier: verifier(keys, source),
})

function openDirectory(options: StartOptions): ReportingSource {
  return createDirectorySource({
    ...common(options),
    name: 'file',
    path: options.path ?? pods,
    recursive: options.recursive ?? false,
    clock: systemClock,
    unhealthyRescanMs: 200,
  })
}

function watchDirectory(options: StartOptions = {}): SourceRun {
  const run = new SourceRun(openDirectory(options))
  runs.push(run)
  return run
}

/** What the server answers, by path; undefined for 404. */
const served = new Map<string, string>()

async function askServer(options: StartOptions & { readonly query?: string } = {}): Promise<SourceRun> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname
    requests.push(request.url ?? '')
    const body = served.get(path)
    response.writeHead(body === undefined ? 404 : 200).end(body)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return ask(`http://127.0.0.1:${port}/web.yaml${options.query ?? ''}`, options)
}

let requests: string[] = []
let lastUrl = ''

function ask(url: string, options: StartOptions = {}): SourceRun {
  lastUrl = url
  const run = new SourceRun(
    createHttpSource({
      ...common(options),
      name: options.source?.name ?? 'http',
      url,
      headers: {},
      periodMs: 2_000,
      clock: options.clock ?? hastyClock,
      env: {},
    }),
  )
  runs.push(run)
  return run
}

/** A kind of source with one manifest, `web.yaml`. */
const kinds = [
  {
    kind: 'a directory',
    put: async (text: string, signature: string | undefined): Promise<void> => {
      await write('web.yaml', text)
      if (signature === undefined) await rm(join(pods, 'web.yaml.minisig'), { force: true })
      else await write('web.yaml.minisig', signature)
    },
    start: async (options: StartOptions = {}) => watchDirectory(options),
  },
  {
    kind: 'a URL',
    put: async (text: string, signature: string | undefined): Promise<void> => {
      served.set('/web.yaml', text)
      if (signature === undefined) served.delete('/web.yaml.minisig')
      else served.set('/web.yaml.minisig', signature)
    },
    start: async (options: StartOptions = {}) =>
      lastUrl === '' ? await askServer(options) : ask(lastUrl, options),
  },
]

beforeEach(() => {
  served.clear()
  requests = []
  lastUrl = ''
})

/** As programs do that replace files whole. */
async function write(name: string, text: string): Promise<void> {
  await writeFile(join(pods, `.${name}`), text)
  await rename(join(pods, `.${name}`), join(pods, name))
}

const is =
  (...wanted: string[]) =>
  (summary: { pods: string[]; problems: string[] }): boolean =>
    JSON.stringify(summary.pods) === JSON.stringify(wanted) && summary.problems.length === 0
/** The pods are these, and a problem says this. */
const keeps =
  (part: string, ...wanted: string[]) =>
  (summary: { pods: string[]; problems: string[] }): boolean =>
    JSON.stringify(summary.pods) === JSON.stringify(wanted) &&
    summary.problems.some((problem) => problem.includes(part))

const first = podYaml('web', 'one')
const second = podYaml('web', 'two')

describe.each(kinds)('the signed manifest of $kind', ({ put, start }) => {
  it('runs, and so does the next one that is signed later', async () => {
    await put(first, signer.sign(first, { timestamp: 100, isPrehashed: false }))
    const run = await start()
    await run.until(is('web=one'))
    await put(second, signer.sign(second, { timestamp: 200 }))
    expect(await run.until(is('web=two'))).toBeGreaterThan(0)
  })

  it('is taken from the bytes that were verified, whatever stands there afterwards', async () => {
    const decoded: string[] = []
    const decode = createDecodeSource(systemClock)
    await put(first, signer.sign(first))
    const run = await start({
      decode: async (bytes, options) => {
        decoded.push(Buffer.from(bytes).toString())
        return await decode(bytes, options)
      },
    })
    await run.until(is('web=one'))
    await put(second, signer.sign(first))
    await run.until(keeps('does not belong to this content', 'web=one'))
    expect(decoded).toEqual([first])
  })

  it('keeps the pods when it is forged, stripped of its signature, or signed by a stranger', async () => {
    await put(first, signer.sign(first, { timestamp: 100 }))
    const run = await start()
    await run.until(is('web=one'))
    await put(second, signer.sign(second, { timestamp: 200 }).replace('timestamp:200', 'timestamp:300'))
    await run.until(keeps('has a trusted comment that was changed', 'web=one'))
    await put(second, undefined)
    await run.until(keeps('web.yaml.minisig is missing', 'web=one'))
    await put(second, other.sign(second, { timestamp: 200 }))
    await run.until(keeps('which is not trusted here', 'web=one'))
    await put(second, second)
    await run.until(keeps('is no signature of minisign', 'web=one'))
    await put(second, signer.sign(second, { timestamp: 200 }))
    expect(await run.until(is('web=two'))).toBeGreaterThan(0)
  })

  it('runs nothing on a new host until it has a good signature', async () => {
    await put(first, undefined)
    const run = await start()
    await run.until(keeps('is missing'))
    await put(first, signer.sign(first, { comment: 'release 7' }))
    await run.until(keeps('has no timestamp in its trusted comment'))
    await put(first, signer.sign(first, { comment: 'timestamp:100 expires:200' }))
    await run.until(keeps('has expired at 1970-01-01T00:03:20Z'))
    await put(first, signer.sign(first, { comment: 'timestamp:100\tfile:db.yaml\thashed' }))
    await run.until(keeps('is for a file named db.yaml'))
    await put(first, signer.sign(first, { comment: 'timestamp:100\tfile:web.yaml\thashed' }))
    expect(await run.until(is('web=one'))).toBeGreaterThan(0)
  })

  it('is not replaced by an older one, also after a restart of podd', async () => {
    await put(second, signer.sign(second, { timestamp: 200 }))
    const run = await start()
    await run.until(is('web=two'))
    await put(first, signer.sign(first, { timestamp: 199 }))
    await run.until(keeps('older than the last one that was accepted', 'web=two'))
    await run.stop()
    const next = await start()
    await next.until(keeps('older than the last one that was accepted', 'web=two'))
    await put(first, signer.sign(first, { timestamp: 201 }))
    await next.until(is('web=one'))
    await Promise.all(accepted.map((each) => each.flush()))
    expect(await readFile(timesPath(), 'utf8')).toContain('"timestamp":201,')
    expect(reports).toEqual([])
  })

  it('is not replaced by another one that was signed in the same second', async () => {
    await put(second, signer.sign(second, { timestamp: 200 }))
    const run = await start()
    await run.until(is('web=two'))
    await put(first, signer.sign(first, { timestamp: 200 }))
    expect(await run.until(keeps('not newer than, and of other content', 'web=two'))).toBeGreaterThan(0)
  })

  it('makes no earlier one old when nothing of it could be decoded', async () => {
    await put('kind: [', signer.sign('kind: [', { timestamp: 300 }))
    const run = await start()
    await run.until(({ problems }) => problems.length > 0)
    await put(first, signer.sign(first, { timestamp: 200 }))
    expect(await run.until(is('web=one'))).toBeGreaterThan(0)
  })

  it('may be of another key once that is trusted, and the old key can be given up', async () => {
    await put(first, signer.sign(first, { timestamp: 100 }))
    const run = await start()
    await run.until(is('web=one'))
    const signers = (from: SourceRun) => from.last()?.pods.map(({ signedBy }) => signedBy)
    expect(signers(run)).toEqual([idOf(signer.publicKey)])
    await run.stop()
    const both = await start({ keys: [signer.publicKey, other.publicKey] })
    await both.until(is('web=one'))
    await put(second, other.sign(second, { timestamp: 90 }))
    await both.until(keeps('older than the last one', 'web=one'))
    await put(second, other.sign(second, { timestamp: 110 }))
    await both.until(is('web=two'))
    await put(first, signer.sign(first, { timestamp: 100 }))
    await both.until(keeps('older than the last one', 'web=two'))
    await both.stop()
    const rotated = await start({ keys: [other.publicKey] })
    await rotated.until(keeps('which is not trusted here', 'web=two'))
    expect(signers(rotated)).toEqual([idOf(other.publicKey)])
    await put(first, other.sign(first, { timestamp: 120 }))
    expect(await rotated.until(is('web=one'))).toBeGreaterThan(0)
  })

  it('is not held up by the timestamps of a key that is no longer trusted', async () => {
    await put(first, signer.sign(first, { timestamp: Math.floor(Date.now() / 1000) }))
    const run = await start({ keys: [signer.publicKey, other.publicKey] })
    await run.until(is('web=one'))
    await put(second, other.sign(second, { timestamp: 100 }))
    await run.until(keeps('older than the last one', 'web=one'))
    await run.stop()
    const rotated = await start({ keys: [other.publicKey] })
    expect(await rotated.until(is('web=two'))).toBeGreaterThan(0)
  })
})

describe('the signed manifests of a directory', () => {
  it('come and go each by itself', async () => {
    const run = watchDirectory()
    const db = podYaml('db', 'x')
    await write('db.yaml.minisig', signer.sign(db))
    await write('db.yaml', db)
    await run.until(is('db=x'))
    await write('web.yaml', first)
    await run.until(keeps('web.yaml.minisig is missing', 'db=x'))
    await write('web.yaml.minisig', signer.sign(first))
    await run.until(is('db=x', 'web=one'))
    await rm(join(pods, 'db.yaml'))
    expect(await run.until(is('web=one'))).toBeGreaterThan(0)
  })

  it('are not shown as wrong while the two files of an update come one after the other', async () => {
    await write('web.yaml', first)
    await write('web.yaml.minisig', signer.sign(first, { timestamp: 1 }))
    const run = watchDirectory()
    await run.until(is('web=one'))
    for (let at = 2; at < 8; at += 1) {
      const text = podYaml('web', `v${at}`)
      const files: [string, string][] = [
        ['web.yaml', text],
        ['web.yaml.minisig', signer.sign(text, { timestamp: at })],
      ]
      for (const [name, content] of at % 2 === 0 ? files : files.toReversed())
        if (at < 5) await write(name, content)
        else await writeFile(join(pods, name), content)
      await run.until(is(`web=v${at}`))
    }
    expect(run.snapshots.flatMap(({ snapshot }) => summarize(snapshot).problems)).toEqual([])
  })

  it('may not be swapped, where signatures name their files', async () => {
    const db = podYaml('db', 'x')
    const sign = (text: string, file: string): string =>
      signer.sign(text, { comment: `timestamp:1\tfile:${file}\thashed` })
    await write('web.yaml', first)
    await write('web.yaml.minisig', sign(first, 'web.yaml'))
    await write('db.yaml', db)
    await write('db.yaml.minisig', sign(db, 'db.yaml'))
    const run = watchDirectory()
    await run.until(is('db=x', 'web=one'))
    await write('db.yaml', first)
    await write('db.yaml.minisig', sign(first, 'web.yaml'))
    expect(await run.until(keeps('is for a file named web.yaml', 'db=x', 'web=one'))).toBeGreaterThan(0)
  })

  it('do not come back older after they were removed', async () => {
    await write('web.yaml', second)
    await write('web.yaml.minisig', signer.sign(second, { timestamp: 2 }))
    const run = watchDirectory()
    await run.until(is('web=two'))
    await rm(join(pods, 'web.yaml'))
    await rm(join(pods, 'web.yaml.minisig'))
    await run.until(is())
    await write('web.yaml', first)
    await write('web.yaml.minisig', signer.sign(first, { timestamp: 1 }))
    expect(await run.until(keeps('older than the last one that was accepted'))).toBeGreaterThan(0)
  })

  it('may be a single file, whose signature lies beside it', async () => {
    await write('web.yaml', first)
    const run = watchDirectory({ path: join(pods, 'web.yaml') })
    await run.until(keeps('web.yaml.minisig is missing'))
    await write('web.yaml.minisig', signer.sign(first, { comment: 'timestamp:1\tfile:web.yaml\thashed' }))
    expect(await run.until(is('web=one'))).toBeGreaterThan(0)
  })
})

describe('the signed manifests of a directory and its subdirectories', () => {
  const sign = (text: string, timestamp: number, file: string): string =>
    signer.sign(text, { comment: `timestamp:${timestamp}\tfile:${file}\thashed` })

  it('do not come back older under the same name in another directory', async () => {
    await mkdir(join(pods, 'sub'))
    await write('web.yaml', second)
    await write('web.yaml.minisig', sign(second, 200, 'web.yaml'))
    const run = watchDirectory({ recursive: true })
    await run.until(is('web=two'))
    const old = podYaml('old', 'one')
    await writeFile(join(pods, 'sub/web.yaml.minisig'), sign(old, 100, 'web.yaml'))
    await writeFile(join(pods, 'sub/web.yaml'), old)
    expect(await run.until(keeps('older than the last one that was accepted', 'web=two'))).toBeGreaterThan(0)
  })

  it('may have the same name, where their signatures name their directories', async () => {
    await mkdir(join(pods, 'a'))
    await mkdir(join(pods, 'b'))
    const db = podYaml('db', 'x')
    await writeFile(join(pods, 'a/pod.yaml.minisig'), sign(first, 200, 'a/pod.yaml'))
    await writeFile(join(pods, 'a/pod.yaml'), first)
    await writeFile(join(pods, 'b/pod.yaml.minisig'), sign(db, 100, 'b/pod.yaml'))
    await writeFile(join(pods, 'b/pod.yaml'), db)
    const run = watchDirectory({ recursive: true })
    expect(await run.until(is('web=one', 'db=x'))).toBeGreaterThan(0)
  })
})

describe('a directory with a manifest that lacks a good signature', () => {
  it('fails until it has one, although its other manifests are taken', async () => {
    await write('web.yaml', first)
    await write('web.yaml.minisig', signer.sign(first, { timestamp: 100 }))
    const source = openDirectory({})
    const run = new SourceRun(source)
    runs.push(run)
    await run.until(is('web=one'))
    expect(source.report().failure).toBeUndefined()
    const beforeMs = Date.now()
    await write('web.yaml', second)
    await run.until(keeps('does not belong to this content', 'web=one'))
    expect(source.report().failure?.message).toBe(`${join(pods, 'web.yaml')} has no good signature`)
    expect(source.report().failure?.sinceMs).toBeGreaterThanOrEqual(beforeMs)
    await write('web.yaml.minisig', signer.sign(second, { timestamp: 200 }))
    await run.until(is('web=two'))
    expect(source.report().failure).toBeUndefined()
  })
})

describe('the signed manifest of a URL', () => {
  it.each(['web.yaml', undefined])(
    'does not come back older when its source is renamed, or has another URL (file name signed: %s)',
    async (file) => {
      const comment = (timestamp: number): string =>
        file === undefined ? `timestamp:${timestamp}` : `timestamp:${timestamp}\tfile:${file}\thashed`
      const source = { name: 'http:fleet', location: 'https://fleet.example/web.yaml' } as const
      served.set('/web.yaml', second)
      served.set('/web.yaml.minisig', signer.sign(second, { comment: comment(200) }))
      const run = await askServer({ source })
      await run.until(is('web=two'))
      await run.stop()
      served.set('/web.yaml', first)
      served.set('/web.yaml.minisig', signer.sign(first, { comment: comment(100) }))
      for (const change of [
        { name: 'http:other' },
        { location: 'https://other.example/web.yaml' },
      ] as const) {
        const next = ask(lastUrl, { source: { ...source, ...change } })
        await next.until(({ problems }) => problems.some((one) => one.includes('older than the last one')))
        expect(next.last()?.pods.map(({ pod }) => pod.spec.containers[0]?.image)).not.toContain('one')
        await next.stop()
      }
    },
  )

  it('does not come back older when the credentials in the URL change', async () => {
    served.set('/web.yaml', second)
    served.set('/web.yaml.minisig', signer.sign(second, { timestamp: 200 }))
    const run = await askServer({ query: '?token=a' })
    await run.until(is('web=two'))
    await run.stop()
    served.set('/web.yaml', first)
    served.set('/web.yaml.minisig', signer.sign(first, { timestamp: 100 }))
    const next = ask(lastUrl.replace('token=a', 'token=b'))
    expect(
      await next.until(({ problems }) => problems.some((one) => one.includes('older than the last one'))),
    ).toBeGreaterThan(0)
  })

  it('has its signature beside it, with the same query', async () => {
    served.set('/web.yaml', first)
    served.set('/web.yaml.minisig', signer.sign(first))
    const run = await askServer({ query: '?node=a' })
    await run.until(is('web=one'))
    expect(requests.slice(0, 2)).toEqual(['/web.yaml?node=a', '/web.yaml.minisig?node=a'])
  })

  it('is not shown as wrong when its signature comes a moment later', async () => {
    served.set('/web.yaml', first)
    served.set('/web.yaml.minisig', signer.sign(first, { timestamp: 1 }))
    const run = await askServer({ clock: systemClock })
    await run.until(is('web=one'))
    const signature = signer.sign(second, { timestamp: 2 })
    const before = requests.length
    served.set('/web.yaml', second)
    while (!requests.slice(before).some((path) => path.endsWith('.minisig'))) await systemClock.sleep(10)
    served.set('/web.yaml.minisig', signature)
    await run.until(is('web=two'))
    expect(run.snapshots.flatMap(({ snapshot }) => summarize(snapshot).problems)).toEqual([])
  })

  it('is asked for its signature only when it changed', async () => {
    served.set('/web.yaml', first)
    served.set('/web.yaml.minisig', signer.sign(first))
    const run = await askServer()
    await run.until(is('web=one'))
    while (requests.length < 8) await systemClock.sleep(10)
    expect(requests.filter((path) => path.endsWith('.minisig'))).toHaveLength(1)
  })
})

describe('the record of accepted signatures', () => {
  it('that the system cannot read for now is not replaced, and manifests wait for it', async () => {
    const text = JSON.stringify({ version: 1, signed: {}, forgotten: { [idOf(signer.publicKey)]: 5 } })
    await writeFile(timesPath(), text)
    const file = smallFile(timesPath())
    let failing = true
    const times = new AcceptedSignatures(
      {
        ...file,
        async read() {
          if (failing) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
          return await file.read()
        },
      },
      { report: () => undefined, logger: silentLogger },
    )
    accepted.push(times)
    const judge = async (timestamp: number) =>
      await new ManifestVerifier(
        { name: 'file', location: '/' },
        [signer.publicKey],
        times,
        systemClock,
      ).verify({
        content: Buffer.from(first),
        id: '/m',
        name: '/m',
        signature: Buffer.from(signer.sign(first, { timestamp })),
        signaturePlace: '/m.minisig',
      })
    expect(await judge(9)).toMatchObject({ message: expect.stringContaining('cannot be read from') })
    expect(await readFile(timesPath(), 'utf8')).toBe(text)
    failing = false
    expect(await judge(4)).toMatchObject({ message: expect.stringContaining('older than the last one') })
    expect(await judge(9)).not.toHaveProperty('message')
  })

  it('that cannot be read is put aside and reported, and pods run on', async () => {
    await writeFile(timesPath(), 'no json')
    await write('web.yaml', first)
    await write('web.yaml.minisig', signer.sign(first))
    const run = watchDirectory()
    await run.until(is('web=one'))
    expect(reports).toHaveLength(1)
  })

  it('is bounded, and what it gave up counts for manifests that are new', async () => {
    const times = new AcceptedSignatures(smallFile(timesPath()), {
      report: () => undefined,
      logger: silentLogger,
    })
    accepted.push(times)
    const keys = [{ id: 'K', bytes: new Uint8Array() }]
    const find = (place: string, timestamp: number) =>
      times.findNewer([place], { timestamp, digest: 'd' }, keys)
    expect(await find('/m/0', 5)).toBeUndefined()
    for (let at = 0; at < 10_001; at += 1) times.accept(`/m/${at}`, 'K', { timestamp: at + 5, digest: 'd' })
    expect(await find('/m/0', 4)).toEqual({ timestamp: 5 })
    expect(await find('/m/10000', 4)).toEqual({ timestamp: 10_005, digest: 'd' })
    expect(await find('/m/0', 5)).toBeUndefined()
  })
})
