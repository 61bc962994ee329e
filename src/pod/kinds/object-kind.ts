import type { JsonObject } from '../../base/json.ts'
import type { Issues } from '../validation/issues.ts'
import type { Fields, Infer, ObjectType } from '../schema/types.ts'

/** The names of a kind in the API and on the command line. */
export interface ResourceNames {
  /** In the API's paths: `configmaps`. */
  readonly plural: string
  readonly singular: string
  /** kubectl's short names: `cm`. */
  readonly short: readonly string[]
}

/** The entry of a kind of object that pods refer to. */
export interface ObjectKindEntry<Schema extends ObjectType<Fields>> {
  /** Its fields, with their defaults. */
  readonly schema: Schema
  readonly resource: ResourceNames
  /** Cluster: it has no namespace, and applies to the pods of all namespaces. */
  readonly scope: 'Namespaced' | 'Cluster'
  /** Whether each source has its own objects; otherwise objects of one name compete across sources. */
  readonly isPerSource: boolean
  /** Whether its values are kept out of messages, and written to disk only where `persistSecrets` allows it. */
  readonly isSecret: boolean
  /**
   * Kubernetes' validation beyond the schema; metadata is validated already. Fields without effect are only in
   * `manifest`.
   */
  readonly validate: (object: Infer<Schema>, issues: Issues, manifest: JsonObject) => void
}

/** Gives the entry of a kind its types. */
export function objectKind<Schema extends ObjectType<Fields>>(
  entry: ObjectKindEntry<Schema>,
): ObjectKindEntry<Schema> {
  return entry
}
