import type { ContainerGarbagePolicy } from '../../decide/node/plan-container-garbage.ts'
import type { SharedTurns, Timer } from '../../base/clock.ts'
import type { PodAction, PodPlan } from '../../decide/plan/pod-action.ts'
import type { ProbeVerdicts } from '../../decide/plan/pod-facts.ts'
import type { BackoffLimits } from '../../decide/plan/backoff.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { executeActions } from '../actions/execute-actions.ts'
import { fetchImagesAhead } from '../actions/fetch-images.ts'
import { OutdatedView } from '../actions/interrupted.ts'
import type { PassHooks, PassSignals, PodContext } from '../actions/pod-context.ts'
import { holdOf, withHold } from '../../decide/plan/backoff.ts'
import type { ActionOutcome } from '../actions/action-outcome.ts'
import { applyOutcome } from './apply-outcome.ts'
import type { PodState } from './pod-state.ts'

/** The dependencies of a pass. */
export interface PassDeps extends Pick<PodContext, 'host' | 'images' | 'events' | 'clock' | 'logger'> {
  /** Those of all pods: for work that many of them may be about to do. */
  readonly turns: SharedTurns
  /** The newest probe verdicts of this pod. */
  readonly probes: () => ProbeVerdicts
  readonly limits: BackoffLimits
  /** How many exited containers are kept. */
  readonly containerPolicy: ContainerGarbagePolicy
  /** See PodContext. */
  readonly networkProblem: () => Promise<string | undefined>
  /** Whether this runtime handler supports recursive read-only mounts. */
  readonly recursiveReadOnly: (runtimeHandler: string) => boolean
  /**
   * How often the runtime was unavailable or podd did not run so far. Observations from before the last time may be
   * outdated.
   */
  readonly runtimeLosses: () => number
  /** Whether all referenced objects have been loaded, so that an absent one is missing rather than not read yet. */
  readonly objectsKnown: () => boolean
}

export interface PodExecutorDeps extends PassDeps {
  readonly observe: (uid: PodUid) => Promise<ObservedPod | undefined>
}

export interface RunOptions {
  /** See PodJournal; left out where the plan is already in the record. */
  readonly recorded?: Promise<void>
  /** See PodPlan. */
  readonly restartsDue?: PodPlan['restartsDue']
  readonly onContainersStopped?: PassHooks['onContainersStopped']
}

/** The delay before news is published; a pass that ends sooner publishes it itself. */
const newsDelayMs = 1000

/**
 * Carries out the plans of one pod's passes. Observes the pod again while actions are in flight and something changed.
 */
export class PodExecutor {
  readonly #deps: PodExecutorDeps
  readonly #state: PodState
  readonly #onNews: (observed: ObservedPod) => void
  readonly #wake: () => void
  /** Ends the watches for paths that holds wait for. */
  #watches = new AbortController()
  /** The signal of the actions in flight; undefined while there are none. */
  #signal: AbortSignal | undefined
  #newsTimer: Timer | undefined

  /**
   * @param onNews called with an observation made while actions are in flight; the actions themselves keep to the
   * earlier one
   * @param wake called when what a hold waited for is there
   */
  constructor(
    deps: PodExecutorDeps,
    state: PodState,
    onNews: (observed: ObservedPod) => void,
    wake: () => void,
  ) {
    this.#deps = deps
    this.#state = state
    this.#onNews = onNews
    this.#wake = wake
  }

