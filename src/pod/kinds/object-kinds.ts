import type { JsonObject } from '../../base/json.ts'
import type { Infer } from '../schema/types.ts'
import type { FieldProblem } from '../schema/field-path.ts'
import { Issues } from '../validation/issues.ts'
import { validateClusterMetadata, validateMetadata } from '../validation/validate-metadata.ts'
import { configMapKind } from './config-map.ts'
import type { ObjectKindEntry } from './object-kind.ts'
import { persistentVolumeClaimKind } from './persistent-volume-claim.ts'
import { priorityClassKind } from './priority-class.ts'
import { runtimeClassKind } from './runtime-class.ts'
import { secretKind } from './secret.ts'

/**
 * The kinds of objects that pods refer to: each is a document of its own beside the pods. Decoding, the sources, the
 * last good copies and what is shown go by this table, so that a kind is added by its entry and the file of its name.
 */
export const objectKinds = {
  ConfigMap: configMapKind,
  Secret: secretKind,
  PersistentVolumeClaim: persistentVolumeClaimKind,
  RuntimeClass: runtimeClassKind,
  PriorityClass: priorityClassKind,
} as const

export type ObjectKind = keyof typeof objectKinds

type ObjectTypes = { readonly [Kind in ObjectKind]: Infer<(typeof objectKinds)[Kind]['schema']> }
/** An object that pods refer to, decoded, with the API's defaults. */
export type LocalObject = ObjectTypes[ObjectKind]
export type ObjectOf<Kind extends ObjectKind> = Extract<LocalObject, { readonly kind: Kind }>

/** In the order of the table. */
export const objectKindNames: readonly ObjectKind[] = Object.keys(objectKinds).filter((kind) =>
  isObjectKind(kind),
)

export function isObjectKind(kind: unknown): kind is ObjectKind {
  return typeof kind === 'string' && Object.hasOwn(objectKinds, kind)
}

/**
 * Validates an object that pods refer to, as Kubernetes does. Problems never contain a Secret's values. Fields without
 * effect are only in `manifest`.
 */
export function validateObject(object: LocalObject, manifest: JsonObject = {}): readonly FieldProblem[] {
  const issues = new Issues()
  validateClusterMetadata(object.kind, manifest['metadata'], ['metadata'], issues)
  validateMetadata({ namespace: 'default', ...object.metadata }, ['metadata'], issues)
  validateAs(object.kind, object, issues, manifest)
  return issues.problems
}

type Entries = {
  readonly [Kind in ObjectKind]: Pick<ObjectKindEntry<(typeof objectKinds)[Kind]['schema']>, 'validate'>
}

function validateAs<Kind extends ObjectKind>(
  kind: Kind,
  object: ObjectTypes[Kind],
  issues: Issues,
  manifest: JsonObject,
): void {
  const entries: Entries = objectKinds
  entries[kind].validate(object, issues, manifest)
}
