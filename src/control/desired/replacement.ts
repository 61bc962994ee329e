import type { Clock, Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { Readiness } from '../../decide/admission/plan-replacements.ts'
import type { PodRecordStore } from '../../store/pod-records.ts'
import type { PodHost } from '../actions/pod-host.ts'
import type { PodRef, SourceName } from '../../pod/values/ids.ts'
import { selectVolumeImages } from '../../pod/schema/default-pod.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { readPid } from '../../translate/observe.ts'
import { effectiveSecurityContext, imageUserOf, runAsRootProblem } from '../../translate/security-context.ts'
import type { ImageUser } from '../../translate/security-context.ts'
import { ImageError } from '../images/image-error.ts'
import { pullSecretsOf } from '../../pod/objects/local-object.ts'
import type { ImagePuller } from '../images/image-puller.ts'

export interface ReplacementDeps {
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
