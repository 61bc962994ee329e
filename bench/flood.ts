import { mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { systemClock } from '../src/base/clock.ts'
import { FakeRuntimeServer } from '../test/support/fake-runtime-server.ts'
import { FakeRuntime } from '../test/support/fake-runtime.ts'
import { single, spreadOf } from './figures.ts'
import type { Figure } from './figures.ts'
import { podManifest } from './pod-manifest.ts'
import { benchImage, PoddUnderTest } from './podd-under-test.ts'

/** How long the event loop may be held in one turn. */
const mostHeldMs = 100
/** Of a source that gives far more pods than may run. */
const answeredPods = 20_000
const mostMemoryMiB = 250

/**
 * One answer of /healthz: how long it took, for how much of that podd's main thread was at work, and for how much it waited
 * for a CPU that others had.
 */
export interface Held {
  readonly wallMs: number
  readonly cpuMs: number
  readonly queuedMs: number
}

/** Does something and gives what /healthz was like meanwhile. */
type Phase = (what: string, act: () => Promise<unknown>) => Promise<readonly Figure[]>

/**
 * Thousands of pods in one file appear, change, are adopted and go; and a URL answers with twenty thousand, of which few may run, also to a podd
 * that is started again. The runtime is one in the memory of the bench.
 */
export async function benchFlood(pods: number): Promise<readonly Figure[]> {
  return [...(await floodFile(pods)), ...(await floodAnswer())]
}

function floodFile(pods: number): Promise<readonly Figure[]> {
  return withPodd(async (podd, fake) => {
    const file = join(podd.manifests, 'all.json')
    const put = (round: number): void => {
      writeFileSync(`${file}.new`, listOf(pods, { round: `${round}` }))
      renameSync(`${file}.new`, file)
    }
    await podd.start()
    const phase = phaseOf(podd)
    const appear = await phase(`${pods} pods of one file appear`, async () => {
      put(1)
      await podd.until(async () => countRunning(fake) === pods, 600_000)
      // Until they are the revision that the next one is compared with.
      await podd.until(async () => {
        await systemClock.sleep(1000)
        return (await podd.units()).every(({ status }) => status.state === 'Healthy')
      }, 120_000)
    })
    const memory = podd.memory()
    const change = await phase(`${pods} pods of one file get another label, and are listed`, async () => {
      put(2)
      await podd.until(async () => {
        await systemClock.sleep(1000)
        return (await podd.pods()).every(({ metadata }) => metadata.labels?.['round'] === '2')
      }, 600_000)
      await systemClock.sleep(5000)
    })
    await podd.stop()
    podd.launch()
    const start = await phaseOf(podd)(`podd starts beside ${pods} pods`, async () => {
      await podd.until(async () => (await podd.status()).runtime.healthy, 60_000)
      await systemClock.sleep(15_000)
    })
    const go = await phaseOf(podd)(`${pods} pods of one file go`, async () => {
      rmSync(file)
      await podd.until(async () => fake.world.sandboxes.size === 0, 600_000)
      await podd.untilGone()
    })
    return [
      ...appear,
      single(`memory with ${pods} pods (anonymous)`, 'MiB', memory.anonymousMiB),
      ...change,
      ...start,
      ...go,
    ]
  })
}

async function floodAnswer(): Promise<readonly Figure[]> {
  const text = listOf(answeredPods)
  const server = createServer((_request, response) => response.end(text))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const flags = ['--max-pods', '110', '--manifest-url', `http://127.0.0.1:${port}/pods`]
  try {
    return await withPodd(async (podd, fake) => {
      await podd.start({ flags })
      const until = async (): Promise<void> => {
        await podd.until(async () => countRunning(fake) === 110, 600_000)
        await systemClock.sleep(10_000)
      }
      const first = await phaseOf(podd)(`an answer of ${answeredPods} pods`, until)
      await podd.stop()
      podd.launch({ flags })
      const second = await phaseOf(podd)(`the same at a start`, until)
      const records = readdirSync(join(podd.directory, 'root/records')).length
      if (records > 220) throw new Error(`podd has ${records} records`)
      const { anonymousMiB, peakMiB } = podd.memory()
      return [
        ...first,
        ...second,
        single(
          `memory with an answer of ${answeredPods} pods (anonymous)`,
          'MiB',
          anonymousMiB,
          mostMemoryMiB,
        ),
        single(`the same, resident at most`, 'MiB', peakMiB),
      ]
    })
  } finally {
    server.close()
  }
}

async function withPodd<T>(work: (podd: PoddUnderTest, fake: FakeRuntime) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'podd-bench-'))
  const fake = new FakeRuntime({ clock: systemClock, release: '1.6', images: [benchImage] })
  const server = await FakeRuntimeServer.start(fake, { socketPath: join(directory, 'runtime.sock') })
  const podd = new PoddUnderTest(server.endpoint)
  try {
    return await work(podd, fake)
  } finally {
    await podd.discard()
    server.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

function phaseOf(podd: PoddUnderTest): Phase {
  return async (what, act) => {
    const answers: Held[] = []
    const pings = new Worker(new URL('flood-pings.ts', import.meta.url), {
      workerData: { socketPath: podd.socketPath, pid: podd.pid },
    })
    pings.on('message', (held: Held) => answers.push(held))
    const began = performance.now()
    const before = podd.cpuMs()
    await act()
    const tookS = (performance.now() - began) / 1000
    const cpuS = (podd.cpuMs() - before) / 1000
    await pings.terminate()
    const wallMs = answers.map((answer) => answer.wallMs)
    const held = answers.map((answer) => answer.cpuMs)
    const longest = answers.toSorted((a, b) => b.wallMs - a.wallMs)[0]
    return [
      single(
        `${what}: podd at work before it answered /healthz, at most`,
        'ms',
        Math.max(...held),
        mostHeldMs,
      ),
      { name: `${what}: answers of /healthz, p99`, unit: 'ms', podd: spreadOf(wallMs), at: 'p99' },
      single(`${what}: the longest`, 'ms', longest?.wallMs ?? 0),
      single(`${what}: of that, podd waited for a CPU that others had`, 'ms', longest?.queuedMs ?? 0),
      single(`${what}: took`, 's', tookS),
      single(`${what}: CPU of podd`, 's', cpuS),
    ]
  }
}

function countRunning(fake: FakeRuntime): number {
  return [...fake.world.containers.values()].filter(({ state }) => state === 'CONTAINER_RUNNING').length
}

function listOf(pods: number, labels: Readonly<Record<string, string>> = {}): string {
  const items = Array.from({ length: pods }, (_, index) =>
    podManifest(`flood-${index}`, { command: ['sleep', '36000'], labels }),
  )
  return JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items })
}
