import type { Admission, Neighbour } from '../../decide/admission/admit-pod.ts'
import {
  containerBackoff,
  backoffOf,
  nextImageBackoff,
  noBackoffs,
  selectCancelledStarts,
  withoutCancelledStarts,
} from '../../decide/plan/backoff.ts'
import type { Backoffs } from '../../decide/plan/backoff.ts'
import { goesAwayAfter } from '../../decide/plan/ending.ts'
import type { Waiting } from '../../decide/plan/pod-action.ts'
import type { PodFacts } from '../../decide/plan/pod-facts.ts'
import { hasFinished } from '../../decide/plan/progress.ts'
import { podAsAllocated, podAsApplied } from '../../decide/plan/resize.ts'
import type { ResizeRefusal, ResizeState } from '../../decide/plan/resize.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { withClasses } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { ContainerId, PodRef, SandboxId } from '../../pod/values/ids.ts'
import type { HookInFlight } from './context.ts'
import type { PodMemory } from './memory.ts'

/**
 * Where a pod stands:
 *
 * adopted ──confirm──▶ waiting ──admit──▶ active ──end──▶ ending ──all stopped──▶ stopped ──cleaned up──▶ gone │
 * └──────────────────end────────────▲ └──────────────────────────────────────end─────────────┘
 *
 * `adopted`: it is known from the record of an earlier podd, and nothing is done for it until its source confirms it.
 * `stopped`: nothing of it runs and its ports are free, so that its successor may start.
 */
export type PodStage = 'adopted' | 'waiting' | 'active' | 'ending' | 'stopped' | 'gone'

/** The initial state of a worker. */
export interface NewWorker {
  readonly record: PodRecord
  readonly pod: Pod
  /** The record is already on disk. */
  readonly saved: boolean
  /** The pod was adopted from an earlier podd: no pass runs before it is confirmed. */
  readonly adopted?: boolean
  readonly observed?: ObservedPod
  /** Images that were just pulled for this pod. */
  readonly pulled?: ReadonlySet<string>
}

/** The state of one pod, and what follows from it. Only its worker changes it. */
export class PodState {
  readonly ref: PodRef
  readonly memory: PodMemory
  /** Images that were just ensured: the next start doesn't ask the registry again. */
  readonly fresh: Set<string>
  /** Containers whose postStart hook is in flight. */
  readonly postStarts: Set<ContainerId>
  /** preStop hooks in flight, by container. */
  readonly preStops = new Map<ContainerId, HookInFlight>()
  /** Containers whose log was linked since podd began, or could not be. */
  readonly linkedLogs = new Map<ContainerId, 'linked' | 'failed'>()
  /** Image fetches for containers that keep running meanwhile. */
  readonly aheadFetches: AheadFetches
  /** Of starts and fetches that failed. */
  backoffs: Backoffs = noBackoffs
  pod: Pod
  stage: PodStage
  admission: Admission | undefined
  waiting: ReadonlyMap<string, Waiting> = new Map()
  /** By container: the missing reference that keeps a container from being recreated. */
  blockedRestarts: ReadonlyMap<string, string> = new Map()
  resize: ResizeState | undefined
  resizeRefusal: ResizeRefusal | undefined
  /** Exited containers and stopped sandboxes that the node's garbage collection wants removed. */
  condemned: ReadonlySet<string> = new Set()
  /** Whether its containers were started, or wait for something. */
  isSettled = false
  /** Whether this podd has observed it. */
  isSeen = false
  /** Its UID is new, so the runtime can't have anything of it. */
  isUnheardOf: boolean
  /** It is over, and its volumes and its cgroup were removed. */
  isReleased = false
  /** The newest sandbox, where it was stopped for a pod that is blocked. */
  stoppedSandbox: SandboxId | undefined
  /** Its cgroup was removed while it ran. */
  isCgroupRemoved = false
  /** The error of the newest pass, where it failed. */
  lastError: string | undefined
  /** The value of `runtimeLosses` when `observed` was read. */
  lossesWhenSeen = 0
  #observed: ObservedPod
  /** Names of containers that were observed running. The runtime may lose them. */
  readonly #seenRunning = new Set<string>()
  /** What `hasEnded` gave for these: whenever one pod changes, it is asked of all. */
  #ended:
    | {
        readonly record: PodRecord
        readonly pod: Pod
        readonly observed: ObservedPod
        readonly hasEnded: boolean
      }
    | undefined
  /** Undefined before the first observation: see selectCancelledStarts. */
  #cancelledStarts: ReadonlySet<ContainerId> | undefined

