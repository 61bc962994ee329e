import type { Admission } from '../../decide/admission/admit-pod.ts'
import { selectCancelledStarts, withoutCancelledStarts } from '../../decide/plan/cancelled-starts.ts'
import { hasFinished } from '../../decide/plan/has-finished.ts'
import type { Waiting } from '../../decide/plan/pod-action.ts'
import { goesAwayAfter } from '../../decide/plan/pod-ending.ts'
import { containerHold, holdOf, nextImageHold, noHolds } from '../../decide/plan/hold.ts'
import type { Holds } from '../../decide/plan/hold.ts'
import { podAsAllocated, podAsApplied } from '../../decide/plan/resize.ts'
import type { ResizeRefusal, ResizeState } from '../../decide/plan/resize.ts'
import type { ContainerId, PodRef } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { withClasses } from '../../pod/spec/pod-classes.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { AheadFetches } from './ahead-fetches.ts'
import type { HookInFlight } from '../actions/pod-context.ts'
import type { PodMemory } from './pod-memory.ts'

/**
 * Where a pod stands:
 *
 *     adopted ──confirm──▶ waiting ──admit──▶ active ──end──▶ ending ──all stopped──▶ stopped ──cleaned up──▶ gone
 *        │                    └──────────────────end────────────▲
 *        └──────────────────────────────────────end─────────────┘
 *
 * `adopted`: it is known from the record of an earlier podd, and nothing is done for it before its source confirms it.
 * `stopped`: nothing of it runs and its ports are free, so that its successor may start.
 */
export type PodStage = 'adopted' | 'waiting' | 'active' | 'ending' | 'stopped' | 'gone'

/** What a worker begins with. */
export interface NewWorker {
  readonly record: PodRecord
  readonly pod: Pod
  /** The record stands on disk already. */
  readonly saved: boolean
  /** It is a pod of an earlier podd: no pass is made before it is confirmed. */
  readonly adopted?: boolean
  readonly observed?: ObservedPod
  /** Images that were pulled a moment ago for this pod. */
  readonly pulled?: ReadonlySet<string>
}

/** What is known of one pod, and what follows from that. Its worker alone changes it. */
export class PodState {
  readonly ref: PodRef
  readonly memory: PodMemory
  /** Images that were made sure of a moment ago: the next start doesn't ask the registry again. */
  readonly fresh: Set<string>
  /** Containers whose postStart hook is in flight. */
  readonly postStarts: Set<ContainerId>
  /** Hooks in flight, by container. */
  readonly preStops = new Map<ContainerId, HookInFlight>()
  /** Containers whose log was linked since podd began, or could not be. */
  readonly linkedLogs = new Map<ContainerId, 'linked' | 'failed'>()
  /** What is fetched for containers that go on meanwhile. */
  readonly aheadFetches: AheadFetches
  /** What isn't tried again for now. */
  holds: Holds = noHolds
  pod: Pod
  stage: PodStage
  admission: Admission | undefined
  waiting: ReadonlyMap<string, Waiting> = new Map()
  /** By container: what a container to be recreated would lack. */
  blockedRestarts: ReadonlyMap<string, string> = new Map()
  resize: ResizeState | undefined
  resizeRefusal: ResizeRefusal | undefined
  /** Exited containers and stopped sandboxes that the node's garbage collection wants removed. */
  condemned: ReadonlySet<string> = new Set()
  /** Whether it has got to where its containers were started, or wait for something. */
  isSettled = false
  /** Whether it was looked at since this podd began. */
  isSeen = false
  /** Nothing of it can be in the runtime: its UID is new. */
  isUnheardOf: boolean
  /** It is over, and its volumes and its cgroup are gone. */
  isReleased = false
  /** Why the newest pass failed. */
  lastError: string | undefined
  /** How often the runtime had been away when `observed` was asked for. */
  lossesWhenSeen = 0
  #observed: ObservedPod
  /** Names of containers that were seen to run. The runtime may forget them. */
  readonly #seenRunning = new Set<string>()
  /** Undefined before it was seen: see selectCancelledStarts. */
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

