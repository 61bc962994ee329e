/** The fields common to all objects of the API: meta/v1 TypeMeta and ObjectMeta. */
export interface ResourceObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    /** Left out for kinds without namespaces. */
    readonly namespace?: string
    readonly uid: string
    /** Of the object's last change; given by the store that shows it. */
    readonly resourceVersion?: string
    readonly creationTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
}

/** One line of a watch. */
export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: T
}

/** A change of one object, with a revision of its own, which is its `object`'s `resourceVersion`. */
export interface ResourceChange<T> extends WatchEvent<T> {
  readonly revision: number
  /** The object before the change; undefined for a new one. */
  readonly previous: T | undefined
}

export interface ResourceList<T extends ResourceObject = ResourceObject> {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    /** The revision from which a watch continues. */
    readonly resourceVersion: string
    /** The token for the rest of a limited list. */
    readonly continue?: string
    readonly remainingItemCount?: number
  }
  readonly items: readonly T[]
}
