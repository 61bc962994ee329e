import type { Clock, Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { Neighbour } from '../../decide/admission/admit-pod.ts'
import { planReplacements } from '../../decide/admission/plan-replacements.ts'
import type { Readiness, WaitingVersion } from '../../decide/admission/plan-replacements.ts'
import { pullSecretsOf } from '../../pod/objects/local-object.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { selectVolumeImages } from '../../pod/schema/default-pod.ts'
import { withClasses } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey, PodRef, SourceName } from '../../pod/values/ids.ts'
import type { PodRecordStore } from '../../store/pod-records.ts'
import { readPid } from '../../translate/observe.ts'
import { effectiveSecurityContext, imageUserOf, runAsRootProblem } from '../../translate/security-context.ts'
import type { ImageUser } from '../../translate/security-context.ts'
import type { ImagePuller } from '../images/image-puller.ts'
import { ImageError } from '../images/image-request.ts'
import type { PodHost } from '../pod/host.ts'
import type { PodWorker } from '../pod/worker.ts'
import { pullsWith } from '../serving/object-store.ts'
import type { ChangedObjects, SourcedPod } from '../serving/object-store.ts'
import type { PodAdmission } from './pod-admission.ts'

export interface ReplacementQueueDeps extends Pick<ReplacementDeps, 'checkStart' | 'clock'> {
  readonly images: Pick<ImagePuller, 'ensure' | 'clearBackoff'>
  readonly admission: Pick<PodAdmission, 'examine' | 'limits'>
  /** What a pod refers to and isn't there; undefined: all is. */
  readonly missingReference: (sourced: SourcedPod) => string | undefined
  /** All pods that hold something. */
  readonly neighbours: () => readonly Neighbour[]
  /** Pods that ask for more in place, which the host has no room for as it is; with what they ask for. */
  readonly growing: () => readonly { readonly worker: PodWorker; readonly pod: Pod }[]
  /** One of them may have got ready. */
  readonly onChange: () => void
}

interface Waiting {
  readonly worker: PodWorker
  readonly source: SourceName
  readonly replacement: Replacement
}

/** A resize in place needs nothing but room. */
const atHand = { kind: 'ready' } as const

/**
 * New versions of running pods, until the old versions are terminated: make before break. They are admitted together, so
 * that those that need resources which the others hold are replaced together; pods that wait for resources for a resize
 * in place are among them.
 */
export class ReplacementQueue {
  readonly #deps: ReplacementQueueDeps
  readonly #waiting = new Map<PodKey, Waiting>()
  /**
   * New versions whose old versions are terminating: the resources that they request are reserved until they have them, or
   * need them no more (see `dropUnkept`).
   */
  readonly #promised = new Map<PodKey, Pod>()
  #problems: ReadonlyMap<PodKey, string> = new Map()

  constructor(deps: ReplacementQueueDeps) {
    this.#deps = deps
  }

  /** Begins with the next `review`. */
  add(worker: PodWorker, pod: Pod, source: SourceName): Replacement {
    const { images, checkStart, clock, onChange } = this.#deps
    const replacement = new Replacement({
      pod,
      source,
      ref: worker.ref,
      images,
      checkStart,
      observed: () => worker.state.observed,
      clock,
      onChange,
    })
    const key = podKey(worker.ref)
    this.#promised.delete(key)
    this.#waiting.set(key, { worker, source, replacement })
    return replacement
  }

  /** These objects came, changed or went: pulls that use them are tried again at once. */
  reviewPullSecrets(changed: ChangedObjects): void {
    for (const { worker, source, replacement } of this.#waiting.values()) {
      if (!pullsWith({ pod: replacement.pod, source }, changed)) continue
      this.#deps.images.clearBackoff(worker.ref.uid)
      replacement.retry()
    }
  }

  /** The new version is not wanted any more. */
  cancel(key: PodKey): void {
    this.#waiting.get(key)?.replacement.cancel()
    this.#waiting.delete(key)
    this.#promised.delete(key)
  }

