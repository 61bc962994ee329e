import { PoddError } from '../../base/errors.ts'
import { sameData } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Admission } from '../../decide/admission/admit-pod.ts'
import { noBackoffs, withoutReasons, withoutReferenceBackoffs } from '../../decide/plan/backoff.ts'
import { computeEnding } from '../../decide/plan/ending.ts'
import type { EndRequest } from '../../decide/plan/ending.ts'
import {
  changedResources,
  computeHeldBack,
  podAsAllocated,
  podLevelResources,
} from '../../decide/plan/resize.ts'
import type { ResizeRefusal } from '../../decide/plan/resize.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ContainerId, PodRef } from '../../pod/values/ids.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import { findMissingReference } from '../../translate/config-hash.ts'
import { isImageReason } from '../images/image-request.ts'
import { listPodImages } from '../images/image-uses.ts'
import type { SourcedPod } from '../serving/object-store.ts'
import { PodPasses, requestRestart } from './passes.ts'
import type { PodPassesDeps } from './passes.ts'
import type { ProbedContainer, ProbedPod } from './prober-worker.ts'
import type { Prober } from './prober.ts'
import type { NewWorker, PodState } from './state.ts'

export interface PodWorkerDeps extends PodPassesDeps {
  /** Told whenever what is to be probed may have changed. */
  readonly prober: Pick<Prober, 'setPod'>
  /** The pod reached another stage, or finished. */
  readonly onStage: (worker: PodWorker) => void
  /** Decides at once on all pods that aren't admitted. */
  readonly reviewAdmission: () => void
}

/** Why the node terminates a pod, and how long it may take, in seconds. */
export type Eviction = Pick<EndRequest, 'reason' | 'message' | 'graceSeconds'>

/**
 * The interface of one pod's worker to the rest of podd: a call changes the pod's state, and a pass acts on it. It
 * alone writes the pod's record. There is no queue: a pass goes by the newest facts.
 */
export class PodWorker {
  readonly #deps: PodWorkerDeps
  readonly #state: PodState
  readonly #passes: PodPasses

