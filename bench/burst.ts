import type { CriClient } from '../src/cri/cri-client.ts'
import { Semaphore } from '../src/base/semaphore.ts'
import { BarePod } from './bare-pod.ts'
import { single, spreadOf } from './figures.ts'
import type { Figure } from './figures.ts'
import { FirstWrite } from './first-write.ts'
import { podManifest } from './pod-manifest.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

const count = 50
/** How many pods the bare calls make at a time. */
const schedules = [2, 8, count]
const mostCpuMs = 500
const command = ['sh', '-c', 'echo up > /out/fifo; exec sleep 3600']

/** Fifty manifests dropped at once to the last first write, beside the best of three schedules of the bare calls. */
export async function benchBurst(podd: PoddUnderTest, client: CriClient): Promise<readonly Figure[]> {
  const first = await FirstWrite.open(podd.directory, 'burst')
  const bare: number[] = []
  for (const schedule of schedules) {
    const facts = { schedule, directory: podd.directory }
    bare.push(await bareBurst(client, first, facts))
  }
  const cpuBefore = podd.cpuMs()
  const beganMs = performance.now()
  for (let index = 0; index < count; index += 1)
    podd.drop(`burst-${index}`, podManifest(`burst-${index}`, { command, outDirectory: first.directory }))
  const seconds = (await lastOf(first, beganMs)) / 1000
  await podd.untilRunning(count)
  const cpuMs = podd.cpuMs() - cpuBefore
  for (let index = 0; index < count; index += 1) podd.remove(`burst-${index}`)
  await podd.untilGone()
  await first.close()
  const best = Math.min(...bare) / 1000
  return [
    {
      name: `${count} pods at once, to the last first write`,
      unit: 's',
      podd: spreadOf([seconds]),
      bare: spreadOf([best]),
      atMost: best,
    },
    single(`CPU of podd for these ${count}`, 'ms', cpuMs, mostCpuMs),
  ]
}

/** Milliseconds until all have written. */
async function lastOf(first: FirstWrite, beganMs: number): Promise<number> {
  let lastMs = beganMs
  for (let index = 0; index < count; index += 1) lastMs = await first.next()
  return lastMs - beganMs
}

async function bareBurst(
  client: CriClient,
  first: FirstWrite,
  { schedule, directory }: { readonly schedule: number; readonly directory: string },
): Promise<number> {
  const turn = new Semaphore(schedule)
  const outDirectory = first.directory
  const beganMs = performance.now()
  const made = Array.from({ length: count }, (_, index) =>
    turn.run(async () => {
      const uid = `s${schedule}-${index}`
      const pod = await BarePod.run(client, { name: `bare-${index}`, uid, directory, command, outDirectory })
      await pod.startContainer()
      return pod
    }),
  )
  const tookMs = await lastOf(first, beganMs)
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
  const deadlineMs = performance.now() + 60_000
  for (;;) {
    const { items } = await client.runtime.listPodSandbox({})
    if (items.length === 0) return
    if (performance.now() > deadlineMs) throw new Error('the bare pods do not end')
    await new Promise((resolve) => {
      setTimeout(resolve, 100)
    })
  }
}
