import type { Timer } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { WakeSlot } from '../../base/waits.ts'
import { retryOf } from '../../decide/plan/backoff.ts'
import type { Retry, RetryKey } from '../../decide/plan/backoff.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ContainerId, PodRef } from '../../pod/values/ids.ts'
import type { PodEnv } from './env.ts'
import type { PodState } from './state.ts'

/** What ends waits; calls that change something are never cancelled. */
export interface PassSignals {
  /** Aborted when the pod is to end, or podd stops. */
  readonly pass: AbortSignal
  /** Aborted also when the manifest has changed: for waits for what it may not want any more. */
  readonly manifest: AbortSignal
  /** Aborted when podd stops, or the pod is gone: for hooks, which outlive a pass. */
  readonly life: AbortSignal
}

/**
 * A pass that carries out a plan. Its executors keep to what was known when it decided, whatever is observed meanwhile;
 * what happens, they tell the state.
 */
export interface Pass {
  readonly state: PodState
  readonly loop: PassLoop
  readonly signals: PassSignals
  readonly ref: PodRef
  /** With the resources that it was admitted with. */
  readonly pod: Pod
  readonly record: PodRecord
  readonly observed: ObservedPod
  /** Which of the containers that it stops it starts again, whatever their exit codes. */
  readonly restartsDue: readonly ContainerId[]
  /** No process of the pod runs any more; its sandboxes are about to be stopped. */
  readonly onContainersStopped: () => void
  /** The names of containers that it has made: `observed` is from before. */
  readonly made: Set<string>
}

export type StartAction = Extract<PodAction, { kind: 'start-container' }>

/** Thrown into a pass to end its waits. */
export class Interrupted extends PoddError {
  constructor() {
    super('INTERRUPTED', 'the pod has more urgent work')
  }
}

/** Thrown by a pass whose view of the runtime is outdated: the pod is read again at once. */
export class OutdatedView extends Interrupted {}

/**
 * How long what failed for a reason of podd's, the host's or the runtime's isn't tried again, unless something changes: the
 * kubelet's 10 s after an error.
 */
export const errorRetryMs = 10_000

/** To be called before each act that rests on `observed`. Throws OutdatedView where the runtime or podd was away since. */
export function checkSeen(env: PodEnv, state: PodState): void {
  if (env.runtimeLosses() !== state.lossesWhenSeen) throw new OutdatedView()
}

/** Puts off what has failed. One that waits for something on the host ends early when that is there. */
export function retryLater(env: PodEnv, pass: Pass, key: RetryKey, retry: Retry): void {
  const { state, loop, signals } = pass
  state.retryLater(key, retry)
  if (retry.awaitedPath === undefined) return
  const signal = AbortSignal.any([signals.life, loop.nextPlan])
  void env.volumes.whenThere(retry.awaitedPath, signal).then(
    () => {
      if (signal.aborted || retryOf(state.retries, key) !== retry) return
      state.retryNow(key)
      loop.wake()
    },
    // The next pass looks anyway.
    () => undefined,
  )
}

export function makeRetry(
  env: PodEnv,
  waiting: Retry['waiting'],
  until: { readonly afterMs?: number; readonly awaitedPath?: string | undefined } = {},
): Retry {
  const { afterMs = errorRetryMs, awaitedPath } = until
  const untilMs = env.clock.wallMs() + afterMs
  return { untilMs, waiting, ...(awaitedPath !== undefined && { awaitedPath }) }
}

/** Whether the call was not sent, because the pod has more urgent work. */
export function isAbandoned({ signals }: Pass, error: unknown): boolean {
  return signals.manifest.aborted && error === signals.manifest.reason
}

/** What a PassLoop runs. */
interface PassWork {
  /** What it throws goes to `onError`, except Interrupted. */
  readonly pass: (signals: PassSignals) => Promise<void>
  /** The pass did not throw. Never throws. */
  readonly onDone: () => void
  /** Something changed while a pass acts. Never rejects. `isActing`: that pass still does. */
  readonly look: (isActing: () => boolean) => Promise<void>
  /** Never throws. */
  readonly onError: (error: unknown) => void
  /** No further pass is needed. */
  readonly isDone: () => boolean
}

/** The delay before news is published; a pass that ends sooner publishes it itself. */
const newsDelayMs = 1000

/**
 * Runs one pass of a pod after another, each when it is woken or due; never two at a time. There is no queue: a pass goes by
 * the newest facts.
 */
