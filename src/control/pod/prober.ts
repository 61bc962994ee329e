/**
 * Probes what runs. It is told which containers run (`setPod`), probes them by itself, and says when a verdict changes
 * (`onResult`); passes read its verdicts. One worker per container and kind of probe (prober-worker.ts), all of them on one
 * timer; decide/plan/probe-reducer.ts decides what results mean.
 */
import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { RandomSource } from '../../base/random.ts'
import { Semaphore } from '../../base/waits.ts'
import type { ProbeKind, ProbeVerdict, ProbeVerdicts } from '../../decide/plan/pod-facts.ts'
import { applyEnding, applyFinding, followingTickMs, nextProbeMs } from '../../decide/plan/probe-reducer.ts'
import type { ProbeState } from '../../decide/plan/probe-reducer.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { ContainerId, PodUid } from '../../pod/values/ids.ts'
import type { ExecSync } from '../../probes/exec-probe.ts'
import type { ProbeOutcome } from '../../probes/probe-outcome.ts'
import type { RunProbe } from '../../probes/run-probe.ts'
import { callDeadlineMs } from '../../runtime/cri-client.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import { abortWorker, createWorker, describeOutcome, probeKinds, restartWorker } from './prober-worker.ts'
import type { ProbedContainer, ProbedPod, ProbeReport, ProbeWorker } from './prober-worker.ts'

/** A verdict changed. */
export interface ProbeResultEvent {
  readonly uid: PodUid
  readonly container: string
  readonly containerId: ContainerId
  readonly probe: ProbeKind
  readonly result: ProbeVerdict
  /** The probe's output, as its event has it; empty for a success. */
  readonly message: string
}

/** What probes are sent with, and who hears of them. */
interface ProberEnv {
  readonly clock: Clock
  readonly random: RandomSource
  readonly runProbe: RunProbe
  readonly events: EventRecorder
  /** Must not throw. */
  readonly onResult: (event: ProbeResultEvent) => void
  /** Called for each probe sent, with its delay. */
  readonly onStart?: (latenessMs: number) => void
}

/** How often a probe is tried that cannot be carried out (kubelet: maxProbeRetries). */
const maxTries = 3
/** How often a probe is repeated because podd was late or the runtime silent. */
const maxRepeats = 3
/**
 * A timeout doesn't count when podd or the runtime stalled for this share of it; an answer after such a stall is late.
 */
const stalledShare = 0.1
/** Up to this share, repeated timeouts do count: an answer would have been read. */
const blindShare = 0.5
/** Bounds on the probes in flight: sockets are cheap, commands in containers are not. */
const maxNetworkProbes = 256
const maxExecProbes = 64

/** The workers of one pod, by container. */
type PodProbes = Map<string, Map<ProbeKind, ProbeWorker>>

export class Prober {
  readonly #env: ProberEnv
  readonly #clock: Clock
  readonly #startedMs: number
  readonly #pods = new Map<PodUid, PodProbes>()
  readonly #schedule: ProberSchedule<ProbeWorker>
  readonly #lag: ProberLag
  readonly #networkGate = new Semaphore(maxNetworkProbes)
  readonly #execGate = new Semaphore(maxExecProbes)
  #stopped = false

  constructor(env: ProberEnv) {
    this.#env = env
    this.#clock = env.clock
    this.#startedMs = env.clock.monotonicMs()
    this.#lag = new ProberLag(env.clock)
    this.#schedule = new ProberSchedule(env.clock, (worker, dueMs) => this.#start(worker, dueMs))
  }

