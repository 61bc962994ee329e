import { defaultContainerPolicy, selectDeadContainers } from '../node/plan-container-garbage.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ObservedContainer } from '../../pod/state/observed.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import { isUnrun } from './container-view.ts'
import { activeHold, containerHold, nextImageHold } from './hold.ts'
import type { Hold } from './hold.ts'
import type { PodAction, PodPlan, StopCause, Waiting } from './pod-action.ts'
import type { PodFacts } from './pod-facts.ts'
import type { ResizeState } from './resize.ts'
import { planStart } from './start-plan.ts'

/** A plan under construction. */
export class PlanBuilder {
  readonly actions: PodAction[] = []
  resize: ResizeState | undefined
  restartAll: PodPlan['restartAll']
  isLost = false
  readonly #facts: PodFacts
  readonly #waiting = new Map<string, Waiting>()
  readonly #blockedRestarts = new Map<string, string>()
  /** Names of containers that are to run. */
  readonly #wanted = new Set<string>()
  readonly #restartsDue: ContainerId[] = []
  #wakeAtMs: number | undefined

  constructor(facts: PodFacts) {
    this.#facts = facts
  }

  start(spec: ContainerSpec, role: 'init' | 'main' | 'ephemeral'): void {
    this.#wanted.add(spec.name)
    const planned = planStart(this.#facts, spec, role)
    const { awaitedImage } = planned.kind === 'start' ? planned.action : planned
    if (awaitedImage !== undefined) this.#fetch(spec)
    if (planned.kind === 'start') {
      // Created and not started, perhaps about to be: the runtime refuses to remove a container that is starting, so
      // there are never two of a name. One that may have run stays until its successor has the count.
      const ids = this.#facts.observed.containers
        .filter((container) => container.name === spec.name && isUnrun(container))
        .map(({ id }) => id)
      if (ids.length > 0) this.actions.push({ kind: 'remove-containers', ids })
      this.actions.push(planned.action)
      return
    }
    this.#waiting.set(spec.name, planned.waiting)
    if (planned.untilMs !== undefined) this.wakeAt(planned.untilMs)
  }

  /**
   * Those that are alive are stopped to be started again, which their exit codes no longer decide: a process that handles
   * SIGTERM exits with 0. (The kubelet starts such a container in the same sync; where that fails, or waits for a
   * backoff, it goes by the exit code.)
   */
  noteRestarts(containers: readonly ObservedContainer[]): void {
    this.#restartsDue.push(...containers.filter((container) => isAlive(container)).map(({ id }) => id))
  }

  /** Whether none of these goes on running or is to run. */
  leavesNone(specs: readonly ContainerSpec[]): boolean {
    const stopped = this.actions.flatMap((action) =>
      action.kind === 'stop-container' ? [action.container.id] : [],
    )
    const goesOn = this.#facts.observed.containers.filter((c) => isAlive(c) && !stopped.includes(c.id))
    return specs.every(({ name }) => !this.#wanted.has(name) && goesOn.every((c) => c.name !== name))
  }

  waitForSandbox(
    { waiting, untilMs }: Pick<Hold, 'waiting'> & Partial<Pick<Hold, 'untilMs'>>,
    containers: readonly ContainerSpec[],
  ): void {
    for (const { name } of containers) this.#waiting.set(name, waiting)
    if (untilMs !== undefined) this.wakeAt(untilMs)
  }

  /** For a running container that is to be recreated: returns what the new one lacks, for which the old one stays. */
  prepareReplacement(spec: ContainerSpec): string | undefined {
    const missing = this.#facts.containerFacts[spec.name]?.missing
    if (missing === undefined) return this.#fetch(spec)
    this.#blockedRestarts.set(spec.name, missing)
    return missing
  }

  /** Has the new image of a running container fetched. Returns why it is unavailable for now. */
  #fetch(spec: ContainerSpec): string | undefined {
    const hold =
      activeHold(this.#facts, nextImageHold(spec.name)) ?? activeHold(this.#facts, containerHold(spec.name))
    if (hold !== undefined) {
      this.wakeAt(hold.untilMs)
      return hold.waiting.message
    }
    const isPlanned = this.actions.some((action) => action.kind === 'fetch-image' && action.spec === spec)
    if (!isPlanned && this.#facts.containerFacts[spec.name]?.isFetching !== true)
      this.actions.push({ kind: 'fetch-image', spec })
    return undefined
  }

  /** A container started in this plan may need the one before it. */
  #selectCondemned(): readonly ContainerId[] {
    const { condemned, observed } = this.#facts
    if (condemned === undefined || this.actions.length > 0) return []
    return observed.containers
      .filter(({ id, state }) => condemned.includes(id) && (state === 'exited' || state === 'created'))
      .map(({ id }) => id)
  }

  wakeAt(wallMs: number): void {
    this.#wakeAtMs = Math.min(this.#wakeAtMs ?? Infinity, wallMs)
  }

  stopWhatRuns(reason: string): void {
    const { sandboxes, containers } = this.#facts.observed
    const running = containers.some(
      (container) => container.state !== 'exited' && container.state !== 'created',
    )
    if (running || sandboxes.some((sandbox) => sandbox.ready)) this.actions.push({ kind: 'stop-pod', reason })
  }

  result(): PodPlan {
    for (const action of this.actions)
      if (
        action.kind === 'stop-container' &&
        this.#wanted.has(action.container.name) &&
        isFailure(action.cause)
      )
        this.noteRestarts([action.container])
    const { observed, containerPolicy = defaultContainerPolicy, nowMs } = this.#facts
    const dead = selectDeadContainers(observed, containerPolicy, nowMs)
    const ids = [...new Set([...dead.containers, ...this.#selectCondemned()])]
    if (ids.length > 0) this.actions.push({ kind: 'remove-containers', ids })
    if (dead.sandboxes.length > 0) this.actions.push({ kind: 'remove-sandboxes', ids: dead.sandboxes })
    // All stops come together, before any start, as in the kubelet's SyncPod.
    const isStop = ({ kind }: PodAction): boolean => kind === 'stop-container'
    const actions = [...this.actions.filter(isStop), ...this.actions.filter((action) => !isStop(action))]
    const { resize, restartAll, isLost } = this
    const blocked = this.#blockedRestarts
    const restartsDue = this.#restartsDue
    return {
      actions,
      wakeAtMs: this.#wakeAtMs,
      waiting: this.#waiting,
      restartAll,
      resize,
      ...(blocked.size === 0 ? {} : { blockedRestarts: blocked }),
      ...(restartsDue.length === 0 ? {} : { restartsDue }),
      ...(isLost ? { isLost } : {}),
    }
  }
}

function isAlive({ state }: ObservedContainer): boolean {
  return state === 'running' || state === 'unknown'
}

/** Whether it is a container's own fault that it is stopped; who stops it for something else records why. */
function isFailure(cause: StopCause): boolean {
  return cause === 'liveness' || cause === 'startup' || cause === 'unknown'
}