export class PassLoop {
  readonly #env: Pick<PodEnv, 'clock' | 'turns'>
  readonly #work: PassWork
  readonly #slot = new WakeSlot()
  readonly #pace = new PassPace()
  /** Ends the waits of the pass in flight. */
  #interrupt = new AbortController()
  /** Ends those that a changed manifest may have made pointless. */
  #outdate = new AbortController()
  /** Ends hooks. */
  readonly #life = new AbortController()
  #nextPlan = new AbortController()
  /** The signal of the pass that carries out its plan; undefined while none does. */
  #acting: AbortSignal | undefined
  #timer: Timer | undefined
  #newsTimer: Timer | undefined
  #stopping = false
  #running: Promise<void> | undefined

  constructor(env: Pick<PodEnv, 'clock' | 'turns'>, work: PassWork) {
    this.#env = env
    this.#work = work
  }

  /** Begins; once. The first pass runs as soon as it can. */
  start(): void {
    if (this.#running !== undefined) return
    this.#running = this.#run()
    this.#slot.wake()
  }

  /** There may be something to do: a pass runs soon. */
  wake(): void {
    this.#slot.wake()
  }

  /** Replaces an earlier `wakeIn`. */
  wakeIn(delayMs: number): void {
    this.#timer?.cancel()
    this.#timer = this.#env.clock.startTimer(delayMs, () => this.#slot.wake())
  }

  /** While a pass carries out its plan, looks at what has changed by then. */
  lookSoon(): void {
    if (this.#acting === undefined) return
    this.#newsTimer ??= this.#env.clock.startTimer(newsDelayMs, () => {
      this.#newsTimer = undefined
      const acting = this.#acting
      void this.#work.look(() => acting !== undefined && acting === this.#acting && !acting.aborted)
    })
  }

  /** The pass in flight ends as soon as it can, and another one begins. */
  interrupt(): void {
    this.#interrupt.abort(new Interrupted())
    this.#slot.wake()
  }

  /** Ends the waits of the pass in flight that the manifest may have made pointless: it has changed. */
  endWaits(): void {
    this.#outdate.abort(new Interrupted())
  }

  /** Ends the pod's hooks: it is gone. */
  endHooks(): void {
    this.#life.abort(new Interrupted())
  }

  /** Resolves when the pass in flight has stopped; none follows it. */
  async stop(): Promise<void> {
    this.endHooks()
    this.#stopping = true
    this.interrupt()
    await this.#running
  }

  /** Aborted when the next plan is carried out. */
  get nextPlan(): AbortSignal {
    return this.#nextPlan.signal
  }

  /** The pass in flight carries out a plan, until `endActing`. */
  beginActing(): void {
    this.#acting = this.#interrupt.signal
    this.#nextPlan.abort()
    this.#nextPlan = new AbortController()
  }

  endActing(): void {
    this.#acting = undefined
    this.#newsTimer?.cancel()
    this.#newsTimer = undefined
  }

  /** Returns only when stopped or done; never rejects. */
  async #run(): Promise<void> {
    while (!this.#stopping && !this.#work.isDone()) {
      await this.#slot.wait()
      if (this.#stopping) break
      this.#timer?.cancel()
      const paceMs = this.#pace.delayMs(this.#env.clock.monotonicMs())
      if (paceMs > 0) {
        this.wakeIn(paceMs)
        continue
      }
      const turn = this.#env.turns.enter()
      if (turn !== undefined) await turn
      if (this.#stopping) break
      this.#interrupt = new AbortController()
      this.#outdate = new AbortController()
      const { signal: pass } = this.#interrupt
      const manifest = AbortSignal.any([pass, this.#outdate.signal])
      try {
        await this.#work.pass({ pass, manifest, life: this.#life.signal })
        this.#work.onDone()
      } catch (error) {
        if (error instanceof OutdatedView) this.#slot.wake()
        else if (!(error instanceof Interrupted)) this.#work.onError(error)
      }
    }
    this.#timer?.cancel()
  }
}

const windowMs = 1000
const passesPerWindow = 30

/**
 * Limits the rate of passes: a runtime that reports a container as stopped and then lists it as running must not make
 * podd spin. A pod normally needs only a few passes at once.
 */
class PassPace {
  #fromMs = -Infinity
  #passes = 0

  /** For how many milliseconds a pass that is due at `nowMs` (monotonic) has to wait; 0 for none. */
  delayMs(nowMs: number): number {
    if (nowMs - this.#fromMs >= windowMs) {
      this.#fromMs = nowMs
      this.#passes = 0
    }
    this.#passes += 1
    return this.#passes <= passesPerWindow ? 0 : this.#fromMs + windowMs - nowMs
  }
}
