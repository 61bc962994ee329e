import type { PodObject } from '../../api/objects.ts'
import type { WatchEvent } from '../../api/routes.ts'
import { canonicalJson } from '../../base/json.ts'
import type { PodUid } from '../../pod/values/ids.ts'

interface Published {
  readonly object: PodObject
  readonly text: string
}

/**
 * The pods as the API shows them: the newest derived status of each. Written by the pods' workers,
 * read by the server; subscribers hear of real changes only.
 */
export class StatusStore {
  readonly #pods = new Map<PodUid, Published>()
  readonly #subscribers = new Set<(event: WatchEvent<PodObject>) => void>()

  publish(uid: PodUid, object: PodObject): void {
    const before = this.#pods.get(uid)
    const text = canonicalJson(object)
    if (before?.text === text) return
    this.#pods.set(uid, { object, text })
    this.#tell({ type: before === undefined ? 'ADDED' : 'MODIFIED', object })
  }

  remove(uid: PodUid): void {
    const before = this.#pods.get(uid)
    if (before === undefined) return
    this.#pods.delete(uid)
    this.#tell({ type: 'DELETED', object: before.object })
  }

  /** By namespace and name; one that is ending stands before the one that replaces it. */
  list(): readonly PodObject[] {
    const key = ({ metadata }: PodObject): string =>
      `${metadata.namespace}/${metadata.name}/${metadata.creationTimestamp}`
    return [...this.#pods.values()].map((pod) => pod.object).sort((a, b) => (key(a) < key(b) ? -1 : 1))
  }

  get(uid: PodUid): PodObject | undefined {
    return this.#pods.get(uid)?.object
  }

  subscribe(listener: (event: WatchEvent<PodObject>) => void): () => void {
    this.#subscribers.add(listener)
    return () => {
      this.#subscribers.delete(listener)
    }
  }

  #tell(event: WatchEvent<PodObject>): void {
    for (const subscriber of this.#subscribers) subscriber(event)
  }
}