  /** Sets the pod's current state. Call it after every change; a call without one does nothing. */
  setPod(probed: ProbedPod): void {
    if (this.#stopped) return
    const { uid } = probed.pod
    const probes: PodProbes = this.#pods.get(uid) ?? new Map()
    this.#pods.set(uid, probes)
    for (const container of probed.containers) this.#setContainer(probes, probed, container)
    const running = new Set(probed.containers.map(({ name }) => name))
    for (const worker of this.#workersOf(uid)) if (!running.has(worker.container)) this.#halt(worker)
  }

  /** Forgets the pod, and cancels its probes at once. */
  removePod(uid: PodUid): void {
    for (const worker of this.#workersOf(uid)) this.#halt(worker)
    this.#pods.delete(uid)
  }

  verdicts(uid: PodUid): ProbeVerdicts {
    const verdicts: Record<ContainerId, ProbeVerdicts[ContainerId]> = {}
    for (const { kind, state } of this.#workersOf(uid))
      verdicts[state.containerId] = { ...verdicts[state.containerId], [kind]: state.verdict }
    return verdicts
  }

  reports(uid: PodUid): readonly ProbeReport[] {
    return [...this.#workersOf(uid)].map(({ container, kind: probe, state, lastFailure, counts }) => {
      const { containerId, verdict: result } = state
      return { container, containerId, probe, result, lastFailure, counts }
    })
  }

  /** Ends everything; the prober can't be used afterwards. */
  stop(): void {
    this.#stopped = true
    for (const uid of this.#pods.keys()) this.removePod(uid)
    this.#schedule.clear()
  }

  *#workersOf(uid: PodUid): Generator<ProbeWorker, void> {
    for (const workers of this.#pods.get(uid)?.values() ?? []) yield* workers.values()
  }

  #setContainer(probes: PodProbes, probed: ProbedPod, container: ProbedContainer): void {
    const workers = probes.get(container.name) ?? new Map<ProbeKind, ProbeWorker>()
    probes.set(container.name, workers)
    const { spec } = container
    const target = {
      containerId: container.containerId,
      podIps: probed.podIps,
      ports: spec.ports,
      ...(spec.env !== undefined && { env: spec.env }),
    }
    for (const kind of probeKinds) {
      const probe = spec[`${kind}Probe`]
      const known = workers.get(kind)
      if (probe === undefined) {
        if (known !== undefined) this.#halt(known)
        workers.delete(kind)
        continue
      }
      const now = { wallMs: this.#clock.wallMs(), monotonicMs: this.#clock.monotonicMs() }
      const jitterMs = this.#jitterMs(probe.periodSeconds * 1000)
      const worker = known ?? createWorker(probed.pod, container, kind, probe, jitterMs, now)
      workers.set(kind, worker)
      worker.probe = probe
      if (worker.state.containerId !== container.containerId) {
        abortWorker(worker)
        restartWorker(worker, container, now)
      }
      worker.target = target
      worker.ending = probed.ending
      if (probed.ending && kind !== 'readiness') {
        abortWorker(worker)
        this.#publish(worker, applyEnding(kind, worker.state), '')
      }
    }
    for (const worker of workers.values()) this.#reschedule(worker)
  }

  /** Spreads the first probes after a start of podd (kubelet prober/worker.go run, 1.36). */
  #jitterMs(periodMs: number): number {
    const isFresh = this.#clock.monotonicMs() - this.#startedMs < periodMs
    return isFresh ? this.#env.random() * periodMs : 0
  }

  #halt(worker: ProbeWorker): void {
    worker.target = undefined
    this.#schedule.delete(worker)
    abortWorker(worker)
  }

  #reschedule(worker: ProbeWorker): void {
    if (worker.inFlight) return
    const { kind, state, ending, notBeforeMs, tickMs } = worker
    const startup = this.#sibling(worker, 'startup')
    const startedUp = startup === undefined || startup.state.verdict === 'success'
    const dueMs =
      worker.target === undefined
        ? undefined
        : nextProbeMs({ kind, state, ending, startedUp, notBeforeMs, tickMs })
    if (dueMs === undefined) this.#schedule.delete(worker)
    else this.#schedule.set(worker, dueMs)
  }

  #sibling(worker: ProbeWorker, kind: ProbeKind): ProbeWorker | undefined {
    return this.#pods.get(worker.pod.uid)?.get(worker.container)?.get(kind)
  }

  #start(worker: ProbeWorker, dueMs: number): void {
    const { signal } = worker.controller
    const gate = worker.probe.exec === undefined ? this.#networkGate : this.#execGate
    worker.inFlight = true
    // Aborted before its turn it is none of this worker's any more.
    void gate.run(() => this.#probe(worker, dueMs, signal), signal).catch(() => undefined)
  }

  /** Never rejects. */
  async #probe(worker: ProbeWorker, dueMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    this.#env.onStart?.(this.#clock.monotonicMs() - dueMs)
    const outcome = await this.#tryProbe(worker, signal)
    if (signal.aborted) return
    worker.inFlight = false
    worker.tickMs = followingTickMs(dueMs, worker.probe.periodSeconds * 1000, this.#clock.monotonicMs())
    if (outcome !== undefined) this.#take(worker, outcome)
    this.#reschedule(worker)
  }

