import type { CriClient } from '../src/runtime/cri-client.ts'
import { Semaphore } from '../src/base/waits.ts'
import { BarePod } from './bare-pod.ts'
import { spreadOf } from './figures.ts'
import type { Figure } from './figures.ts'
import { FirstWrite } from './first-write.ts'
import { podManifest } from './pod-manifest.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

/** How many pods the bare calls make at a time. */
const schedules = [2, 8, 50]
const command = ['sh', '-c', 'echo up > /out/fifo; exec sleep 3600']

export interface BurstSize {
  readonly count: number
  readonly rounds: number
  /** How much longer than the best of the bare schedules it may take. */
  readonly atMost: number
  /** Of podd's CPU, in milliseconds. */
  readonly mostCpuMs: number
}

/**
 * Manifests dropped at once to the last first write, beside the best of three schedules of the bare calls: the one of the
 * lowest median.
 */
export async function benchBurst(
  podd: PoddUnderTest,
  client: CriClient,
  { count, rounds, atMost, mostCpuMs }: BurstSize,
): Promise<readonly Figure[]> {
  const first = await FirstWrite.open(podd.directory, 'burst')
  const bare = new Map<number, number[]>(schedules.map((schedule) => [schedule, []]))
  const seconds: number[] = []
  const cpuMs: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    for (const [schedule, took] of bare) {
      const facts = { schedule, count, round, directory: podd.directory }
      took.push((await bareBurst(client, first, facts)) / 1000)
    }
    const cpuBefore = podd.cpuMs()
    const beganMs = performance.now()
    for (let index = 0; index < count; index += 1)
      podd.drop(`burst-${index}`, podManifest(`burst-${index}`, { command, outDirectory: first.directory }))
    seconds.push((await lastOf(first, { count, beganMs })) / 1000)
    await podd.untilRunning(count)
    cpuMs.push(podd.cpuMs() - cpuBefore)
    for (let index = 0; index < count; index += 1) podd.remove(`burst-${index}`)
    await podd.untilGone()
  }
  await first.close()
  const [best] = [...bare.values()].map((took) => spreadOf(took)).toSorted((a, b) => a.p50 - b.p50)
  if (best === undefined) throw new Error('there are schedules')
  return [
    {
      name: `${count} pods at once, to the last first write`,
      unit: 's',
      podd: spreadOf(seconds),
      bare: best,
      atMost: atMost * best.p50,
    },
    { name: `CPU of podd for these ${count}`, unit: 'ms', podd: spreadOf(cpuMs), atMost: mostCpuMs },
  ]
}

/** Milliseconds until all have written. */
async function lastOf(
  first: FirstWrite,
  { count, beganMs }: { readonly count: number; readonly beganMs: number },
): Promise<number> {
  let lastMs = beganMs
  for (let index = 0; index < count; index += 1) lastMs = await first.next()
  return lastMs - beganMs
}

async function bareBurst(
  client: CriClient,
  first: FirstWrite,
  facts: {
    readonly schedule: number
    readonly count: number
    readonly round: number
    readonly directory: string
  },
): Promise<number> {
  const { schedule, count, round, directory } = facts
  const turn = new Semaphore(schedule)
  const outDirectory = first.directory
  const beganMs = performance.now()
  const made = Array.from({ length: count }, (_, index) =>
    turn.run(async () => {
      const uid = `s${round}-${schedule}-${index}`
      const pod = await BarePod.run(client, { name: `bare-${index}`, uid, directory, command, outDirectory })
      await pod.startContainer()
      return pod
    }),
  )
  const tookMs = await lastOf(first, { count, beganMs })
  const ending = new Semaphore(8)
  for (const pod of await Promise.all(made))
    void ending.run(async () => {
      await pod.stop(0)
      await pod.remove()
    })
  await ending.run(async () => {})
  await untilNone(client)
  return tookMs
}

async function untilNone(client: CriClient): Promise<void> {
  const deadlineMs = performance.now() + 600_000
  for (;;) {
    const { items } = await client.runtime.listPodSandbox({})
    if (items.length === 0) return
    if (performance.now() > deadlineMs) throw new Error('the bare pods do not end')
    await new Promise((resolve) => {
      setTimeout(resolve, 100)
    })
  }
}
