import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import { createHttpSource } from '../../../src/sources/http/http-source.ts'
import type { ReportingSource } from '../../../src/sources/source.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { SourceRun, makeScratch, podYaml } from './source-rig.ts'

/** Waits a hundredth of what it is asked to; hours pass by `skippedMs`. */
let skippedMs = 0
const hastyClock: Clock = {
  ...systemClock,
  monotonicMs: () => systemClock.monotonicMs() + skippedMs,
  startTimer: (delayMs, fire) => systemClock.startTimer(delayMs / 100, fire),
  sleep: (delayMs, signal) => systemClock.sleep(delayMs / 100, signal),
}
/** Waits less for the next request, and gives answers all the time that they have. */
const patientClock: Clock = {
  ...hastyClock,
  startTimer: (delayMs, fire) => systemClock.startTimer(delayMs, fire),
}

let scratch = ''
let removeScratch = async (): Promise<void> => undefined
let run: SourceRun
let source: ReportingSource
let server: Server
let requests: IncomingMessage[] = []

beforeAll(async () => void (await import('undici')))

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
  requests = []
  skippedMs = 0
})

afterEach(async () => {
  await run.stop()
  server.closeAllConnections()
  server.close()
  await removeScratch()
})

async function follow(listener: RequestListener, clock: Clock): Promise<void> {
  server = createServer((request, response) => {
    requests.push(request)
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  source = createHttpSource({
    name: 'http:fleet',
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    headers: {},
    periodMs: 2_000,
    clock,
    logger: silentLogger,
    lastGood: createLastGoodStore(join(scratch, 'state')),
    decode: createDecodeSource(systemClock),
    env: {},
  })
  run = new SourceRun(source)
}

const is =
  (...wanted: string[]) =>
  (summary: { pods: string[] }): boolean =>
    JSON.stringify(summary.pods) === JSON.stringify(wanted)

async function until(holds: () => boolean): Promise<void> {
  await expect.poll(holds, { interval: 5 }).toBe(true)
}

/** Every snapshot from the first good one on had the pod. */
const hadPodThroughout = (): boolean =>
  run.snapshots
    .map(({ snapshot }) => snapshot)
    .filter(({ ready }) => ready)
    .every(({ pods }) => pods.length === 1)

const isHeld = (request: IncomingMessage, etag: string): boolean =>
  request.headers['prefer'] !== undefined && request.headers['if-none-match'] === etag

describe('what lies between podd and a server that holds answers back', () => {
  /** A server that holds answers back, and what becomes of one that is held. */
  function between(image: () => string, hold: (request: IncomingMessage) => void): RequestListener {
    return (request, response) => {
      const etag = `"${image()}"`
      if (isHeld(request, etag)) hold(request)
      else if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end()
      else response.writeHead(200, { etag, 'preference-applied': 'wait=60' }).end(podYaml('a', image()))
    }
  }

  it.each<[string, (request: IncomingMessage) => void]>([
    ['breaks them off', (request) => void request.socket.destroy()],
    ['stalls them for good', () => undefined],
  ])('%s: podd asks plainly, and changes arrive by the period', async (_what, hold) => {
    let image = 'i:1'
    await follow(
      between(() => image, hold),
      hastyClock,
    )
    await run.until(is('a=i:1'))
    await until(() => requests.filter(({ headers }) => headers['prefer'] === undefined).length > 4)
    expect(source.report().mode).toBe('poll')
    image = 'i:2'
    await run.until(is('a=i:2'))
    await run.until(({ problems }) => problems.length === 0)
    expect(hadPodThroughout()).toBe(true)
  })

  it('answers them at once with what it kept: podd asks by the period', async () => {
    // A cache that has learnt that the server holds answers back, and answers for it.
    const cached = { etag: '"i:1"', 'preference-applied': 'wait=60' }
    await follow((request, response) => {
      if (request.headers['if-none-match'] === cached.etag) response.writeHead(304, cached).end()
      else response.writeHead(200, cached).end(podYaml('a', 'i:1'))
    }, patientClock)
    await run.until(is('a=i:1'))
    await until(() => source.report().mode === 'poll')
    expect(run.last()?.problems).toEqual([])
  })
})

describe('an ETag that lies', () => {
  it('hides a change for an hour at most; from then on whole answers are asked for', async () => {
    let image = 'i:1'
    await follow((request, response) => {
      const etag = '"always"'
      if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end()
      else response.writeHead(200, { etag }).end(podYaml('a', image))
    }, patientClock)
    await run.until(is('a=i:1'))
    image = 'i:2'
    const asked = requests.length
    await until(() => requests.length > asked + 2)
    skippedMs = 3_600_000
    await run.until(is('a=i:2'))
    expect(run.last()?.problems).toMatchObject([
      { severity: 'warning', message: expect.stringContaining('under the ETag "always"') as string },
    ])
    image = 'i:3'
    await run.until(is('a=i:3'))
    expect(hadPodThroughout()).toBe(true)
    // The one kind of request is the other's proof: nothing is asked conditionally any more.
    expect(requests.at(-1)?.headers).not.toHaveProperty('if-none-match')
  })

  it('differs with each answer although nothing changed: nothing is decoded or yielded again', async () => {
    let answers = 0
    await follow((_request, response) => {
      answers += 1
      response.writeHead(200, { etag: `"${answers}"` }).end(podYaml('a'))
    }, patientClock)
    await run.until(is('a=busybox:1.36'))
    await until(() => answers > 4)
    expect(run.snapshots).toHaveLength(1)
  })

  it('is no reason to leave the push of a server for its whole answers once an hour', async () => {
    const etag = '"i:1"'
    const held: (() => void)[] = []
    await follow((request, response) => {
      response.setHeader('preference-applied', 'wait=60')
      if (isHeld(request, etag)) held.push(() => void response.writeHead(304, { etag }).end())
      else response.writeHead(200, { etag }).end(podYaml('a', 'i:1'))
    }, patientClock)
    await until(() => held.length === 1)
    skippedMs = 3_600_000
    held[0]?.()
    await until(() => held.length === 2)
    expect(requests.map(({ headers }) => headers['if-none-match'])).toEqual([
      undefined,
      etag,
      undefined,
      etag,
    ])
    expect(source.report().mode).toBe('push')
  })
})
