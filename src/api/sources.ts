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
    /** Of its documents, and of what of them can't take effect. */
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
    /**
     * What it gives and does not run yet, as `Pod default/web`: pods whose old version still runs, or a whole unit of which an
     * earlier revision counts; of a held source that can be read what `podd resume` would apply.
     */
    readonly pending?:
      | {
          readonly added: readonly string[]
          readonly changed: readonly string[]
          readonly removed: readonly string[]
        }
      | undefined
  }
}

/** POST /podd/v1/sources/hold, …/resume: the sources that were not held before, or were; and units that were rolled back. */
export interface HoldReply {
  readonly changed: readonly string[]
}

/**
 * `Progressing`: it is not known yet whether the active revision is healthy. `Failed`: it is not, and stays. `RolledBack`:
 * the offered one failed, and the last healthy one is active. `RollbackRequested`: somebody wants another than the offered one.
 * Of these that don't say so, what counts may be something else than the source gives: `Invalid`: some of that is not valid.
 * `Held`: the source is held, or podd crashed on it. `Unread`: it has not been read since podd started.
 */
export type UnitState =
  | 'Progressing'
  | 'Healthy'
  | 'Failed'
  | 'RolledBack'
  | 'RollbackRequested'
  | 'Invalid'
  | 'Held'
  | 'Unread'

/**
 * GET /podd/v1/units: one for each file of a directory, each URL and each pod of the API, in the order of the sources. Times are those of
 * Kubernetes' objects.
 */
export interface UnitObject {
  readonly apiVersion: 'podd.dev/v1'
  readonly kind: 'Unit'
  /** The path of the file, the name of the URL's source, or `api:NAMESPACE/NAME`. */
  readonly metadata: { readonly name: string }
  readonly spec: { readonly source: string }
  readonly status: {
    readonly state: UnitState
    /** The numbers of the revision that counts, of the one that the source gives, and of the one that is gone back to. */
    readonly active: number
    readonly offered: number
    readonly lastHealthy?: number | undefined
    /** Since when another revision than the offered one is active. */
    readonly since?: string | undefined
    readonly message?: string | undefined
    /** `namespace/name` of the pods that are being judged. */
    readonly progressing: readonly string[]
    /** Oldest first. */
    readonly revisions: readonly RevisionObject[]
  }
}

/** The units that a word means: one of this name, else those whose path ends with it, with or without `.yaml`, or URL's sources of that name. */
export function selectUnits(names: readonly string[], word: string): readonly string[] {
  if (names.includes(word)) return [word]
  return names.filter((name) => {
    const stem = name.replace(/\.(?:ya?ml|json)$/u, '')
    return name.endsWith(`/${word}`) || stem.endsWith(`/${word}`) || name.endsWith(`:${word}`)
  })
}

export interface RevisionObject {
  readonly number: number
  readonly hash: string
  /** A digest of what its source wrote; left out where that is not known. */
  readonly written?: string | undefined
  /** What the source itself calls it: an ETag. */
  readonly sourceRevision?: string | undefined
  /** Its source demands signatures, and trusts none of it: nothing goes back to it. */
  readonly distrusted?: true | undefined
  /** When it was offered. */
  readonly time: string
  readonly verdict: 'Progressing' | 'Healthy' | 'Failed' | 'Superseded'
  readonly pods: number
  readonly failure?: FailureObject | undefined
}

/** Why a revision failed. */
interface FailureObject {
  readonly reason: string
  readonly message: string
  readonly time: string
  /** Why each workload that failed did, by `Kind/namespace/name`; left out where that is not known. */
  readonly workloads?: Readonly<Record<string, string>> | undefined
  readonly containers: readonly {
    readonly pod: string
    readonly container: string
    readonly exitCode?: number | undefined
    readonly reason?: string | undefined
    readonly message?: string | undefined
    /** The last lines of its log. */
    readonly lines: readonly string[]
  }[]
}

/** POST /podd/v1/units/rollback. */
export interface RollbackReply {
  readonly unit: string
  /** The number of the revision that counts now. */
  readonly active: number
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
  /** The workload that makes it; left out where it stands in a manifest itself. A podd of an older version doesn't say. */
  readonly owner?: { readonly kind: string; readonly name: string } | undefined
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
  /** Why the newest version is not in effect, and the old one runs; left out where it is, or is on its way. */
  readonly problem?: string | undefined
}

export interface AppliedObjectEntry extends AppliedPlace {
  /** `configmap default/conf` */
  readonly key: string
  /** A hash of its manifest, which may be secret. */
  readonly hash: string
  /** How a Job ended, also one that is past its `ttlSecondsAfterFinished` and not shown any more. */
  readonly end?:
    | { readonly type: 'Complete' | 'Failed'; readonly reason: string; readonly message: string }
    | undefined
}
