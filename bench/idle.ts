import { systemClock } from '../src/base/clock.ts'
import { single } from './figures.ts'
import type { Figure } from './figures.ts'
import { podManifest } from './pod-manifest.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

const count = 50
const command = ['sleep', '36000']

/** podd's memory before and with fifty pods, and what they cost while nothing happens. */
export async function benchIdle(podd: PoddUnderTest, seconds: number): Promise<readonly Figure[]> {
  const before = podd.memory()
  const bare = await podd.memoryOfNode([])
  const withHttp2 = await podd.memoryOfNode(['node:http2'])
  for (let index = 0; index < count; index += 1)
    podd.drop(`idle-${index}`, podManifest(`idle-${index}`, { command }))
  await podd.untilRunning(count)
  const early = await cpuShare(podd, seconds)
  const late = await cpuShare(podd, seconds)
  const after = podd.memory()
  for (let index = 0; index < count; index += 1) podd.remove(`idle-${index}`)
  await podd.untilGone()
  return [
    single('RSS of a Node that does nothing', 'MiB', bare.rssMiB),
    single('RSS of a Node that does nothing, anonymous', 'MiB', bare.anonymousMiB),
    single('RSS of a Node that has loaded HTTP/2', 'MiB', withHttp2.rssMiB),
    single('RSS of a Node that has loaded HTTP/2, anonymous', 'MiB', withHttp2.anonymousMiB),
    single('RSS at start', 'MiB', before.rssMiB, 62),
    single('RSS at start, anonymous', 'MiB', before.anonymousMiB, 20),
    single(`RSS at ${count} pods`, 'MiB', after.rssMiB, 72),
    single(`RSS at ${count} pods, anonymous`, 'MiB', after.anonymousMiB, 28),
    single(`RSS with ${count} pods, the most so far`, 'MiB', after.peakMiB),
    single(`CPU in the ${seconds} s after ${count} starts`, '% of a core', early),
    single(`CPU in the next ${seconds} s, idle`, '% of a core', late, 0.08),
  ]
}

async function cpuShare(podd: PoddUnderTest, seconds: number): Promise<number> {
  const before = podd.cpuMs()
  await systemClock.sleep(seconds * 1000)
  return (podd.cpuMs() - before) / seconds / 10
}
