/** What all objects that the API gives have in common: meta/v1 TypeMeta and ObjectMeta. */
export interface ResourceObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    /** Left out where the kind belongs to no namespace. */
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

/** A change of one object, at a revision of its own; its `object` bears it as `resourceVersion`. */
export interface ResourceChange<T> extends WatchEvent<T> {
  readonly revision: number
  /** What the object was before; undefined of one that was added. */
  readonly previous: T | undefined
}

export interface ResourceList<T extends ResourceObject = ResourceObject> {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    /** What a watch goes on from. */
    readonly resourceVersion: string
    /** Asks for the rest of a list that was limited. */
    readonly continue?: string
    readonly remainingItemCount?: number
  }
  readonly items: readonly T[]
}
