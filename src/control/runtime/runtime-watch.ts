import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { RuntimeFeatures } from '../../pod/state/observed.ts'
import { apiVersionProblem } from '../../runtime/cri-client.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import { readNetworkProblem, readRuntimeFeatures, readRuntimeProblem } from '../../translate/observe.ts'

/** What the watch looks at, and who hears of it. */
interface WatchEnv {
  readonly clock: Clock
  readonly pulse: Pick<RuntimePulse, 'answer' | 'answers' | 'isAsking'>
  /** Everything observed of the runtime before is out of date. */
  readonly onGap: (message: string) => void
  /** The wall clock may have been set. */
  readonly onClockSet: () => void
  /**
   * The runtime has been silent for so many milliseconds, over as many questions as it left unanswered, not counting time in
   * which podd did not run; called every five seconds until it answers. Undefined for an external runtime, which is asked only
   * while a call waits for it.
   */
  readonly onSilence: ((silentMs: number) => void) | undefined
}

/** How often the runtime is asked whether it answers. */
const periodMs = 10_000
/** After this it counts as silent. If its last answer took longer, twice that time applies, up to the longest. */
const silentMs = 5_000
const longestSilentMs = 30_000
/** A timer that is later than this shows that podd did not run. */
const stoppedMs = 10_000
/** What the wall clock gains or loses more than this between two looks, it was set by, or the host was suspended. */
const driftMs = 1000

/** Why everything observed of the runtime before is out of date. */
export const poddStood = 'podd did not run for a while'
export const hostStood = 'the host was suspended'

/**
 * Notices that the runtime has answered nothing for a while, and that podd itself did not run: stopped by a signal,
 * or with the whole host. What happened in such a gap was not observed.
 */
export class RuntimeWatch {
  readonly #env: WatchEnv
  #lookedMonotonicMs: number
  #lookedWallMs: number
  /** For how long the host was suspended since its boot. */
  #suspendedMs: number
  /** How long the last answer took. */
  #answerMs = 0
  /** How many answers the runtime had given when its silence began, and for how long it has lasted. */
  #silence = { answers: 0, ms: 0 }

  constructor(env: WatchEnv) {
    this.#env = env
    this.#lookedMonotonicMs = env.clock.monotonicMs()
    this.#lookedWallMs = env.clock.wallMs()
    this.#suspendedMs = this.#readSuspendedMs()
  }

  /** Runs until the signal is aborted; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, pulse, onSilence } = this.#env
    this.#noteLook()
    while (!signal.aborted) {
      await sleepUnlessAborted(clock, periodMs, signal)
      if (signal.aborted) return
      this.look()
      if (onSilence !== undefined || pulse.isAsking) await this.#ask(signal)
    }
  }

  /** Whether podd is just waking up from a gap. Ask before acting on an observation. */
  look(): void {
    const { clock, onGap, onClockSet } = this.#env
    const monotonicMs = clock.monotonicMs()
    const wallMs = clock.wallMs()
    const ranMs = monotonicMs - this.#lookedMonotonicMs
    const gainedMs = wallMs - this.#lookedWallMs - ranMs
    this.#noteLook()
    if (Math.abs(gainedMs) > driftMs) onClockSet()
    const suspendedBeforeMs = this.#suspendedMs
    // The wall clock shows it too, and is read in a fraction of the time.
    if (gainedMs > driftMs) this.#suspendedMs = this.#readSuspendedMs()
    if (this.#suspendedMs - suspendedBeforeMs > stoppedMs) onGap(hostStood)
    else if (ranMs - periodMs > stoppedMs) onGap(poddStood)
  }

  /** The monotonic clock stands still then. */
  #readSuspendedMs(): number {
    return this.#env.clock.uptimeMs() - this.#env.clock.monotonicMs()
  }

