import type { SourceName } from '../values/source-name.ts'

/** What one source may do with the objects that pods refer to. */
export interface ObjectPolicy {
  /** The other sources whose ConfigMaps, Secrets and claims its pods may read. */
  readonly readsObjectsOf: readonly SourceName[]
  /** What it says of all pods counts: its RuntimeClasses, and its PriorityClasses for the pods of other sources. */
  readonly givesClusterObjects: boolean
}

export type ObjectPolicies = Readonly<Record<SourceName, ObjectPolicy>>

/** What the sources may do where the configuration says nothing. */
export const defaultObjectPolicies: ObjectPolicies = {
  file: { readsObjectsOf: [], givesClusterObjects: true },
  http: { readsObjectsOf: [], givesClusterObjects: false },
}
