import type { Neighbour } from '../../decide/admission/admit-pod.ts'
import { planReplacements } from '../../decide/admission/plan-replacements.ts'
import type { WaitingVersion } from '../../decide/admission/plan-replacements.ts'
import type { SourceName } from '../../pod/objects/document.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import { withClasses } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { pullsWith } from '../objects/object-store.ts'
import type { ChangedObjects, SourcedPod } from '../objects/object-store.ts'
import type { ImagePuller } from '../images/image-puller.ts'
import type { PodAdmission } from './pod-admission.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import { Replacement } from './replacement.ts'
import type { ReplacementDeps } from './replacement.ts'

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
  /** New versions whose old versions are terminating: the resources that they request are reserved. */
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

  /**
   * What is kept for versions whose pods were told to end.
   * @param isOpen whether the version of that name hasn't got it yet
   */
  promises(isOpen: (key: PodKey) => boolean): readonly Neighbour[] {
    for (const key of this.#promised.keys()) if (!isOpen(key)) this.#promised.delete(key)
    return [...this.#promised].map(([key, pod]) => ({ key, pod, isPromised: true }))
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
        resized.get(key)?.worker.judgeResize(undefined)
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
