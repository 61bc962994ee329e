import type { Timer } from '../../base/clock.ts'
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
import type { PodKey, SourceName } from '../../pod/values/ids.ts'
import { findMissingReference } from '../../translate/config-hash.ts'
import { readPid } from '../../translate/observe.ts'
import { effectiveSecurityContext, imageUserOf, runAsRootProblem } from '../../translate/security-context.ts'
import type { ImageUser } from '../../translate/security-context.ts'
import { ImageError } from '../images/image-request.ts'
import type { PodEnv } from '../pod/env.ts'
import { errorRetryMs } from '../pod/pass.ts'
import type { PodWorker } from '../pod/worker.ts'
import { pullsWith } from '../serving/object-store.ts'
import type { ChangedObjects } from '../serving/object-store.ts'
import type { PodAdmission } from './pod-admission.ts'

/** What new versions are admitted beside. */
interface Beside {
  /** All pods that hold something. */
  readonly neighbours: () => readonly Neighbour[]
  /** Pods that ask for more in place, which the host has no room for as it is; with what they ask for. */
  readonly growing: () => readonly { readonly worker: PodWorker; readonly pod: Pod }[]
  /** A new version may have got ready. */
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
  readonly #env: PodEnv
  readonly #admission: PodAdmission
  readonly #beside: Beside
  readonly #waiting = new Map<PodKey, Waiting>()
  /**
   * New versions whose old versions are terminating: the resources that they request are reserved until they have them, or
   * need them no more (see `dropUnkept`).
   */
  readonly #promised = new Map<PodKey, Pod>()
  #problems: ReadonlyMap<PodKey, string> = new Map()

  constructor(env: PodEnv, admission: PodAdmission, beside: Beside) {
    this.#env = env
    this.#admission = admission
    this.#beside = beside
  }

