import type { Clock } from '../../base/clock.ts'
import { judgeCollection } from '../../decide/node/judge-health.ts'
import type { NodeJob } from './node-jobs.ts'

export interface CollectMemoryOptions {
  /** The CPU time of podd's threads so far. */
  readonly cpuMs: () => number
  /** Collects all garbage; blocks podd for some 50 ms. */
  readonly collect: () => void
  readonly clock: Clock
}

const periodMs = 10_000

/** Releases V8's memory after a busy period. */
export function collectMemoryJob({ cpuMs, collect, clock }: CollectMemoryOptions): NodeJob {
  let seen = { cpuMs: 0, atMs: clock.monotonicMs() }
  let quietLooks = 0
  return {
    name: 'collect-memory',
    periodMs,
    deadlineMs: periodMs,
    async run() {
      const now = { cpuMs: cpuMs(), atMs: clock.monotonicMs() }
      const verdict = judgeCollection({
        cpuMs: now.cpuMs - seen.cpuMs,
        sinceMs: now.atMs - seen.atMs,
        quietLooks,
      })
      quietLooks = verdict.quietLooks
      if (verdict.collects) collect()
      seen = { ...now, cpuMs: cpuMs() }
    },
  }
}
