import type { Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { computeEndingActions, freesNameWithContainers, goesAwayAfter } from '../../decide/plan/ending.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import type { PodDisplay } from './display.ts'
import { networkProblem, warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { execute } from './execute.ts'
import { errorRetryMs } from './pass.ts'
import type { PassLoop, PassSignals } from './pass.ts'
import type { PodState } from './state.ts'

/** How long the removal of a pod's remains may wait for its successor's start, which it would delay. */
const remainsWaitMs = 2000

/** How long after its deadline podd checks whether any process of a pod is still alive. */
const overdueMs = 10_000
/** How long after its volumes were removed a runtime that still hasn't ended it is no longer merely slow. */
const slowMs = 30_000

/**
 * A runtime that has stopped everything may take a moment to report it: podd looks again this many times, at growing
 * intervals.
 */
const quickLooks = 5
const firstLookMs = 50

/**
 * The end of a pod: a pass of one that is terminating stops its containers and releases its resources; after each other pass,
 * one whose containers have all ended for good releases what it no longer needs.
 */
export class EndPass {
  readonly #env: PodEnv
  readonly #state: PodState
  readonly #loop: PassLoop
  readonly #display: PodDisplay
  /** All its sandboxes were stopped in this ending: ports and addresses are free. */
  #stoppedInFull = false
  /** How often in a row the runtime has reported that it stopped everything. */
  #stops = 0
  /** When its volumes were removed before its containers, to free space; monotonic. */
  #roomGivenAtMs: number | undefined
  #hasToldOverdue = false
  /** Nothing is left of it but a sandbox that the runtime can't stop for now. */
  #hasGone = false
  /** When its remains are removed at the latest (monotonic); undefined once they may be. */
  #remainsUntilMs: number | undefined

  constructor(env: PodEnv, state: PodState, loop: PassLoop, display: PodDisplay) {
    this.#env = env
    this.#state = state
    this.#loop = loop
    this.#display = display
  }

  /**
   * For how many milliseconds its remains still wait for its successor; undefined where they don't. A call after that
   * time ends the wait.
   */
  remainsWaitMs(): number | undefined {
    if (this.#remainsUntilMs === undefined) return undefined
    const leftMs = this.#remainsUntilMs - this.#env.clock.monotonicMs()
    if (leftMs > 0) return leftMs
    this.#remainsUntilMs = undefined
    return undefined
  }

  /** Ends the wait of its remains: they delay no other pod any more. */
  letRemainsGo(): void {
    if (this.#remainsUntilMs === undefined) return
    this.#remainsUntilMs = undefined
    this.#loop.wake()
  }

  async run(ending: NonNullable<PodRecord['ending']>, signals: PassSignals): Promise<void> {
    const state = this.#state
    const { memory, observed, pod } = state
    await memory.save('best-effort')
    await this.#env.turns.enter()
    // A further request may have made another ending of it meanwhile.
    if (state.record.ending !== ending) return this.#loop.wake()
    this.#display.publish()
    const plan = computeEndingActions(observed, { stoppedBefore: this.#stoppedInFull })
    if (plan.kind === 'stop') {
      const overdue = this.#watchOverdue(ending)
      let areStopped = false
      try {
        await execute(this.#env, state, this.#loop, signals, plan.actions, {
          onContainersStopped: () => {
            areStopped = true
            if (freesNameWithContainers(ending, pod)) this.#freeName()
          },
        })
      } catch (error) {
        const lacksNetwork =
          isCriError(error, 'RUNTIME_FAILED') && (await networkProblem(this.#env)) !== undefined
        if (!areStopped || !lacksNetwork || !goesAwayAfter(ending)) throw error
        return await this.#goWithoutNetwork(error)
      } finally {
        overdue.cancel()
      }
      this.#stoppedInFull = true
      // The runtime has confirmed that everything ended: waiting callers need not wait for the next observation.
      if (goesAwayAfter(ending)) this.#freeName()
      return this.#lookAgain()
    }
    this.#stops = 0
    this.#roomGivenAtMs = undefined
    this.#hasToldOverdue = false
    if (!goesAwayAfter(ending)) {
      state.finishEnding()
      this.#stoppedInFull = false
      // A podd that has lost this repeats the ending, which is in the record.
      await memory.save('best-effort')
      state.activate()
      return this.#loop.wake()
    }
    state.noteStopped()
    await execute(this.#env, state, this.#loop, signals, plan.actions)
    return this.#cleanUp()
  }

  /**
   * Ends the pass of a pod that isn't terminating: where it is over, it releases its volumes and its cgroup; its status, containers and logs stay
   * (`pkg/kubelet/kubelet.go` SyncTerminatedPod, Kubernetes 1.36). Should it be restarted, they are recreated with its
   * sandbox.
   */
  async releaseWhereOver(signals: PassSignals): Promise<void> {
    const { isOver, record, ref } = this.#state
    if (!isOver || record.ending !== undefined) return this.#state.noteReleased(false)
    await this.#removeCondemned(signals)
    if (this.#state.isReleased || record.startedAtMs === undefined) return
    await this.#env.volumes.teardown(ref.uid)
    await this.#env.cgroups.remove(ref.uid)
    this.#state.noteReleased(true)
  }

  /** Of a pod that is over, garbage collection may remove everything that the runtime still has. */
  async #removeCondemned(signals: PassSignals): Promise<void> {
    const { condemned, observed } = this.#state
    const containers = observed.containers.filter(({ id, state }) => state === 'exited' && condemned.has(id))
    const sandboxes = observed.sandboxes.filter(({ id, ready }) => !ready && condemned.has(id))
    if (containers.length + sandboxes.length === 0) return
    await execute(this.#env, this.#state, this.#loop, signals, [
      { kind: 'remove-containers', ids: containers.map(({ id }) => id) },
      { kind: 'remove-sandboxes', ids: sandboxes.map(({ id }) => id) },
    ])
    this.#loop.wake()
  }

  /**
   * The containers have ended, and a runtime without a network can't take the sandbox's down: the pod goes all the same,
   * and its sandbox when there is a network again. Its record stays until then.
   */
  async #goWithoutNetwork(error: unknown): Promise<void> {
    const { volumes, cgroups, logs } = this.#env
    const { ref } = this.#state
    this.#loop.wakeIn(errorRetryMs)
    if (this.#hasGone) return
    await volumes.teardown(ref.uid)
    await cgroups.remove(ref.uid)
    await logs.removeAll(ref)
    this.#hasGone = true
    warn(
      this.#env,
      ref,
      'NetworkNotReady',
      `the pod has ended, and its address is given back when the runtime has a network again: ${errorMessage(error)}`,
    )
    this.#freeName()
    this.#display.hide()
  }

  /** Runs after everything was stopped. */
  async #lookAgain(): Promise<void> {
    this.#stops += 1
    if (this.#stops === 1) return this.#loop.wake()
    if (this.#stops <= quickLooks) return this.#loop.wakeIn(firstLookMs * 2 ** this.#stops)
    await this.#giveRoom()
    throw new PoddError(
      'RUNTIME_STALE',
      'the runtime has stopped the sandbox, and still reports containers of the pod as running: free space if its disk is full',
    )
  }

  /** Checks repeatedly whether a process of the pod still runs while the runtime does not finish stopping it. */
  #watchOverdue({ requestedAtMs, graceSeconds }: NonNullable<PodRecord['ending']>): Timer {
    const { clock } = this.#env
    const leftMs = Math.max(0, requestedAtMs + graceSeconds * 1000 - clock.wallMs())
    const look = (): void => {
      timer = clock.startTimer(overdueMs, look)
      void this.#giveRoom()
    }
    let timer = clock.startTimer(leftMs + overdueMs, look)
    return { cancel: () => timer.cancel() }
  }

  /**
   * A runtime with a full disk can't record that a container has ended, and the pod's own files may fill the disk.
   * Where no process of the pod is alive, its volumes are removed before its containers. Never throws.
   */
  async #giveRoom(): Promise<void> {
    const { cgroups, clock, volumes, logger, turns } = this.#env
    const { ref, pod } = this.#state
    if (this.#roomGivenAtMs !== undefined) return this.#tellOverdue(this.#roomGivenAtMs)
    try {
      // Where a runtime is slow with thousands of pods, this is due for all of them at once.
      await turns.enter()
      const ids = this.#state.observed.containers.map(({ id }) => id)
      if ((await cgroups.hasProcesses(ref.uid, pod, ids)) !== false) return
      this.#roomGivenAtMs = clock.monotonicMs()
      await volumes.teardown(ref.uid)
    } catch (error) {
      this.#roomGivenAtMs = undefined
      logger.warn({ pod: ref.name, uid: ref.uid, err: error }, 'cannot free space to terminate the pod')
    }
  }

  /** A slow runtime is no failure. */
  #tellOverdue(sinceMs: number): void {
    if (this.#hasToldOverdue || this.#env.clock.monotonicMs() - sinceMs < slowMs) return
    this.#hasToldOverdue = true
    warn(
      this.#env,
      this.#state.ref,
      'FailedKillPod',
      'no process of the pod runs any more, but the runtime still reports its containers as running, perhaps because of a full disk: its volumes were removed first',
    )
  }

  /** Its successor may start; the remains of this pod are removed afterwards. */
  #freeName(): void {
    if (this.#state.stage === 'stopped') return
    this.#remainsUntilMs = this.#env.clock.monotonicMs() + remainsWaitMs
    this.#state.noteStopped()
  }

  /**
   * Removes everything of the pod. The record is removed last, so that the next podd finishes the work if this one is
   * killed.
   */
  async #cleanUp(): Promise<void> {
    const { volumes, cgroups, logs, images, turns } = this.#env
    const { ref, memory } = this.#state
    // Each is a good part of a turn, and the disk may have been done for many pods at once.
    await turns.enter()
    await volumes.teardown(ref.uid)
    await turns.enter()
    await cgroups.remove(ref.uid)
    await turns.enter()
    await logs.removeAll(ref)
    await memory.remove()
    images.clearBackoff(ref.uid)
    this.#display.hide()
    this.#state.noteGone()
  }
}
