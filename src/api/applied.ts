import type { JsonObject } from '../base/json.ts'

/** What a podd runs by now, and where manifests go: GET /podd/v1/applied. */
export interface AppliedReply {
  readonly pods: readonly AppliedPodEntry[]
  /** ConfigMaps, Secrets, claims and classes. */
  readonly objects: readonly AppliedObjectEntry[]
  /** The directory of manifests; left out where there is none. */
  readonly manifestDirectory?: string
  /** What every pod's name gets appended. */
  readonly podNameSuffix: string
}

export interface AppliedPodEntry {
  /** `namespace/name` */
  readonly key: string
  readonly path: string
  /** As it is applied; its defaults are not filled in. */
  readonly manifest: JsonObject
  /** It was rejected, has finished or is terminating: any change of its spec makes a new pod. */
  readonly isPastChange: boolean
  /** All its containers have the image that the manifest says. */
  readonly isUpToDate: boolean
}

export interface AppliedObjectEntry {
  /** `configmap default/conf` */
  readonly key: string
  readonly path: string
  /** Of its manifest, which may be secret. */
  readonly hash: string
}
