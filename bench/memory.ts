import { readFileSync } from 'node:fs'
import { systemClock } from '../src/base/clock.ts'
import { benchImage } from './podd-under-test.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

function pod(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: benchImage, command: ['sleep', '36000'] }],
    },
  }
}

function memoryMiB(pid: number, key: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(String.raw`^${key}:\s+(\d+) kB`, 'm').exec(status)?.[1]) / 1024
}

/** podd's memory through a burst of 20 pods and its CPU over `idleSeconds` with them running. */
export async function benchMemory(podd: PoddUnderTest, idleSeconds: number): Promise<void> {
  const { pid } = podd
  const emptyMiB = memoryMiB(pid, 'VmRSS')
  const beganMs = performance.now()
  for (let index = 0; index < 20; index += 1) podd.drop(`burst-${index}`, pod(`burst-${index}`))
  await podd.until(async () => {
    const pods = await podd.pods()
    return pods.length === 20 && pods.every(({ status }) => status.phase === 'Running')
  }, 120_000)
  const tookMs = performance.now() - beganMs
  await systemClock.sleep(5000)
  const settledMiB = memoryMiB(pid, 'VmRSS')
  const cpuBefore = podd.cpuSeconds()
  await systemClock.sleep(idleSeconds * 1000)
  const cpu = podd.cpuSeconds() - cpuBefore
  console.log(`memory and idle cost: a burst of 20 pods, all Running after ${(tookMs / 1000).toFixed(1)} s`)
  console.log(
    `  RSS: ${emptyMiB.toFixed(0)} MiB before, peak ${memoryMiB(pid, 'VmHWM').toFixed(0)} MiB, settled ${settledMiB.toFixed(0)} MiB (under 95)`,
  )
  console.log(
    `  CPU over ${idleSeconds} idle seconds: ${cpu.toFixed(2)} s, ${((cpu / idleSeconds) * 100).toFixed(2)} % of a core (under 1)`,
  )
  for (let index = 0; index < 20; index += 1) podd.remove(`burst-${index}`)
  await podd.untilGone()
}