  cancelAll(): void {
    for (const { replacement } of this.#waiting.values()) replacement.cancel()
  }

  /** The new version that waits to take a pod's place. */
  waitingFor(key: PodKey): Pod | undefined {
    return this.#waiting.get(key)?.replacement.pod
  }

  /** Why a new version doesn't take its pod's place; undefined while it is on its way. */
  problem(key: PodKey): string | undefined {
    const waiting = this.#waiting.get(key)
    return waiting && (waiting.replacement.problem ?? this.#problems.get(key))
  }

  /** What is kept for versions whose pods were told to end, as far as `isKept` says that it still is. */
  promises(isKept: (key: PodKey) => boolean): readonly Neighbour[] {
    return [...this.#promised]
      .filter(([key]) => isKept(key))
      .map(([key, pod]) => ({ key, pod, isPromised: true }))
  }

  /** Keeps nothing any more for versions that have what they asked for, or wait for something else. */
  dropUnkept(isKept: (key: PodKey) => boolean): void {
    for (const key of this.#promised.keys()) if (!isKept(key)) this.#promised.delete(key)
  }

  /** Looks again at all that wait: room may have been made, or one of them has got ready. */
  review(): void {
    for (const [key, { worker }] of this.#waiting) if (!worker.state.isAtWork) this.#release(key)
    const { admission, neighbours, growing } = this.#deps
    const resized = new Map(growing().map((each) => [podKey(each.worker.ref), each]))
    for (const key of this.#waiting.keys()) resized.delete(key)
    const versions = [
      ...[...this.#waiting].map(([key, waiting]) => this.#examine(key, waiting)),
      ...[...resized].map(([key, { pod }]) => ({ key, pod, exclusiveClaims: [], readiness: atHand })),
    ]
    if (versions.length === 0) return
    const plan = planReplacements({ pods: neighbours(), versions, limits: admission.limits })
    this.#problems = plan.waiting
    for (const key of plan.prepare) this.#waiting.get(key)?.replacement.prepare()
    const pods = new Map(versions.map(({ key, pod }) => [key, pod]))
    for (const group of plan.release) {
      if (this.#lookAgain(group)) continue
      for (const key of group) {
        resized.get(key)?.worker.takeResizeVerdict(undefined)
        const pod = pods.get(key)
        if (this.#waiting.has(key) && pod !== undefined) this.#promised.set(key, pod)
        this.#release(key)
      }
    }
  }

  #examine(key: PodKey, { replacement, source }: Waiting): WaitingVersion {
    const { admission, missingReference } = this.#deps
    const { pod, readiness } = replacement
    const missing = missingReference({ pod, source })
    if (missing !== undefined)
      return { key, pod, exclusiveClaims: [], readiness: { kind: 'failed', message: missing } }
    const found = admission.examine(pod, source)
    if (found.kind !== 'fits')
      return { key, pod, exclusiveClaims: [], readiness: { kind: 'failed', message: found.message } }
    const { classes, exclusiveClaims } = found
    return { key, pod: withClasses(pod, classes), exclusiveClaims, readiness }
  }

  /** A last look at those that got ready long before the others; gives whether there are any. */
  #lookAgain(group: readonly PodKey[]): boolean {
    const stale = group.flatMap((key) => {
      const replacement = this.#waiting.get(key)?.replacement
      return replacement?.isStale === true ? [replacement] : []
    })
    for (const replacement of stale) replacement.prepare()
    return stale.length > 0
  }

  /** Ends the old pod: the new one starts when its name is free. */
  #release(key: PodKey): void {
    const worker = this.#waiting.get(key)?.worker
    this.#waiting.delete(key)
    worker?.end({
      cause: 'replaced',
      reason: 'Killing',
      message: 'The manifest was changed',
      graceSeconds: worker.state.pod.spec.terminationGracePeriodSeconds,
    })
  }
}

interface ReplacementDeps {
  readonly pod: Pod
  /** The pod that is to be replaced; events are its. */
  readonly ref: PodRef
  /** Where its manifest comes from. */
  readonly source: SourceName
  readonly images: Pick<ImagePuller, 'ensure'>
  /** Throws where the host would keep it from starting. */
  readonly checkStart: (pod: Pod, before: ObservedPod) => Promise<void>
  /** What runs of the version before. */
  readonly observed: () => ObservedPod
  readonly clock: Clock
  /** Its readiness is another one. */
  readonly onChange: () => void
}

/** How long a look at the host holds. */
const readyForMs = 60_000

/**
 * Prepares a new version of a running pod while the old one runs: pulls its images, checks the host. Retries failures
 * with the backoff of the images, until it is cancelled.
 */
export class Replacement {
  readonly #deps: ReplacementDeps
  readonly #abort = new AbortController()
  readonly #pulled = new Set<string>()
  /** By image, whom its containers run as unless told. */
  readonly #users = new Map<string, ImageUser>()
  #problem: string | undefined
  #state: Readiness['kind'] = 'unprepared'
  #readyAtMs = 0
  #timer: Timer | undefined

  constructor(deps: ReplacementDeps) {
    this.#deps = deps
  }

  get pod(): Pod {
    return this.#deps.pod
  }

  /** What kept it from getting ready, the last time. */
  get problem(): string | undefined {
    return this.#problem
  }

  get readiness(): Readiness {
    if (this.#state !== 'failed') return { kind: this.#state }
    return { kind: 'failed', message: this.#problem ?? '' }
  }

  /** Whether it got ready so long ago that the host is to be looked at again. */
  get isStale(): boolean {
    return this.#deps.clock.monotonicMs() - this.#readyAtMs > readyForMs
  }

  /** The images that were made sure of. */
  get pulled(): ReadonlySet<string> {
    return this.#pulled
  }

  /** Prepares the new version, or verifies that it is prepared; reports the result through `onChange`. */
  prepare(): void {
    if (this.#state === 'preparing' || this.#abort.signal.aborted) return
    this.#state = 'preparing'
    this.#timer?.cancel()
    void this.#prepare()
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#abort.abort(new Error('the replacement was cancelled'))
  }

  async #prepare(): Promise<void> {
    const { pod, ref, source, images, clock, onChange } = this.#deps
    try {
      const { initContainers, containers, volumes } = pod.spec
      for (const container of [...initContainers, ...containers, ...selectVolumeImages(volumes)]) {
        if (this.#pulled.has(container.image)) continue
        const { signal } = this.#abort
        const secrets = pullSecretsOf(pod, source)
        const request = { pod: ref, container, secrets, sandboxConfig: undefined, signal }
        const { image } = await images.ensure(request)
        this.#users.set(container.image, imageUserOf(image))
        this.#pulled.add(container.image)
      }
      this.#checkUsers()
      await this.#deps.checkStart(pod, this.#deps.observed())
      this.#problem = undefined
      this.#state = 'ready'
      this.#readyAtMs = clock.monotonicMs()
    } catch (error) {
      if (this.#abort.signal.aborted) return
      this.#problem = errorMessage(error)
      this.#state = 'failed'
      const retryAtMs = error instanceof ImageError ? error.retryAtMs : clock.wallMs() + 10_000
      this.#timer = clock.startTimer(retryAtMs - clock.wallMs(), () => this.#retry())
    }
    if (!this.#abort.signal.aborted) onChange()
  }

  /** What it failed for may be mended: it is not waited for. */
  retry(): void {
    if (this.#state !== 'failed' || this.#abort.signal.aborted) return
    this.#timer?.cancel()
    this.#retry()
  }

  #retry(): void {
    this.#state = 'unprepared'
    this.#deps.onChange()
  }

  /** Whether its containers may run as whom their images say. */
  #checkUsers(): void {
    const { initContainers, containers, securityContext } = this.#deps.pod.spec
    for (const { name, image, securityContext: own } of [...initContainers, ...containers]) {
      const user = this.#users.get(image)
      const problem = user && runAsRootProblem(effectiveSecurityContext(securityContext, own), user)
      if (problem !== undefined) throw new PoddError('RUN_AS_NON_ROOT', `container ${name}: ${problem}`)
    }
  }
}

export interface StartCheckDeps {
  readonly records: Pick<PodRecordStore, 'checkRoom'>
  readonly host: {
    readonly calls: Pick<PodHost['calls'], 'containerStatus'>
    readonly volumes: Pick<PodHost['volumes'], 'checkHostPaths' | 'checkMountKinds'>
  }
}

/**
 * Throws PoddError where the host would keep a pod from starting: a full disk, a hostPath of another type than declared, a
 * directory that would be mounted over a file of an image.
 * @param before the version of it that runs: what its containers show of an image is known
 */
export async function checkStart(
  { records, host }: StartCheckDeps,
  pod: Pod,
  before: ObservedPod,
): Promise<void> {
  try {
    await records.checkRoom()
  } catch (error) {
    const message = `no record of it can be written: ${errorMessage(error)}`
    throw new PoddError('RECORD_WRITE', message, { cause: error })
  }
  await host.volumes.checkHostPaths(pod)
  const { initContainers, containers } = pod.spec
  for (const container of [...initContainers, ...containers]) {
    if (container.volumeMounts.length === 0) continue
    const pid = await findProcess(host.calls, before, container)
    if (pid !== undefined) await host.volumes.checkMountKinds(pod, container, pid)
  }
}

/** The first process of the running container of this name and image; undefined without one, or where that isn't told. */
async function findProcess(
  calls: StartCheckDeps['host']['calls'],
  { containers }: ObservedPod,
  { name, image }: Pick<ContainerSpec, 'name' | 'image'>,
): Promise<number | undefined> {
  const running = containers.find(
    (container) => container.name === name && container.image === image && container.state === 'running',
  )
  if (running === undefined) return undefined
  try {
    const { info } = await calls.containerStatus({ containerId: running.id, verbose: true })
    return readPid(info['info'])
  } catch {
    // It has ended meanwhile: nothing is known of the image then.
    return undefined
  }
}