  /** Undefined without a result: the probe was cancelled, or podd was too busy, or the runtime did not answer. */
  async #tryProbe(worker: ProbeWorker, signal: AbortSignal): Promise<ProbeOutcome | undefined> {
    const { probe, target } = worker
    if (target === undefined) return undefined
    let repeats = 0
    let tries = 0
    for (;;) {
      const mark = this.#lag.enter()
      const outcome = await this.#env
        .runProbe(probe, target, signal)
        .catch((error: unknown): ProbeOutcome => ({ result: 'unknown', output: errorMessage(error) }))
      const stalledMs = this.#lag.leave(mark)
      if (signal.aborted) return undefined
      const share = lateShare(outcome, stalledMs, probe.timeoutSeconds * 1000)
      if (share >= stalledShare && repeats < maxRepeats) {
        worker.counts = { ...worker.counts, repeated: worker.counts.repeated + 1 }
        repeats += 1
        if (outcome.silentMs !== undefined) await this.#spread(worker, signal)
        continue
      }
      // A success that is late again and again counts all the same.
      if (share >= blindShare && outcome.result === 'failure') return undefined
      tries += 1
      if (outcome.result !== 'unknown' || tries >= maxTries) return outcome
    }
  }

  /** Spreads the repeated probes: all wait for a silent runtime, and must not load it at once when it answers again. */
  async #spread(worker: ProbeWorker, signal: AbortSignal): Promise<void> {
    const delayMs = this.#env.random() * worker.probe.periodSeconds * 1000
    await sleepUnlessAborted(this.#clock, delayMs, signal)
  }

  #take(worker: ProbeWorker, outcome: ProbeOutcome): void {
    const counted = outcome.result === 'warning' ? 'success' : outcome.result
    worker.counts = { ...worker.counts, [counted]: worker.counts[counted] + 1 }
    const message = describeOutcome(worker.kind, outcome)
    if (message !== undefined) this.#tell(worker, message, outcome.result === 'warning')
    const finding = counted === 'unknown' ? 'errored' : counted
    this.#publish(worker, applyFinding(worker.kind, worker.probe, worker.state, finding), message ?? '')
  }

  #tell(worker: ProbeWorker, message: string, isWarningOnly: boolean): void {
    const { pod, container, state } = worker
    if (!isWarningOnly) {
      worker.lastFailure = { containerId: state.containerId, atMs: this.#clock.wallMs(), message }
    }
    if (!worker.events.takeNow(this.#clock.monotonicMs())) return
    const reason = isWarningOnly ? 'ProbeWarning' : 'Unhealthy'
    this.#env.events.record({ pod, container, type: 'Warning', reason, message })
  }

  #publish(worker: ProbeWorker, state: ProbeState, message: string): void {
    const hasChanged = state.verdict !== worker.state.verdict
    worker.state = state
    if (!hasChanged) return
    if (worker.kind === 'startup' && state.verdict === 'success') this.#openGate(worker)
    this.#env.onResult({
      uid: worker.pod.uid,
      container: worker.container,
      containerId: state.containerId,
      probe: worker.kind,
      result: state.verdict,
      message,
    })
  }

  /** The container has started up: the probes that waited for that are due now. */
  #openGate(startup: ProbeWorker): void {
    for (const kind of ['readiness', 'liveness'] as const) {
      const worker = this.#sibling(startup, kind)
      if (worker === undefined || worker.inFlight) continue
      worker.tickMs = this.#clock.monotonicMs()
      this.#reschedule(worker)
    }
  }
}

/** What is due at one time, and the timer for it. */
interface DueItems<T> {
  readonly dueMs: number
  readonly items: Set<T>
  readonly timer: Timer
}

/**
 * When each of many items is due. An item has at most one due time; a new one replaces the old. All that is due at one time has
 * one timer: most probes are, as they are sent on full tenths of a second.
 */
export class ProberSchedule<T extends object> {
  readonly #clock: Clock
  readonly #onDue: (item: T, dueMs: number) => void
  readonly #byItem = new Map<T, DueItems<T>>()
  readonly #byTime = new Map<number, DueItems<T>>()