  /** Begins with the next `review`. */
  add(worker: PodWorker, pod: Pod, source: SourceName): Replacement {
    const replacement = new Replacement(this.#env, worker, pod, source, this.#beside.onChange)
    const key = podKey(worker.ref)
    this.#promised.delete(key)
    this.#waiting.set(key, { worker, source, replacement })
    return replacement
  }

  /** These objects came, changed or went: pulls that use them are tried again at once. */
  reviewPullSecrets(changed: ChangedObjects): void {
    for (const { worker, source, replacement } of this.#waiting.values()) {
      if (!pullsWith({ pod: replacement.pod, source }, changed)) continue
      this.#env.images.clearBackoff(worker.ref.uid)
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
    const { neighbours, growing } = this.#beside
    const resized = new Map(growing().map((each) => [podKey(each.worker.ref), each]))
    for (const key of this.#waiting.keys()) resized.delete(key)
    const versions = [
      ...[...this.#waiting].map(([key, waiting]) => this.#examine(key, waiting)),
      ...[...resized].map(([key, { pod }]) => ({ key, pod, exclusiveClaims: [], readiness: atHand })),
    ]
    if (versions.length === 0) return
    const plan = planReplacements({ pods: neighbours(), versions, limits: this.#admission.limits })
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
    const { pod, readiness } = replacement
    const fail = (message: string): WaitingVersion => {
      return { key, pod, exclusiveClaims: [], readiness: { kind: 'failed', message } }
    }
    const missing = findMissingReference(this.#env, { pod, source })
    if (missing !== undefined) return fail(missing)
    const found = this.#admission.examine(pod, source)
    if (found.kind !== 'fits') return fail(found.message)
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
    worker?.endWithOwnGrace('replaced', 'The manifest was changed')
  }
}

/** How long a look at the host holds. */
const readyForMs = 60_000

/**
 * Prepares a new version of a running pod while the old one runs: pulls its images, checks the host. Retries failures
 * with the backoff of the images, until it is cancelled.
 */
export class Replacement {
  readonly #env: PodEnv
  readonly #worker: PodWorker
  readonly pod: Pod
  readonly #source: SourceName
  readonly #onChange: () => void
  readonly #abort = new AbortController()
  readonly #pulled = new Set<string>()
  /** By image, whom its containers run as unless told. */
  readonly #users = new Map<string, ImageUser>()
  #problem: string | undefined
  #state: Readiness['kind'] = 'unprepared'
  #readyAtMs = 0
  #timer: Timer | undefined

  /**
   * @param worker of the pod that is to be replaced; events are its
   * @param onChange its readiness is another one
   */
  constructor(env: PodEnv, worker: PodWorker, pod: Pod, source: SourceName, onChange: () => void) {
    this.#env = env
    this.#worker = worker
    this.pod = pod
    this.#source = source
    this.#onChange = onChange
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
    return this.#env.clock.monotonicMs() - this.#readyAtMs > readyForMs
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
    const { pod } = this
    const { images, clock } = this.#env
    try {
      const { initContainers, containers, volumes } = pod.spec
      for (const container of [...initContainers, ...containers, ...selectVolumeImages(volumes)]) {
        if (this.#pulled.has(container.image)) continue
        const { signal } = this.#abort
        const secrets = pullSecretsOf(pod, this.#source)
        const request = { container, secrets, sandboxConfig: undefined, signal }
        const { image } = await images.ensure({ pod: this.#worker.ref, ...request })
        this.#users.set(container.image, imageUserOf(image))
        this.#pulled.add(container.image)
      }
      this.#checkUsers()
      await checkStart(this.#env, pod, this.#worker.state.observed)
      this.#problem = undefined
      this.#state = 'ready'
      this.#readyAtMs = clock.monotonicMs()
    } catch (error) {
      if (this.#abort.signal.aborted) return
      this.#problem = errorMessage(error)
      this.#state = 'failed'
      const retryAtMs = error instanceof ImageError ? error.retryAtMs : clock.wallMs() + errorRetryMs
      this.#timer = clock.startTimer(retryAtMs - clock.wallMs(), () => this.#retry())
    }
    if (!this.#abort.signal.aborted) this.#onChange()
  }

  /** What it failed for may be mended: it is not waited for. */
  retry(): void {
    if (this.#state !== 'failed' || this.#abort.signal.aborted) return
    this.#timer?.cancel()
    this.#retry()
  }

  #retry(): void {
    this.#state = 'unprepared'
    this.#onChange()
  }

  /** Whether its containers may run as whom their images say. */
  #checkUsers(): void {
    const { initContainers, containers, securityContext } = this.pod.spec
    for (const { name, image, securityContext: own } of [...initContainers, ...containers]) {
      const user = this.#users.get(image)
      const problem = user && runAsRootProblem(effectiveSecurityContext(securityContext, own), user)
      if (problem !== undefined) throw new PoddError('RUN_AS_NON_ROOT', `container ${name}: ${problem}`)
    }
  }
}

/**
 * Throws PoddError where the host would keep a pod from starting: a full disk, a hostPath of another type than declared, a
 * directory that would be mounted over a file of an image.
 * @param before the version of it that runs: what its containers show of an image is known
 */
async function checkStart(env: PodEnv, pod: Pod, before: ObservedPod): Promise<void> {
  try {
    await env.records.checkRoom()
  } catch (error) {
    const message = `no record of it can be written: ${errorMessage(error)}`
    throw new PoddError('RECORD_WRITE', message, { cause: error })
  }
  await env.volumes.checkHostPaths(pod)
  const { initContainers, containers } = pod.spec
  for (const container of [...initContainers, ...containers]) {
    if (container.volumeMounts.length === 0) continue
    const pid = await findProcess(env, before, container)
    if (pid !== undefined) await env.volumes.checkMountKinds(pod, container, pid)
  }
}

/** The first process of the running container of this name and image; undefined without one, or where that isn't told. */
async function findProcess(
  { calls }: PodEnv,
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
