import type { ResourceObject } from '../../api/resource.ts'

/** A line of a watch that lists first: an object, a bookmark or an error. */
export interface WatchLine<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: T
}

const endOfList = 'k8s.io/initial-events-end'

/**
 * The objects of a watch. A watch that is restarted lists them again; the earlier ones are shown until its list is
 * complete.
 */
export class WatchedObjects<T extends ResourceObject> {
  #shown: ReadonlyMap<string, T> = new Map()
  #objects = new Map<string, T>()
  #isListed = false

  /** The next lines are the initial list. */
  begin(): void {
    this.#objects = new Map()
    this.#isListed = false
  }

  /** Whether what is shown has changed. */
  take({ type, object }: WatchLine<T>): boolean {
    if (type === 'BOOKMARK') {
      if (this.#isListed || object.metadata.annotations?.[endOfList] !== 'true') return false
      this.#isListed = true
    } else if (type === 'DELETED') this.#objects.delete(object.metadata.uid)
    else if (type !== 'ERROR') this.#objects.set(object.metadata.uid, object)
    if (!this.#isListed) return false
    this.#shown = this.#objects
    return type !== 'ERROR'
  }

  list(): readonly T[] {
    return [...this.#shown.values()]
  }
}
