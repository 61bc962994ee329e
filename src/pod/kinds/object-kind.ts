import type { JsonObject } from '../../base/json.ts'
import type { Issues } from '../validation/issues.ts'
import type { Fields, Infer, ObjectType } from '../schema/types.ts'

/** Under what names the API and the command line list the objects of a kind. */
export interface ResourceNames {
  /** In the API's paths: `configmaps`. */
  readonly plural: string
  readonly singular: string
  /** As kubectl knows them: `cm`. */
  readonly short: readonly string[]
}

/** All that podd knows of a kind of object that pods refer to. */
export interface ObjectKindEntry<Schema extends ObjectType<Fields>> {
  /** Its fields, with their defaults. */
  readonly schema: Schema
  readonly resource: ResourceNames
  /** Cluster: it belongs to no namespace, and holds for the pods of all namespaces. */
  readonly scope: 'Namespaced' | 'Cluster'
  /** Each source has its own of one name; otherwise two of one name are rivals, whichever sources give them. */
  readonly isPerSource: boolean
  /** Its values stand in no message, and on disk only where `persistSecrets` allows it. */
  readonly isSecret: boolean
  /** What Kubernetes' validation refuses beside what the schema says; metadata is validated already. Fields of no effect stand in `manifest` alone. */
  readonly validate: (object: Infer<Schema>, issues: Issues, manifest: JsonObject) => void
}

/** Gives the entry of a kind its types. */
export function objectKind<Schema extends ObjectType<Fields>>(
  entry: ObjectKindEntry<Schema>,
): ObjectKindEntry<Schema> {
  return entry
}
