import type { SourceKind } from '../values/source-name.ts'

/** What the sources of one kind may do with the objects that pods refer to. */
export interface ObjectPolicy {
  /** The kinds of other sources whose ConfigMaps, Secrets and claims the pods of one may read. */
  readonly readsObjectsOf: readonly SourceKind[]
  /** Whether its cluster-wide objects count: RuntimeClasses, and PriorityClasses for the pods of other sources. */
  readonly givesClusterObjects: boolean
}

export type ObjectPolicies = Readonly<Record<SourceKind, ObjectPolicy>>

/** The default policies. */
export const defaultObjectPolicies: ObjectPolicies = {
  file: { readsObjectsOf: [], givesClusterObjects: true },
  http: { readsObjectsOf: [], givesClusterObjects: false },
  api: { readsObjectsOf: ['file'], givesClusterObjects: true },
}
