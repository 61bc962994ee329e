import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import { findExecutable } from '../src/host/run-command.ts'
import { single } from './figures.ts'
import type { Figure } from './figures.ts'
import { podManifest } from './pod-manifest.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

const rounds = 10
const idleMs = 60_000

interface Wear {
  readonly writtenBytes: number
  /** Undefined where nothing counts them. */
  readonly syncs: number | undefined
}

/** What podd itself writes to the disk, and how often it has that synced: for a start, a restart and an idle hour. */
export async function benchWear(podd: PoddUnderTest): Promise<readonly Figure[]> {
  const starts = await wearOf(podd, async () => {
    for (let index = 0; index < rounds; index += 1)
      podd.drop(`wear-${index}`, podManifest(`wear-${index}`, { command: ['sleep', '36000'] }))
    await podd.untilRunning(rounds)
    await systemClock.sleep(1000)
  })
  const idle = await wearOf(podd, () => systemClock.sleep(idleMs))
  for (let index = 0; index < rounds; index += 1) podd.remove(`wear-${index}`)
  await podd.untilGone()
  // Each ends once and runs on.
  const command = ['sh', '-c', 'if [ -e /out/once ]; then exec sleep 36000; fi; : > /out/once; exit 1']
  const spec = { volumes: [{ name: 'out', emptyDir: {} }] }
  const container = { volumeMounts: [{ name: 'out', mountPath: '/out' }] }
  const restarts = await wearOf(podd, async () => {
    for (let index = 0; index < rounds; index += 1)
      podd.drop(`again-${index}`, podManifest(`again-${index}`, { command, spec, container }))
    await podd.until(async () => {
      const pods = await podd.pods()
      const again = pods.filter(({ status }) =>
        status.containerStatuses?.every((each) => each.restartCount === 1 && each.ready),
      )
      return again.length === rounds
    }, 60_000)
    await systemClock.sleep(1000)
  })
  for (let index = 0; index < rounds; index += 1) podd.remove(`again-${index}`)
  await podd.untilGone()
  const restartAlone = {
    writtenBytes: Math.max(0, restarts.writtenBytes - starts.writtenBytes),
    syncs:
      restarts.syncs === undefined || starts.syncs === undefined ? undefined : restarts.syncs - starts.syncs,
  }
  return [
    ...figuresOf('a pod start', starts, 1 / rounds),
    ...figuresOf('a restart', restartAlone, 1 / rounds),
    ...figuresOf(`an idle hour with ${rounds} pods`, idle, 3_600_000 / idleMs),
  ]
}

function figuresOf(what: string, { writtenBytes, syncs }: Wear, factor: number): readonly Figure[] {
  const written = single(`written for ${what}`, 'KiB', (writtenBytes / 1024) * factor)
  return syncs === undefined ? [written] : [written, single(`syncs for ${what}`, 'syncs', syncs * factor)]
}

async function wearOf(podd: PoddUnderTest, work: () => Promise<void>): Promise<Wear> {
  const before = writtenBytes(podd.pid)
  const count = await countSyncs(podd)
  await work()
  return { writtenBytes: writtenBytes(podd.pid) - before, syncs: await count() }
}

function writtenBytes(pid: number): number {
  return Number(/^write_bytes: (\d+)$/mu.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
}

/** Counts from now until the returned function is called; with strace, where there is one. */
async function countSyncs({ pid, directory }: PoddUnderTest): Promise<() => Promise<number | undefined>> {
  const strace = findExecutable('strace')
  if (strace === undefined) return async () => undefined
  const output = join(directory, 'syncs')
  const calls = 'fsync,fdatasync,syncfs,sync,sync_file_range,msync'
  const args = ['-f', '-qq', '-e', `trace=${calls}`, '-o', output, '-p', String(pid)]
  const tracer = spawn(strace, args, { stdio: 'ignore' })
  await systemClock.sleep(1000)
  return async () => {
    const ended = once(tracer, 'exit')
    tracer.kill('SIGINT')
    await ended
    return readFileSync(output, 'utf8').match(/^\d+ +\w+\(/gmu)?.length ?? 0
  }
}
