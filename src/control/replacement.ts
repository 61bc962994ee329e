import type { Clock, Timer } from '../base/clock.ts'
import { errorMessage, PoddError } from '../base/errors.ts'
import type { Admission } from '../decide/admit-pod.ts'
import type { PodRef } from '../pod/ids.ts'
import { selectVolumeImages } from '../pod/image-volumes.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { effectiveSecurityContext, imageUserOf, runAsRootProblem } from '../translate/security-context.ts'
import type { ImageUser } from '../translate/security-context.ts'
import { ImageError } from './image-puller.ts'
import type { ImagePuller } from './image-puller.ts'

export interface ReplacementDeps {
  readonly pod: Pod
  /** The pod that is to be replaced; events are its. */
  readonly ref: PodRef
  readonly images: Pick<ImagePuller, 'ensure'>
  /** Throws where the host would keep it from starting. */
  readonly foreseeStart: (pod: Pod) => Promise<void>
  readonly clock: Clock
  /** Whether there is room once the old pod is gone. */
  readonly admit: () => Admission
  /** Whether the old pod runs, or will again by itself, so that a new one that can't start would be a loss. */
  readonly needsCare: () => boolean
  /** The new pod can start: the old one may end. Called once. */
  readonly onReady: () => void
}

/**
 * A new version of a running pod, getting ready while the old one runs: admitted, its images pulled, the host looked at.
 * What is missing is tried again, by the images' own backoff, until it is cancelled.
 */
export class Replacement {
  readonly #deps: ReplacementDeps
  readonly #abort = new AbortController()
  readonly #pulled = new Set<string>()
  /** By image, whom its containers run as unless told. */
  readonly #users = new Map<string, ImageUser>()
  #problem: string | undefined
  #state: 'idle' | 'pulling' | 'done' = 'idle'
  #timer: Timer | undefined

  constructor(deps: ReplacementDeps) {
    this.#deps = deps
  }

  /** Why it isn't ready; undefined while it is on its way. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** The images that were made sure of. */
  get pulled(): ReadonlySet<string> {
    return this.#pulled
  }

  begin(): void {
    this.review()
  }

  /** Looks again: room may have been made. */
  review(): void {
    if (this.#state !== 'idle' || this.#abort.signal.aborted) return
    if (!this.#deps.needsCare()) return this.#finish()
    const admission = this.#deps.admit()
    if (admission.kind !== 'admitted') {
      this.#problem = admission.message
      return
    }
    this.#state = 'pulling'
    this.#timer?.cancel()
    void this.#pull()
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#abort.abort(new Error('the replacement was called off'))
  }

  async #pull(): Promise<void> {
    const { pod, ref, images, clock } = this.#deps
    try {
      const { initContainers, containers, volumes } = pod.spec
      for (const container of [...initContainers, ...containers, ...selectVolumeImages(volumes)]) {
        if (this.#pulled.has(container.image)) continue
        const { signal } = this.#abort
        const { image } = await images.ensure({ pod: ref, container, sandboxConfig: undefined, signal })
        this.#users.set(container.image, imageUserOf(image))
        this.#pulled.add(container.image)
      }
      this.#checkUsers()
      await this.#deps.foreseeStart(pod)
      this.#finish()
    } catch (error) {
      if (this.#abort.signal.aborted) return
      this.#problem = errorMessage(error)
      this.#state = 'idle'
      const retryAtMs = error instanceof ImageError ? error.retryAtMs : clock.wallMs() + 10_000
      this.#timer = clock.startTimer(retryAtMs - clock.wallMs(), () => this.review())
    }
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

  #finish(): void {
    if (this.#abort.signal.aborted || this.#state === 'done') return
    this.#state = 'done'
    this.#problem = undefined
    this.#deps.onReady()
  }
}
