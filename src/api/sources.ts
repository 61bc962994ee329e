import type { JsonObject } from '../base/json.ts'
import type { Problem } from '../pod/objects/document.ts'
import type { SourceName } from '../pod/values/ids.ts'

/** GET /podd/v1/sources: one for each source, in their order. Times are those of Kubernetes' objects. */
export interface SourceObject {
  readonly apiVersion: 'podd.dev/v1'
  readonly kind: 'Source'
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly type: 'Directory' | 'URL'
    /** The directory, or the URL without its credentials. */
    readonly place: string
  }
  readonly status: {
    /**
     * `Following`; `Held`: no change is applied until it is resumed; `Failing`: it can't be read, and the last good copy
     * stands in for it; `Unread`: there is none.
     */
    readonly state: 'Following' | 'Held' | 'Failing' | 'Unread'
    /** How changes arrive: told by the file system, found by reading or asking again, held back by the server until there is one. */
    readonly mode: 'watch' | 'poll' | 'push'
    /** Read at least once, or stood in for by its last good copy. */
    readonly ready: boolean
    /** That run, or shall: while it is held, those that are held. */
    readonly pods: number
    /** ConfigMaps, Secrets, claims and classes. */
    readonly objects: number
    readonly errors: number
    /** Errors and warnings of what it gives now, 100 at most. */
    readonly problems?: readonly Problem[] | undefined
    readonly warnings: number
    /** Of what was read last. */
    readonly hash?: string | undefined
    readonly etag?: string | undefined
    /** When it was read, or the server answered, last. */
    readonly lastAnswerTime?: string | undefined
    /** Why it can't be read, else the first of its errors, else of its warnings. */
    readonly message?: string | undefined
    readonly failingSince?: string | undefined
    /** Since when there are errors, in its documents too. */
    readonly errorsSince?: string | undefined
    /** The last good copy stands in for the source, or for some of its documents. */
    readonly lastGood: boolean
    readonly heldSince?: string | undefined
    /** Of a held source that can be read: what `podd resume` would apply, as `Pod default/web`. */
    readonly pending?:
      | {
          readonly added: readonly string[]
          readonly changed: readonly string[]
          readonly removed: readonly string[]
        }
      | undefined
  }
}

/** POST /podd/v1/sources/hold, …/resume: the sources that were not held before, or were. */
export interface HoldReply {
  readonly changed: readonly string[]
}

/** The manifests that podd currently runs, and where new ones go: GET /podd/v1/applied. */
export interface AppliedReply {
  readonly pods: readonly AppliedPodEntry[]
  /** ConfigMaps, Secrets, claims and classes. */
  readonly objects: readonly AppliedObjectEntry[]
  /** The directory of manifests; left out where there is none. */
  readonly manifestDirectory?: string
  /** The suffix appended to every pod's name. */
  readonly podNameSuffix: string
}

/** Where something comes from. */
export interface AppliedPlace {
  readonly path: string
  /** A podd of an older version doesn't say. */
  readonly source?: SourceName
}

export interface AppliedPodEntry extends AppliedPlace {
  /** `namespace/name` */
  readonly key: string
  /** The applied manifest, without defaults. */
  readonly manifest: JsonObject
  /** It was rejected, has finished or is terminating: any change of its spec makes a new pod. */
  readonly isPastChange: boolean
  /** Whether all its containers run the image of the manifest. */
  readonly isUpToDate: boolean
}

export interface AppliedObjectEntry extends AppliedPlace {
  /** `configmap default/conf` */
  readonly key: string
  /** A hash of its manifest, which may be secret. */
  readonly hash: string
}