  /** What is observed of it while the runtime holds nothing. */
  get nothing(): ObservedPod {
    return { ...this.ref, sandboxes: [], containers: [] }
  }

  get record(): PodRecord {
    return this.memory.record
  }

  /** The pod as it was admitted: without what it asks for more since. */
  get allocatedPod(): Pod {
    return podAsAllocated(this.classedPod, this.record.allocated)
  }

  /** The pod, as it asks to be, with what its classes added when it was admitted. */
  get classedPod(): Pod {
    return withClasses(this.pod, this.record.classes)
  }

  /** The pod with the resources that its running containers have by now. */
  get appliedPod(): Pod {
    return podAsApplied({ ...this.restartFacts, pod: this.allocatedPod })
  }

  /** It is ending, and nothing of it will stay. */
  get goesAway(): boolean {
    return this.record.ending !== undefined && goesAwayAfter(this.record.ending)
  }

  /** Whether any of its containers runs, as far as is known. */
  get hasRunning(): boolean {
    return this.observed.containers.some((container) => container.state === 'running')
  }

  /** It failed or finished, and nothing of it will run again. */
  get hasEnded(): boolean {
    if (this.record.failed !== undefined) return !this.hasRunning
    return hasFinished(this.restartFacts)
  }

  /** Whether it holds no ports and no resources any more: it has ended, and is kept for its status. */
  get isOver(): boolean {
    return this.hasEnded && !this.observed.sandboxes.some((sandbox) => sandbox.ready)
  }

  /** It was refused, has ended or is being ended: nothing of it is left that could change in place. */
  get isPastChange(): boolean {
    const { failed, ending } = this.record
    return (
      this.hasEnded || failed !== undefined || ending !== undefined || this.admission?.kind === 'rejected'
    )
  }

  /** Whether it was not admitted yet, or not since podd began. */
  get isWaiting(): boolean {
    return this.stage === 'adopted' || this.stage === 'waiting'
  }

  /** Whether it holds resources of the host: it was admitted, and has not finished. */
  get holdsResources(): boolean {
    if (this.stage === 'stopped' || this.stage === 'gone') return false
    return (!this.isWaiting || this.admission?.kind === 'admitted') && !this.isOver
  }

  /** Whether it asks for more than it was admitted with. */
  get wantsToGrow(): boolean {
    return this.record.allocated !== undefined && this.record.ending === undefined
  }

  /** Whether it has run, and will again by itself should it have ended. One that the runtime has forgotten has run. */
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

  /** Why a container goes on as it was and not as its manifest was changed; undefined where none does. */
  get updateProblem(): string | undefined {
    const goesOn = ({ name, image }: ContainerSpec): boolean => {
      const newest = this.observed.containers.find((container) => container.name === name)
      if (newest === undefined || newest.image === image) return false
      return newest.state === 'running' || this.waiting.get(name)?.reason === 'CrashLoopBackOff'
    }
    const why = ({ name, image }: ContainerSpec): string | undefined => {
      const own = holdOf(this.holds, containerHold(name))
      const hold = holdOf(this.holds, nextImageHold(name)) ?? (own?.image === image ? own : undefined)
      return hold?.waiting.message ?? this.blockedRestarts.get(name)
    }
    const { initContainers, containers } = this.pod.spec
    const spec = [...initContainers, ...containers].find((each) => goesOn(each) && why(each) !== undefined)
    return spec === undefined ? undefined : why(spec)
  }

  get restartFacts() {
    const { containers: history, podResources, restartRequested, restartAll, postStartsDue } = this.record
    return {
      pod: this.pod,
      observed: this.observed,
      history,
      podResources,
      restartRequested: new Set(restartRequested),
      restartAll: new Set(restartAll),
      ...(postStartsDue === undefined ? {} : { postStartsDue }),
    }
  }

  /** By when it must be through, by the wall clock; undefined where nothing says, or it is. */
  get activeDeadlineMs(): number | undefined {
    const seconds = this.pod.spec.activeDeadlineSeconds
    const { startedAtMs } = this.record
    if (seconds === undefined || startedAtMs === undefined || this.hasEnded) return undefined
    return startedAtMs + seconds * 1000
  }
}
