import type { PodObject } from '../../api/objects.ts'
import type { ResourceChange } from '../../api/resource.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ResourceStore } from './resource-store.ts'

/**
 * The pods as the API shows them, with the newest derived status of each. One voice speaks for a pod at a time: before
 * the pod's worker first does, its provisional status; from then on the worker alone, until it removes the pod.
 */
export class StatusStore {
  readonly #shown: ResourceStore<PodObject>
  /** The pods of which their workers have spoken. */
  readonly #spoken = new Set<PodUid>()

  /** The pods that are gone but for their finalizers. */
  readonly #finalizing = new Set<PodUid>()
  /** What was said of pods that are shown otherwise. */
  readonly #said = new Map<PodUid, PodObject>()
  readonly #present: (object: PodObject) => PodObject
  #onHeld: (object: PodObject) => void = () => {}

  /** @param present what is shown of a pod, where that is more than was said */
  constructor(
    shown: ResourceStore<PodObject>,
    present: (object: PodObject) => PodObject = (object) => object,
  ) {
    this.#shown = shown
    this.#present = present
  }

  /** Shows the pod again, of which more is known, or less. */
  refresh(uid: PodUid): void {
    const said = this.#said.get(uid) ?? this.#shown.get(uid)
    if (said !== undefined) this.#show(uid, said)
    if (this.#finalizing.has(uid)) this.#hide(uid)
  }

  #show(uid: PodUid, said: PodObject): void {
    const object = this.#present(said)
    if (object === said) this.#said.delete(uid)
    else this.#said.set(uid, said)
    this.#shown.put(uid, object)
  }

  /** One that has finalizers stays as it was when it ended, until a client has removed them. */
  #hide(uid: PodUid): void {
    const last = this.#shown.get(uid)
    if (last !== undefined && isFinalizing(last)) {
      const isNew = !this.#finalizing.has(uid)
      this.#finalizing.add(uid)
      if (isNew) this.#onHeld(last)
      return
    }
    this.#finalizing.delete(uid)
    this.#said.delete(uid)
    this.#shown.remove(uid)
  }

  /** The pod's worker says how the pod is. */
  publish(uid: PodUid, object: PodObject): void {
    this.#spoken.add(uid)
    this.#show(uid, object)
  }

  /** The pod's worker says that the pod is gone, or is to be shown no more. */
  remove(uid: PodUid): void {
    this.#spoken.delete(uid)
    this.#hide(uid)
  }

  /** How the pod is as far as is known without a worker; no longer heard once its worker has spoken. */
  publishProvisional(uid: PodUid, object: PodObject): void {
    if (!this.#spoken.has(uid)) this.#show(uid, object)
  }

  /** Takes a provisional status back. */
  removeProvisional(uid: PodUid): void {
    if (!this.#spoken.has(uid)) this.#hide(uid)
  }

  /** By namespace and name; one that is ending stands before the one that replaces it. */
  list(): readonly PodObject[] {
    return this.#shown.list()
  }

  /** Tells of each pod that is gone but for its finalizers, as it was last. One listener, which neither throws nor waits. */
  onHeld(listener: (object: PodObject) => void): void {
    this.#onHeld = listener
  }

  subscribe(listener: (change: ResourceChange<PodObject>) => void): () => void {
    return this.#shown.subscribe(listener)
  }
}

/** It was deleted, and its clients have something left to do for it. */
function isFinalizing({ metadata: { deletionTimestamp, finalizers = [] } }: PodObject): boolean {
  return deletionTimestamp !== undefined && finalizers.length > 0
}