  #noteLook(): void {
    this.#lookedMonotonicMs = this.#env.clock.monotonicMs()
    this.#lookedWallMs = this.#env.clock.wallMs()
  }

  /**
   * Resolves when the runtime has answered or turned out to be unavailable. A slow runtime doesn't count as silent each
   * time: every silence makes earlier lists outdated, and a list that takes longer than the time between two silences
   * would never count.
   */
  async #ask(signal: AbortSignal): Promise<void> {
    const { clock, pulse, onGap, onSilence } = this.#env
    const askedMs = clock.monotonicMs()
    if (this.#silence.answers !== pulse.answers) this.#silence = { answers: pulse.answers, ms: 0 }
    const silence = this.#silence
    const limitMs = Math.min(
      longestSilentMs,
      silentMs * Math.max(1, Math.ceil((2 * this.#answerMs) / silentMs)),
    )
    const answered = new AbortController()
    void pulse.answer().then((isAnswered) => {
      if (isAnswered) this.#answerMs = clock.monotonicMs() - askedMs
      answered.abort()
    })
    const over = AbortSignal.any([signal, answered.signal])
    const isSilent = (): Promise<boolean> =>
      clock.sleep(silentMs, over).then(
        () => true,
        // It answered, or the watch ends.
        () => false,
      )
    let waitedMs = 0
    while (await isSilent()) {
      this.look()
      waitedMs += silentMs
      silence.ms += silentMs
      if (waitedMs === limitMs) onGap('the container runtime does not answer')
      onSilence?.(silence.ms)
    }
    // The question has a deadline, and the silence goes on until the next one.
    if (waitedMs > 0) silence.ms += periodMs
  }
}

const beatMs = 500
/** An answer within this time is normal on a loaded host. */
const noticeableMs = 100

/**
 * Measures for how long the runtime did not answer, by a cheap call that is sent while other calls wait for it. Without
 * such calls none is sent.
 */
export class RuntimePulse {
  readonly #clock: Clock
  readonly #ask: () => Promise<unknown>
  #waiting = 0
  #silentMs = 0
  #answers = 0
  #question: { readonly sinceMs: number; readonly answered: Promise<boolean> } | undefined
  #timer: Timer | undefined

  /**
   * @param ask resolves when the runtime has answered; rejects where it is unavailable, or after a deadline of its own
   */
  constructor(clock: Clock, ask: () => Promise<unknown>) {
    this.#clock = clock
    this.#ask = ask
  }

  /** A call begins to wait for the runtime. Returns a mark for `silentMs`; call `leave` once afterwards. */
  enter(): number {
    this.#waiting += 1
    this.#arm()
    return this.#totalMs()
  }

  leave(): void {
    this.#waiting -= 1
    if (this.#waiting > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** For how many milliseconds the runtime was silent since the mark, as far as that was measured. */
  silentMs(mark: number): number {
    return this.#totalMs() - mark
  }

  /** How many questions the runtime has answered, whoever asked. */
  get answers(): number {
    return this.#answers
  }

  /** A call is in flight. */
  get isAsking(): boolean {
    return this.#question !== undefined
  }

  /**
   * Sends the cheap call, unless one is in flight. Resolves with true when the runtime has answered, with false when
   * the call failed.
   */
  answer(): Promise<boolean> {
    if (this.#question !== undefined) return this.#question.answered
    const sinceMs = this.#clock.monotonicMs()
    const close = (isAnswered: boolean): boolean => {
      this.#silentMs += this.#openMs()
      this.#question = undefined
      if (isAnswered) this.#answers += 1
      return isAnswered
    }
    const answered = this.#ask().then(
      () => close(true),
      // Its silence is the answer; `RuntimeWatch` reports it when it lasts.
      () => close(false),
    )
    this.#question = { sinceMs, answered }
    return answered
  }

  #totalMs(): number {
    return this.#silentMs + this.#openMs()
  }

  /** For how long the call in flight has been unanswered. */
  #openMs(): number {
    if (this.#question === undefined) return 0
    const openMs = this.#clock.monotonicMs() - this.#question.sinceMs
    return openMs < noticeableMs ? 0 : openMs
  }

  #arm(): void {
    this.#timer ??= this.#clock.startTimer(beatMs, () => {
      this.#timer = undefined
      void this.answer()
      this.#arm()
    })
  }
}

/** The runtime's problem until it was listed. */
export const notAskedYet = 'waiting for the container runtime'

/** What is known of the runtime and the sources as a whole. The reconciler alone changes it. */
export class SystemState {
  /** Why the runtime doesn't answer; undefined while it does, whatever it says of itself. */
  outage: string | undefined = notAskedYet
  /** The runtime was listed since podd began. */
  isListed = false
  /** Every source has given its objects. */
  objectsKnown = false
  readonly #firstList = Promise.withResolvers<void>()

  /** Resolves when the pods were brought in line with the first list of the runtime. */
  get whenListed(): Promise<void> {
    return this.#firstList.promise
  }

