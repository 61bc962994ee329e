import type { JsonObject } from '../base/json.ts'
import type { SourceName } from '../pod/values/ids.ts'

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
