import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import type { Figure } from './figures.ts'
import { spreadOf } from './figures.ts'
import { FirstWrite } from './first-write.ts'
import { podManifest } from './pod-manifest.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

const rounds = 5
const pollMs = 5

/** Runs until it is told to die, and says when it runs again. */
const mortal = (name: string): readonly string[] => [
  'sh',
  '-c',
  `if [ -e /out/${name}-dies ]; then echo again > /out/fifo; exec sleep 3600; fi
echo up > /out/fifo
while [ ! -e /out/${name}-dies ]; do sleep 0.05; done
exit 1`,
]

/**
 * A podd that starts beside pods that run: until its API answers, and until it has noticed that a container ended
 * meanwhile and the next one writes.
 */
export async function benchAdopt(podd: PoddUnderTest, count: number): Promise<readonly Figure[]> {
  for (let index = 0; index < count - 1; index += 1)
    podd.drop(`adopted-${index}`, podManifest(`adopted-${index}`, { command: ['sleep', '36000'] }))
  const first = await FirstWrite.open(podd.directory, 'adopt')
  const answered: number[] = []
  const noticed: number[] = []
  for (let index = 0; index < rounds; index += 1) {
    const name = `mortal-${index}`
    podd.drop(name, podManifest(name, { command: mortal(name), outDirectory: first.directory }))
    await first.next(600_000)
    await podd.untilRunning(count)
    await podd.stop()
    writeFileSync(join(first.directory, `${name}-dies`), '')
    await systemClock.sleep(1000)
    const again = first.next()
    const beganMs = performance.now()
    podd.launch()
    const answering = untilAnswers(podd)
    noticed.push((await again) - beganMs)
    answered.push((await answering) - beganMs)
    podd.remove(name)
    await podd.until(async () => (await podd.pods()).length === count - 1, 60_000)
  }
  await first.close()
  return [
    { name: `start beside ${count} pods until the API answers`, unit: 'ms', podd: spreadOf(answered) },
    {
      name: `start beside ${count} pods until a container that ended meanwhile runs again`,
      unit: 'ms',
      podd: spreadOf(noticed),
    },
  ]
}

async function untilAnswers(podd: PoddUnderTest): Promise<number> {
  const giveUpAtMs = performance.now() + 60_000
  for (;;) {
    try {
      await podd.text('/healthz')
      return performance.now()
    } catch (error) {
      if (performance.now() > giveUpAtMs) throw error
      await systemClock.sleep(pollMs)
    }
  }
}