  noteReconciled(): void {
    this.#firstList.resolve()
  }
}

/** Who hears what the runtime reports. */
interface KnowledgeListener {
  /** It has reported its features. */
  readonly onLearnt: () => void
  /** `runtimeProblem` or `networkProblem` has changed by what it reports. */
  readonly onReadiness: () => void
  /** It is podd's own: podd configures its network. */
  readonly isOwnRuntime: boolean
}

const learnAgainMs = 10_000
/** How often a runtime that is not ready is asked: there is no event for it (the kubelet's `updateRuntimeUp` asks as often). */
const notReadyMs = 5000
/** How often one that is ready is asked; that it isn't any more shows earlier where a sandbox can't be made. */
const readyMs = 60_000

/** What the runtime last reported of itself: its features, and what it is not ready for. */
export class RuntimeKnowledge {
  readonly #runtime: RuntimeService
  readonly #state: Readonly<SystemState>
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #listener: KnowledgeListener
  #features: RuntimeFeatures | undefined
  #timer: Timer | undefined
  #problem: string | undefined
  #networkProblem: string | undefined
  readonly #learnt = Promise.withResolvers<void>()

  constructor(
    runtime: RuntimeService,
    state: Readonly<SystemState>,
    clock: Clock,
    logger: Logger,
    listener: KnowledgeListener,
  ) {
    this.#runtime = runtime
    this.#state = state
    this.#clock = clock
    this.#logger = logger
    this.#listener = listener
  }

  /** Undefined until the runtime has reported them. */
  get features(): RuntimeFeatures | undefined {
    return this.#features
  }

  /** Why the runtime can't be used for now: it doesn't answer, or it is not ready, or speaks another API. */
  get runtimeProblem(): string | undefined {
    return this.#state.outage ?? this.#problem
  }

  /** Why it can't make sandboxes with a network of their own, and what to do; undefined where it can. */
  get networkProblem(): string | undefined {
    return this.#networkProblem
  }

  /** Resolves when the runtime was asked for the first time. */
  get asked(): Promise<void> {
    return this.#learnt.promise
  }

  /**
   * Asks the runtime, again and again until it answers: a runtime that was unavailable may be another version
   * afterwards. Never rejects.
   */
  async learn(): Promise<void> {
    const runtime = this.#runtime
    this.#timer?.cancel()
    if (this.#state.outage !== undefined) return
    try {
      const [version, status] = await Promise.all([runtime.version({}), runtime.status({ verbose: true })])
      this.#features = readRuntimeFeatures(version, status)
      const network = readNetworkProblem(status, this.#listener.isOwnRuntime)
      this.#note(apiVersionProblem(version) ?? readRuntimeProblem(status), network)
      this.#listener.onLearnt()
      this.#lookLater()
    } catch (error) {
      this.#logger.warn({ err: error }, 'cannot read the features of the container runtime')
      this.#timer = this.#clock.startTimer(learnAgainMs, () => void this.learn())
    } finally {
      this.#learnt.resolve()
    }
  }

  /** Asks again whether the runtime is ready. Never rejects. */
  async look(): Promise<void> {
    // It is asked for everything when it is back.
    if (this.#features === undefined || this.#state.outage !== undefined) return
    // What it says of its network's configuration stands in the long answer.
    if (this.#problem !== undefined || this.#networkProblem !== undefined) return this.learn()
    try {
      const status = await this.#runtime.status({})
      const { isOwnRuntime } = this.#listener
      if ((readRuntimeProblem(status) ?? readNetworkProblem(status, isOwnRuntime)) !== undefined)
        return await this.learn()
    } catch (error) {
      this.#logger.debug({ err: error }, 'cannot ask the container runtime whether it is ready')
    }
    this.#lookLater()
  }

  #lookLater(): void {
    const isReady = this.#problem === undefined && this.#networkProblem === undefined
    this.#timer?.cancel()
    this.#timer = this.#clock.startTimer(isReady ? readyMs : notReadyMs, () => void this.look())
  }

  #note(problem: string | undefined, network: string | undefined): void {
    const isNews = this.#problem !== problem || this.#networkProblem !== network
    this.#problem = problem
    this.#networkProblem = network
    if (isNews) this.#listener.onReadiness()
  }

  stop(): void {
    this.#timer?.cancel()
  }
}