  constructor(memory: PodMemory, aheadFetches: AheadFetches, input: NewWorker) {
    const { record, pod, observed, pulled, adopted = false } = input
    this.memory = memory
    this.aheadFetches = aheadFetches
    this.ref = { namespace: record.namespace, name: record.name, uid: record.uid }
    this.pod = pod
    this.fresh = new Set(pulled)
    this.postStarts = new Set(record.postStartsDue)
    this.isUnheardOf = !input.saved && observed === undefined
    this.stage = record.ending === undefined ? (adopted ? 'adopted' : 'waiting') : 'ending'
    this.#observed = this.nothing
    if (observed !== undefined) this.observed = observed
  }

  get observed(): ObservedPod {
    return this.#observed
  }

  set observed(observed: ObservedPod) {
    this.#cancelledStarts ??= selectCancelledStarts(observed, this.record.containers)
    this.#observed = withoutCancelledStarts(observed, this.#cancelledStarts)
    for (const { name, state } of this.#observed.containers)
      if (state === 'running') this.#seenRunning.add(name)
  }

  /** The observation of a pod of which the runtime holds nothing. */
  get nothing(): ObservedPod {
    return { ...this.ref, sandboxes: [], containers: [] }
  }

  get record(): PodRecord {
    return this.memory.record
  }

  /** The pod as it was admitted: without resources that it has requested since. */
  get allocatedPod(): Pod {
    return podAsAllocated(this.classedPod, this.record.allocated)
  }

  /** The pod as its manifest requests it, with what its classes added at its admission. */
  get classedPod(): Pod {
    return withClasses(this.pod, this.record.classes)
  }

  /** The pod with the resources that its running containers currently have. */
  get appliedPod(): Pod {
    return podAsApplied({ ...this.restartFacts, pod: this.allocatedPod })
  }

  /** It is terminating, and nothing of it will remain. */
  get goesAway(): boolean {
    return this.record.ending !== undefined && goesAwayAfter(this.record.ending)
  }

  /** Whether any of its containers runs, as far as is known. */
  get hasRunning(): boolean {
    return this.observed.containers.some((container) => container.state === 'running')
  }

  /** It failed or finished, and nothing of it will run again. */
  get hasEnded(): boolean {
    const { record, pod, observed } = this
    const known = this.#ended
    if (known?.record === record && known.pod === pod && known.observed === observed) return known.hasEnded
    const hasEnded = record.failed === undefined ? hasFinished(this.restartFacts) : !this.hasRunning
    this.#ended = { record, pod, observed, hasEnded }
    return hasEnded
  }

  /** Whether it has released its ports and resources: it has ended, and is kept for its status. */
  get isOver(): boolean {
    return this.hasEnded && !this.observed.sandboxes.some((sandbox) => sandbox.ready)
  }

  /** It was rejected, has ended or is terminating: it can no longer change in place. */
  get isPastChange(): boolean {
    const { failed, ending } = this.record
    return (
      this.hasEnded || failed !== undefined || ending !== undefined || this.admission?.kind === 'rejected'
    )
  }

  /** Whether this podd has not admitted it yet. */
  get isWaiting(): boolean {
    return this.stage === 'adopted' || this.stage === 'waiting'
  }

  /** Whether the runtime has anything of it that is alive, as far as is known. */
  get isLive(): boolean {
    const { sandboxes, containers } = this.observed
    return (
      sandboxes.some((sandbox) => sandbox.ready) ||
      containers.some(({ state }) => state !== 'exited' && state !== 'created')
    )
  }

  /** Whether it holds resources of the host: it was admitted, and has not finished; or it runs though it is blocked. */
  get holdsResources(): boolean {
    if (this.stage === 'stopped' || this.stage === 'gone' || this.isOver) return false
    if (this.stage === 'ending' || this.admission?.kind === 'admitted') return true
    if (this.admission?.kind !== 'blocked') return !this.isWaiting
    return this.isLive || this.observed.sandboxes[0]?.id !== this.stoppedSandbox
  }

  /** Why nothing of it may be started that isn't there; undefined where it may. */
  get startBlock(): PodFacts['blocked'] {
    const { admission } = this
    if (admission?.kind !== 'blocked') return undefined
    return { message: admission.message, containers: admission.containers ?? [] }
  }

  /** The host's resources that it has. */
  asNeighbour(): Neighbour {
    return {
      key: podKey(this.ref),
      pod: this.allocatedPod,
      hasEnded: this.hasEnded,
      isEnding: this.record.ending !== undefined,
    }
  }

  /** Whether it requests more than it was admitted with. */
  get wantsToGrow(): boolean {
    return this.record.allocated !== undefined && this.record.ending === undefined
  }

  /** Whether it has run, and restarts by itself if it has ended. A pod that the runtime has lost counts as run. */
  get isAtWork(): boolean {
    if (this.hasRunning) return true
    if (this.isPastChange || (this.admission !== undefined && this.admission.kind !== 'admitted'))
      return false
    const { observed, record } = this
    const hasRun = (name: string): boolean => {
      const { ended, startedUp, ready } = record.containers[name] ?? {}
      return this.#seenRunning.has(name) || (ended ?? startedUp ?? ready) !== undefined
    }
    return this.pod.spec.containers.some(
      ({ name }) =>
        hasRun(name) ||
        observed.containers.some((container) => container.name === name && container.state !== 'created'),
    )
  }

  /** Why a container keeps running with its old spec although its manifest changed; undefined where none does. */
  get updateProblem(): string | undefined {
    const goesOn = ({ name, image }: ContainerSpec): boolean => {
      const newest = this.observed.containers.find((container) => container.name === name)
      if (newest === undefined || newest.image === image) return false
      return newest.state === 'running' || this.waiting.get(name)?.reason === 'CrashLoopBackOff'
    }
    const why = ({ name, image }: ContainerSpec): string | undefined => {
      const own = backoffOf(this.backoffs, containerBackoff(name))
      const backoff =
        backoffOf(this.backoffs, nextImageBackoff(name)) ?? (own?.image === image ? own : undefined)
      return backoff?.waiting.message ?? this.blockedRestarts.get(name)
    }
    const { initContainers, containers } = this.pod.spec
    const spec = [...initContainers, ...containers].find((each) => goesOn(each) && why(each) !== undefined)
    return spec === undefined ? undefined : why(spec)
  }

  get restartFacts() {
    const { containers: history, podResources, restartRequested, restartsDue, restartAll } = this.record
    const { postStartsDue } = this.record
    return {
      pod: this.pod,
      observed: this.observed,
      history,
      podResources,
      restartRequested: new Set(restartRequested),
      restartsDue: new Set(restartsDue),
      restartAll: new Set(restartAll),
      ...(postStartsDue === undefined ? {} : { postStartsDue }),
    }
  }

  /** Its active deadline by the wall clock; undefined where it has none, or is over. */
  get activeDeadlineMs(): number | undefined {
    const seconds = this.pod.spec.activeDeadlineSeconds
    const { startedAtMs } = this.record
    if (seconds === undefined || startedAtMs === undefined || this.hasEnded) return undefined
    return startedAtMs + seconds * 1000
  }
}

/**
 * Image fetches in flight for containers that keep running meanwhile, one per container. A pull may take long, and the
 * pod's passes don't wait for it.
 */
export class AheadFetches {
  readonly #onEnd: () => void
  readonly #inFlight = new Map<string, AbortController>()

  /** @param onEnd a fetch has ended without being cancelled, successfully or not */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  has(container: string): boolean {
    return this.#inFlight.has(container)
  }

  /** @param fetch never rejects; its result is ignored once the signal is aborted */
  begin(container: string, fetch: (signal: AbortSignal) => Promise<void>): void {
    this.#inFlight.get(container)?.abort()
    const abort = new AbortController()
    this.#inFlight.set(container, abort)
    void fetch(abort.signal).finally(() => {
      if (abort.signal.aborted) return
      this.#inFlight.delete(container)
      this.#onEnd()
    })
  }

  /** Cancels the fetch for this container, or all of them without a name. */
  cancel(container?: string): void {
    for (const [name, abort] of this.#inFlight) {
      if (container !== undefined && container !== name) continue
      abort.abort()
      this.#inFlight.delete(name)
    }
  }
}
