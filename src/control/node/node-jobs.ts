import { startDeadline } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { whenAborted } from '../../base/waits.ts'
import { noticeableBlockMs } from '../../decide/node/judge-health.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { EvictionEnd } from '../../pod/state/pod-record.ts'
import type { PodWorker } from '../pod/worker.ts'

/** What the work about the host needs of the pods. */
export interface NodePods {
  readonly workers: () => Iterable<PodWorker>
  /** Whether the running and the desired pods are known. */
  readonly knowsAllPods: () => boolean
  /** Whether a pod in the runtime without a worker is in no source, rather than having an unreadable record. */
  readonly isRemoved: (pod: ObservedPod) => boolean
  /** Has orphaned pods ended. */
  readonly endOrphans: () => void
  /** Has pods started that were evicted until this event. */
  readonly readmit: (now: EvictionEnd) => void
  /** The results of admission may change. */
  readonly reviewAdmission: () => void
  /** Pods that were left out may be followed now. */
  readonly reviewSources: () => void
}

/** Every node job, as `podd status` shows it. Which of them there are depends on the config. */
export type NodeJobName =
  | 'sync-pods'
  | 'follow-host'
  | 'follow-address'
  | 'follow-name'
  | 'follow-program'
  | 'keep-network'
  | 'collect-containers'
  | 'collect-images'
  | 'collect-orphans'
  | 'finish-purges'
  | 'limit-volumes'
  | 'limit-logs'
  | 'rotate-logs'
  | 'relieve-pressure'
  | 'record-usage'
  | 'self-check'
  | 'collect-memory'
  | 'keep-socket'
  | 'send-report'
  | 'listen-api'
  | 'listen-read-only'

/** Periodic work about the host as a whole. */
export interface NodeJob<Name extends string = NodeJobName> {
  readonly name: Name
  /** The period between starts, in milliseconds; the first run comes one period after the jobs are started. */
  readonly periodMs: number
  /** Whether its first run comes as soon as the jobs are started. */
  readonly runsAtStart?: boolean
  /** The deadline in milliseconds, after which the job's signal is aborted and the run counts as failed. */
  readonly deadlineMs: number
  /**
   * Does the work once. Returns for how many milliseconds the next run has to wait at least, where that is more than
   * the period; Infinity where it runs again only when it is woken.
   */
  run(signal: AbortSignal): Promise<number | void>
}

export interface NodeJobReport {
  readonly name: string
  readonly periodMs: number
  readonly running: boolean
  readonly runs: number
  /** The start of the last run that ended, wall milliseconds; undefined before the first has. */
  readonly lastStartMs?: number
  readonly lastDurationMs?: number
  /** Why the last run failed; undefined where it didn't. */
  readonly error?: string
}

interface JobState {
  readonly job: NodeJob<string>
  /** Monotonic. */
  dueMs: number
  running: boolean
  /** Whether it was requested while it ran. */
  again: boolean
  report: NodeJobReport
}

/**
 * The one scheduler of work about the host. A job never runs twice at a time, and a slow one delays no other. One timer
 * serves them all. A job's error is logged when it changes, and is in its report; the job runs again when it is due.
 */
export class NodeJobs<Name extends string = NodeJobName> {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #states = new Map<Name, JobState>()
  #signal: AbortSignal | undefined
  #timer: Timer | undefined
  #blocked: NodeJobs['blocked']

  constructor(options: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = options.clock
    this.#logger = options.logger
  }

  /** Adds a job before the jobs are started. Throws PoddError INTERNAL where one of its name exists. */
  add(job: NodeJob<Name>): void {
    if (this.#states.has(job.name)) throw new PoddError('INTERNAL', `there is a node job ${job.name} already`)
    const report = { name: job.name, periodMs: job.periodMs, running: false, runs: 0 }
    this.#states.set(job.name, { job, dueMs: job.periodMs, running: false, again: false, report })
  }

  /**
   * Runs a job as soon as possible: at once, or once more after the run in flight. Does nothing before `run`, and where
   * the config has no such job.
   */
  wake(name: Name): void {
    const state = this.#states.get(name)
    if (state === undefined || this.#signal === undefined) return
    state.again = state.running
    state.dueMs = this.#clock.monotonicMs()
    this.#startDue()
  }

  reports(): readonly NodeJobReport[] {
    return [...this.#states.values()].map(({ report }) => report)
  }

  /** When the jobs' timer was last so late that podd must have been blocked (monotonic). */
  get blocked(): { readonly untilMs: number; readonly durationMs: number } | undefined {
    return this.#blocked
  }

  /** Runs the jobs until the signal is aborted, which aborts those in flight too. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal
    const startMs = this.#clock.monotonicMs()
    for (const state of this.#states.values())
      state.dueMs = state.job.runsAtStart === true ? startMs : startMs + state.job.periodMs
    this.#startDue()
    await whenAborted(signal)
    this.#timer?.cancel()
    this.#signal = undefined
  }

  #startDue(): void {
    if (this.#signal === undefined || this.#signal.aborted) return
    const nowMs = this.#clock.monotonicMs()
    for (const state of this.#states.values())
      if (!state.running && state.dueMs <= nowMs) void this.#runOnce(state, this.#signal)
    this.#timer?.cancel()
    const idle = [...this.#states.values()].filter(({ running }) => !running)
    const nextMs = Math.min(Infinity, ...idle.map(({ dueMs }) => dueMs))
    if (nextMs === Infinity) return
    this.#timer = this.#clock.startTimer(nextMs - nowMs, () => {
      const untilMs = this.#clock.monotonicMs()
      const durationMs = untilMs - Math.max(nextMs, nowMs)
      if (durationMs >= noticeableBlockMs) this.#blocked = { untilMs, durationMs }
      this.#startDue()
    })
  }

  /** Never rejects. */
  async #runOnce(state: JobState, signal: AbortSignal): Promise<void> {
    const { job } = state
    const startMs = this.#clock.monotonicMs()
    const lastStartMs = this.#clock.wallMs()
    state.running = true
    state.report = { ...state.report, running: true }
    state.again = false
    const tooLate = () => new PoddError('NODE_JOB_DEADLINE', `not done after ${job.deadlineMs / 1000} s`)
    let error: unknown
    let restMs: number | void = undefined
    try {
      using deadline = startDeadline(this.#clock, job.deadlineMs, tooLate)
      restMs = await job.run(AbortSignal.any([signal, deadline.signal]))
      deadline.signal.throwIfAborted()
    } catch (failure) {
      error = failure
    }
    state.running = false
    if (signal.aborted) return
    const endMs = this.#clock.monotonicMs()
    this.#record(state, { lastStartMs, lastDurationMs: endMs - startMs }, error)
    const periodEndMs = startMs + job.periodMs
    state.dueMs = state.again ? endMs : Math.max(periodEndMs, endMs + (restMs ?? 0))
    this.#startDue()
  }

  #record(state: JobState, times: { lastStartMs: number; lastDurationMs: number }, error: unknown): void {
    const { name, periodMs, runs, error: before } = state.report
    const message = error === undefined ? undefined : errorMessage(error)
    if (message !== undefined && message !== before)
      this.#logger.warn({ job: name, err: error }, 'node job failed')
    state.report = {
      name,
      periodMs,
      running: false,
      runs: runs + 1,
      ...times,
      ...(message !== undefined && { error: message }),
    }
  }
}