  constructor(deps: PodWorkerDeps, input: NewWorker) {
    this.#deps = deps
    this.#passes = new PodPasses(
      deps,
      {
        onObserved: () => deps.prober.setPod(probedPod(this.#state, deps.host.hostIps())),
        onStage: () => deps.onStage(this),
        end: (request) => this.end(request),
      },
      input,
    )
    this.#state = this.#passes.state
    if (this.#state.stage !== 'adopted') this.#passes.begin()
  }

  get ref(): PodRef {
    return this.#state.ref
  }

  /** The pod's state. */
  get state(): Readonly<PodState> {
    return this.#state
  }

  /** A source has confirmed an adopted pod, or its confirmation is no longer awaited: passes begin. */
  confirm(): void {
    if (this.#state.stage !== 'adopted') return
    this.#state.stage = 'waiting'
    this.#passes.begin()
  }

  wake(): void {
    this.#passes.wake()
  }

  /** The periodic sync: see PodPasses. */
  async sync(): Promise<void> {
    await this.#passes.look()
  }

  /** Its containers changed: it syncs soon; while a slow action is in flight, the new status is published meanwhile. */
  notice(): void {
    this.#passes.notice()
  }

  /** Takes what a list of the runtime found of the pod; ignored once the worker has observed it itself. */
  takeObserved(observed: ObservedPod): void {
    if (!this.#state.isSeen) this.#state.observed = observed
  }

  /** Takes the result of the pod's admission. */
  admit(admission: Admission): void {
    if (takeAdmission(this.#state, admission, this.#passes.warn)) this.#passes.wake()
  }

  /** Why the host has no room for a resize; undefined where it has, which admits the resize. */
  judgeResize(refusal: ResizeRefusal | undefined): void {
    if (takeResizeVerdict(this.#state, refusal, this.#passes.warn)) this.#passes.wake()
  }

  /** Takes a manifest that changes nothing, or only what may change in place. */
  update(update: PodUpdate): void {
    const change = takeUpdate(this.#state, update)
    if (change === 'same') return
    // Volumes may have files with labels and annotations.
    this.#passes.markVolumes()
    if (change === 'spec') this.#clearBackoff()
    this.#passes.wake()
  }

  /**
   * An object that the pod refers to was added, changed or removed: what waits for it is tried again.
   * @param pullSecrets one of them is for image pulls: their backoff is over
   */
  reviewReferences({ pullSecrets }: { readonly pullSecrets: boolean }): void {
    this.#passes.markVolumes()
    this.#state.backoffs = withoutReferenceBackoffs(this.#state.backoffs)
    if (pullSecrets) this.#endImageBackoff()
    this.#passes.wake()
  }

  /** These images (complete names) are present now: failed fetches of them are tried again. */
  reviewImages(names: ReadonlySet<string>): void {
    const isNamed = listPodImages(this.#state.pod).some((image) => names.has(normalizeImageName(image)))
    if (!isNamed) return
    this.#endImageBackoff()
    this.#passes.wake()
  }

  #endImageBackoff(): void {
    this.#state.backoffs = withoutReasons(this.#state.backoffs, isImageReason)
    this.#deps.images.clearBackoff(this.ref.uid)
  }

  /** Ends the pod. A further call can only shorten the grace period, and never revokes a deletion. */
  end(request: EndRequest): void {
    if (this.#state.stage === 'stopped' || this.#state.stage === 'gone') return
    this.#state.aheadFetches.cancel()
    const before = this.#state.record.ending
    const ending = computeEnding(before, request, this.#deps.clock.wallMs())
    if (ending === before) return
    this.#state.memory.change({ ending })
    this.#passes.setStage('ending')
    if (before === undefined) this.#tellWhy(request)
    // A slow action may be in flight: publish at once that the pod is terminating.
    if (this.#state.isSeen) this.#passes.publish()
    this.#passes.interrupt()
  }

  /** The pull of one of its images has made progress. */
  showPull(): void {
    if (this.#state.isSeen && this.#state.stage !== 'gone') this.#passes.publish()
  }

  /**
   * Evicts the pod: it fails with this reason and message, and its status stays
   * (`pkg/kubelet/eviction/eviction_manager.go`, evictPod, 1.36). False where it has ended or is ending already.
   */
  evict({ reason, message, graceSeconds }: Eviction): boolean {
    const { stage, isOver, record } = this.#state
    if (stage === 'stopped' || stage === 'gone' || isOver || record.ending !== undefined) return false
    this.end({ cause: 'evicted', reason, message, graceSeconds })
    return true
  }

  /**
   * Marks these exited containers and stopped sandboxes for removal, which happens when nothing else is to be done for
   * the pod.
   */
  collect(condemned: ReadonlySet<string>): void {
    this.#state.condemned = condemned
    this.#passes.wake()
  }

  /**
   * Records why a pod is terminated that is still desired (`pkg/kubelet/active_deadline.go`, `eviction_manager.go`,
   * 1.36).
   */
  #tellWhy({ cause, reason, message }: EndRequest): void {
    const { events } = this.#deps
    if (cause === 'deadline') events.record({ pod: this.ref, type: 'Normal', reason, message })
    if (cause === 'evicted') this.#passes.warn(reason, message)
  }

  /** The pod, and the source whose objects it reads. */
  get sourcedPod(): SourcedPod {
    return { pod: this.#state.classedPod, source: this.#state.record.source }
  }

  /** Recreates containers: see requestRestart. A pod that wasn't admitted is judged again instead. */
  async restart(wanted: readonly string[] | undefined): Promise<readonly string[]> {
    if (!this.#state.isLive && this.#reconsider()) {
      const { initContainers, containers } = this.#state.pod.spec
      return [...initContainers, ...containers].map(({ name }) => name)
    }
    const names = await requestRestart(this.#state, wanted, (container) =>
      this.#state.startBlock?.containers.includes(container.name) === true
        ? this.#state.startBlock.message
        : findMissingReference(this.#deps.host, this.sourcedPod, container),
    )
    this.#deps.images.clearBackoff(this.ref.uid)
    this.#passes.wake()
    return names
  }

  /**
   * Decides again whether it may run, which it may now. False for a pod that is admitted. Throws PoddError
   * RESTART_REFUSED where it still may not.
   */
  #reconsider(): boolean {
    const { admission, record, memory } = this.#state
    if (admission === undefined || admission.kind === 'admitted' || record.ending !== undefined) return false
    if (admission.kind === 'rejected') {
      // Where it was evicted, or exceeded its deadline, it stays failed.
      if (record.failed !== undefined && record.failed.admission !== true) return false
      memory.change({ failed: undefined })
    }
    this.#state.admission = undefined
    this.#deps.reviewAdmission()
    this.#passes.wake()
    const verdict = this.state.admission
    if (verdict?.kind === 'admitted') return true
    const why = verdict === undefined ? 'it is not known yet whether it may run' : verdict.message
    throw new PoddError('RESTART_REFUSED', `pod ${this.ref.name} cannot run now: ${why}`)
  }

  /**
   * Another pod has taken its name, so it is no longer shown. Its remains wait for that pod's start, for a moment at
   * most.
   */
  supersede(): void {
    this.#passes.hide()
  }

  /** Of a stopped pod: its remains are removed without waiting for its successor any longer. */
  cleanUp(): void {
    this.#passes.letRemainsGo()
  }

  /** Stops the worker and leaves the pod running; resolves when the pass in flight has stopped too. */
  async stop(): Promise<void> {
    await this.#passes.stop()
  }

  /** A changed manifest may have mended what failed: drops all backoffs and waits. */
  #clearBackoff(): void {
    this.#state.backoffs = noBackoffs
    this.#state.fresh.clear()
    this.#state.aheadFetches.cancel()
    this.#deps.images.clearBackoff(this.ref.uid)
    this.#state.memory.forgetAttempts()
    this.#passes.endWaits()
  }
}

/** What the prober needs to know of a pod: its running containers, each once its postStart hook is done. */
function probedPod(state: Readonly<PodState>, hostIps: readonly string[]): ProbedPod {
  const { observed, pod, ref, record, postStarts } = state
  const specs = [...pod.spec.initContainers, ...pod.spec.containers]
  const containers = specs.flatMap((spec): ProbedContainer[] => {
    const running = observed.containers.find(
      ({ id, name, state }) => name === spec.name && state === 'running' && !postStarts.has(id),
    )
    if (running === undefined) return []
    const startedAtMs = running.startedAtMs ?? running.createdAtMs
    const adopted = wasFound(record, { name: spec.name, id: running.id, startedAtMs })
    return [{ name: spec.name, containerId: running.id, startedAtMs, spec, adopted }]
  })
  const podIps = pod.spec.hostNetwork ? hostIps : (observed.sandboxes[0]?.ips ?? [])
  return { pod: ref, podIps, ending: state.stage === 'ending', containers }
}

/**
 * How a container was when podd last looked, maybe before podd was restarted: it stays so until a probe
 * says otherwise. A pod whose containers were all ready had started up, and so had each of them, which records of older
 * podds tell in no other way.
 */
function wasFound(
  record: PodRecord,
  running: { readonly name: string; readonly id: ContainerId; readonly startedAtMs: number },
): NonNullable<ProbedContainer['adopted']> {
  const containersReady = record.conditions['ContainersReady']
  const allReady = containersReady?.status === 'True' && running.startedAtMs <= containersReady.atMs
  const { startedUp, ready } = record.containers[running.name] ?? {}
  return {
    started: startedUp === undefined ? allReady : startedUp === running.id,
    ready: ready === running.id || allReady,
  }
}

/** A manifest that changes nothing of a pod, or only what may change in place. */
interface PodUpdate {
  readonly pod: Pod
  readonly manifest: JsonObject
  readonly place: Required<Pick<PodRecord, 'source' | 'path' | 'owner'>>
}

type Warn = (reason: string, message: string) => void

/** Takes the result of the pod's admission. Returns whether it changed. */
function takeAdmission(state: PodState, admission: Admission, warn: Warn): boolean {
  if (sameData(state.admission, admission)) return false
  state.admission = admission
  // Known classes need no write.
  const classes = admission.kind === 'admitted' ? admission.classes : undefined
  if (classes !== undefined && !sameData(classes, state.record.classes)) state.memory.change({ classes })
  if (admission.kind !== 'admitted') warn(admission.reason, admission.message)
  return true
}

/**
 * Takes why the host has no room for a resize; undefined where it has room. Returns whether there is something to do.
 */
function takeResizeVerdict(state: PodState, refusal: ResizeRefusal | undefined, warn: Warn): boolean {
  if (refusal === undefined) state.memory.change({ allocated: undefined })
  else if (sameData(state.resizeRefusal, refusal)) return false
  state.resizeRefusal = refusal
  if (refusal !== undefined) warn(`Resize${refusal.reason}`, refusal.message)
  return true
}

/** Takes a manifest. Returns what it changed: nothing, metadata that containers don't depend on, or the spec. */
function takeUpdate(state: PodState, { pod, manifest, place }: PodUpdate): 'same' | 'metadata' | 'spec' {
  const { source, path, owner, manifest: before } = state.record
  const isKnown = sameData({ source, path, owner, manifest: before }, { ...place, manifest })
  if (isKnown && sameData(state.pod, pod)) {
    // A source gives the same objects with each snapshot: from now on they are compared by identity.
    state.pod = pod
    state.memory.shareManifest(manifest)
    return 'same'
  }
  const change = sameData(state.pod.spec, pod.spec) ? 'metadata' : 'spec'
  const allocated =
    state.admission?.kind === 'admitted'
      ? computeHeldBack(state.pod.spec, pod.spec, state.record.allocated)
      : undefined
  if (allocated === undefined) state.resizeRefusal = undefined
  const podResources = podLevelBefore(state, pod)
  state.pod = pod
  const { generation = 1 } = state.record
  state.memory.change({
    ...place,
    manifest,
    allocated,
    podResources,
    ...(change === 'spec' ? { generation: generation + 1 } : {}),
  })
  return change
}

/**
 * The pod-level resources that stay allocated whatever the new version requests; undefined where it requests the same.
 */
function podLevelBefore({ record, pod: before }: PodState, after: Pod): PodRecord['podResources'] {
  if (record.podResources !== undefined) return record.podResources
  const applied = podLevelResources(podAsAllocated(before, record.allocated).spec)
  return changedResources(applied, podLevelResources(after.spec)).length === 0 ? undefined : applied
}
