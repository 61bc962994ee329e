import type { PodObject, ResourceChange } from '../../api/resource.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ResourceStore } from './resource-store.ts'

/**
 * The pods as the API shows them, with the newest derived status of each. A pod's status has one writer at a time: a
 * provisional status until the pod's worker first publishes, from then on the worker alone, until it removes the pod.
 */
export class StatusStore {
  readonly #shown: ResourceStore<PodObject>
  /** The pods whose workers have published a status. */
  readonly #spoken = new Set<PodUid>()

  /** The pods that only finalizers hold. */
  readonly #finalizing = new Set<PodUid>()
  /** The published objects of pods that `present` changes. */
  readonly #said = new Map<PodUid, PodObject>()
  readonly #present: (object: PodObject) => PodObject
  #onHeld: (object: PodObject) => void = () => {}
  #change: (object: PodObject) => PodObject = (object) => object

  /** @param present changes the published object of a pod before it is shown */
  constructor(
    shown: ResourceStore<PodObject>,
    present: (object: PodObject) => PodObject = (object) => object,
  ) {
    this.#shown = shown
    this.#present = present
  }

  /** Shows the pod again, because `present` may return something else for it. */
  refresh(uid: PodUid): void {
    const said = this.#said.get(uid) ?? this.#shown.get(uid)
    if (said !== undefined) this.#show(uid, said)
    if (this.#finalizing.has(uid)) this.#hide(uid)
  }

  #show(uid: PodUid, said: PodObject): void {
    const object = this.#change(this.#present(said))
    if (object === said) this.#said.delete(uid)
    else this.#said.set(uid, said)
    this.#shown.put(uid, object)
  }

  /** A pod with finalizers keeps its last status until clients have removed them. */
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

  /** The pod's worker publishes the pod. */
  publish(uid: PodUid, object: PodObject): void {
    this.#spoken.add(uid)
    this.#show(uid, object)
  }

  /** The pod's worker removes the pod: it is gone, or no longer shown. */
  remove(uid: PodUid): void {
    this.#spoken.delete(uid)
    this.#hide(uid)
  }

  /** Publishes a pod without a worker; ignored once its worker has published. */
  publishProvisional(uid: PodUid, object: PodObject): void {
    if (!this.#spoken.has(uid)) this.#show(uid, object)
  }

  /** Removes a provisional status. */
  removeProvisional(uid: PodUid): void {
    if (!this.#spoken.has(uid)) this.#hide(uid)
  }

  /** Changes what `present` gives once more, from now on. */
  presentAlso(change: (object: PodObject) => PodObject): void {
    this.#change = change
  }

  find(uid: PodUid): PodObject | undefined {
    return this.#shown.get(uid)
  }

  /** Undefined before the pod's worker has published it. */
  findPublished(uid: PodUid): PodObject | undefined {
    return this.#spoken.has(uid) ? this.#shown.get(uid) : undefined
  }

  /** Ordered by namespace and name; a terminating pod stands before its replacement. */
  list(): readonly PodObject[] {
    return this.#shown.list()
  }

  /**
   * Sets the listener for pods that only finalizers hold, each with its last status. It must neither throw nor block.
   */
  onHeld(listener: (object: PodObject) => void): void {
    this.#onHeld = listener
  }

  subscribe(listener: (change: ResourceChange<PodObject>) => void): () => void {
    return this.#shown.subscribe(listener)
  }
}

/** It was deleted and still has finalizers. */
function isFinalizing({ metadata: { deletionTimestamp, finalizers = [] } }: PodObject): boolean {
  return deletionTimestamp !== undefined && finalizers.length > 0
}