  /** Throws what a call threw, or the reason for which the pass ended. */
  async run(
    actions: readonly PodAction[],
    signals: PassSignals,
    { recorded = Promise.resolve(), restartsDue = [], onContainersStopped = () => {} }: RunOptions = {},
  ): Promise<void> {
    this.#signal = signals.pass
    this.#watches.abort()
    this.#watches = new AbortController()
    try {
      const context = this.#makeContext(signals, { recorded, restartsDue, onContainersStopped })
      for await (const outcome of executeActions(context, actions)) {
        if (outcome.kind === 'fetch-wanted') this.#fetchAhead(context, outcome.spec)
        else applyOutcome(this.#state, outcome)
        if (outcome.kind === 'held') this.#awaitPath(outcome, signals.life)
        // Resources that a runtime may not report are on disk before they are shown.
        if (outcome.kind === 'resized') await this.#state.memory.save('best-effort')
      }
    } finally {
      this.#signal = undefined
      this.#newsTimer?.cancel()
      this.#newsTimer = undefined
    }
  }

  #makeContext(
    signals: PassSignals,
    { recorded, restartsDue = [], onContainersStopped }: Required<RunOptions>,
  ): PodContext {
    const { host, images, events, clock, logger, networkProblem, turns, recursiveReadOnly, runtimeLosses } =
      this.#deps
    const { memory, ref, record, observed, fresh, allocatedPod: pod } = this.#state
    const { preStops, postStarts, linkedLogs, lossesWhenSeen } = this.#state
    return {
      ref,
      pod,
      record,
      observed,
      networkProblem,
      recursiveReadOnly: recursiveReadOnly(record.classes?.runtimeHandler ?? ''),
      fresh,
      host,
      images,
      events,
      clock,
      logger,
      signals,
      journal: {
        recorded: recorded.then(() => turns.enter()),
        claimPreStop: (id, isHeld) => memory.claimPreStop(id, isHeld, this.#state.observed),
        releasePreStop: (id) => memory.releasePreStop(id),
        notePostStart: (id) => memory.notePostStart(id, this.#state.observed),
        forgetPostStart: (id) => memory.forgetPostStart(id),
        noteRestarts: () => memory.noteRestarts(restartsDue),
        claimRestart: (id) => memory.claimRestart(id),
        charge: async (action) => {
          memory.charge(action)
          await memory.save('required')
        },
      },
      pass: {
        checkSeen: () => {
          if (runtimeLosses() !== lossesWhenSeen) throw new OutdatedView()
        },
        onContainersStopped,
        lookSoon: () => this.notice(),
      },
      inFlight: { preStops, postStarts, linkedLogs },
      made: new Set(),
    }
  }

  /**
   * Fetches the image that a running container needs for its next start. The outcome of a cancelled fetch is dropped.
   */
  #fetchAhead(context: PodContext, spec: ContainerSpec): void {
    this.#state.aheadFetches.begin(spec.name, async (signal) => {
      const outcome = await fetchImagesAhead(context, spec, signal)
      if (outcome !== undefined && !signal.aborted) applyOutcome(this.#state, outcome)
    })
  }

  /** Ends a hold early that waits for something on the host. */
  #awaitPath({ key, hold }: Extract<ActionOutcome, { kind: 'held' }>, life: AbortSignal): void {
    if (hold.awaitedPath === undefined) return
    const signal = AbortSignal.any([life, this.#watches.signal])
    void this.#deps.host.volumes.whenThere(hold.awaitedPath, signal).then(
      () => {
        if (signal.aborted || holdOf(this.#state.holds, key) !== hold) return
        this.#state.holds = withHold(this.#state.holds, key, undefined)
        this.#wake()
      },
      // The next pass looks anyway.
      () => undefined,
    )
  }

  /** The pod changed: its status is published soon if a slow action is in flight. */
  notice(): void {
    if (this.#signal !== undefined)
      this.#newsTimer ??= this.#deps.clock.startTimer(newsDelayMs, () => void this.#look())
  }

  async #look(): Promise<void> {
    this.#newsTimer = undefined
    // Each pass has its own signal.
    const signal = this.#signal
    const { name: pod, uid } = this.#state.ref
    try {
      const observed = await this.#deps.observe(uid)
      if (observed === undefined || signal === undefined) return
      if (signal === this.#signal && !signal.aborted) this.#onNews(observed)
    } catch (error) {
      this.#deps.logger.debug({ pod, uid, err: error }, 'cannot publish the status of the pod')
    }
  }
}