  constructor(clock: Clock, onDue: (item: T, dueMs: number) => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /** In monotonic milliseconds. */
  set(item: T, dueMs: number): void {
    if (this.#byItem.get(item)?.dueMs === dueMs) return
    this.delete(item)
    const due = this.#byTime.get(dueMs) ?? this.#begin(dueMs)
    due.items.add(item)
    this.#byItem.set(item, due)
  }

  delete(item: T): void {
    const due = this.#byItem.get(item)
    if (due === undefined) return
    this.#byItem.delete(item)
    due.items.delete(item)
    if (due.items.size > 0) return
    due.timer.cancel()
    if (this.#byTime.get(due.dueMs) === due) this.#byTime.delete(due.dueMs)
  }

  clear(): void {
    for (const item of this.#byItem.keys()) this.delete(item)
  }

  #begin(dueMs: number): DueItems<T> {
    const items = new Set<T>()
    const timer = this.#clock.startTimer(dueMs - this.#clock.monotonicMs(), () => {
      this.#byTime.delete(dueMs)
      // One that is due may take another out.
      for (const item of items) {
        this.delete(item)
        this.#onDue(item, dueMs)
      }
    })
    const due = { dueMs, items, timer }
    this.#byTime.set(dueMs, due)
    return due
  }
}

/** The period of the heartbeat, while anything is in flight. */
const heartbeatMs = 50
/** Lateness below this is normal on any healthy host: timers and other work cause it. */
const noticeableMs = 10

/**
 * Measures how long podd itself was kept from sending and reading (a blocked event loop, a host that gave it no CPU)
 * while a piece of work was in flight: by how much a regular heartbeat came late. The heartbeat runs only while there
 * is such work.
 */
export class ProberLag {
  readonly #clock: Clock
  #inFlight = 0
  #stalledMs = 0
  #beat: { readonly dueMs: number; readonly timer: Timer } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Work begins. Returns a mark, which `leave` takes. */
  enter(): number {
    this.#inFlight += 1
    if (this.#beat === undefined) this.#arm()
    return this.#soFarMs()
  }

  /** Work ends. Returns for how many milliseconds podd stalled since `enter`. */
  leave(mark: number): number {
    this.#inFlight -= 1
    const stalledMs = this.#soFarMs() - mark
    if (this.#inFlight === 0) {
      this.#stalledMs = 0
      this.#beat?.timer.cancel()
      this.#beat = undefined
    }
    return stalledMs
  }

  #soFarMs(): number {
    return this.#stalledMs + this.#latenessMs()
  }

  #latenessMs(): number {
    if (this.#beat === undefined) return 0
    const lateMs = this.#clock.monotonicMs() - this.#beat.dueMs
    return lateMs < noticeableMs ? 0 : lateMs
  }

  #arm(): void {
    const dueMs = this.#clock.monotonicMs() + heartbeatMs
    const timer = this.#clock.startTimer(heartbeatMs, () => {
      this.#stalledMs += this.#latenessMs()
      this.#arm()
    })
    this.#beat = { dueMs, timer }
  }
}

/** The share of a probe's timeout during which podd could not have received an answer, from 0 to 1. */
function lateShare(outcome: ProbeOutcome, stalledMs: number, timeoutMs: number): number {
  if (outcome.result === 'unknown') return 0
  const lateMs = (outcome.timedOut === true ? stalledMs : 0) + (outcome.silentMs ?? 0)
  return lateMs / timeoutMs
}

/** How exec probes run in containers: ExecSync, which takes whole seconds. */
export function execProbes(runtime: Pick<RuntimeService, 'execSync'>): ExecSync {
  return async ({ containerId, cmd, timeoutMs, signal, onSent }) => {
    try {
      const timeout = Math.max(1, Math.ceil(timeoutMs / 1000))
      const { exitCode, stdout, stderr } = await runtime.execSync(
        { containerId, cmd, timeout },
        { signal, onSent, deadlineMs: timeoutMs + callDeadlineMs },
      )
      return { exitCode, output: Buffer.concat([stdout, stderr]).toString('utf8') }
    } catch (error) {
      // An answer of the runtime itself, not its absence.
      const isAnswer = isCriError(error, 'RUNTIME_TIMEOUT') && error.grpcCode !== undefined
      if (isAnswer) return { exitCode: -1, output: '', timedOut: true }
      throw error
    }
  }
}
