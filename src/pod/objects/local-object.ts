import { PoddError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { SourceName } from '../values/source-name.ts'
import { conforms, fillDefaults } from '../schema/fill-defaults.ts'
import type {
  ConfigMap,
  PersistentVolumeClaim,
  PriorityClass,
  RuntimeClass,
  Secret,
} from '../schema/object-schema.ts'
import { objectSchemas } from '../schema/object-schema.ts'
import type { Infer } from '../schema/types.ts'

/** An object that pods refer to, decoded, with the API's defaults. */
export type LocalObject = ConfigMap | Secret | PersistentVolumeClaim | RuntimeClass | PriorityClass
export type ObjectKind = LocalObject['kind']
export type ObjectOf<Kind extends ObjectKind> = Extract<LocalObject, { readonly kind: Kind }>

/** `Kind/namespace/name`, or `Kind/name` for kinds without namespaces. No pod's key looks like it: kinds begin with a capital. */
export type ObjectKey = string

/** What others may ask of the objects that pods refer to. */
export interface ObjectReader {
  /** @param namespace of no matter for kinds that belong to none */
  get<Kind extends ObjectKind>(kind: Kind, namespace: string, name: string): ObjectOf<Kind> | undefined
  /** In the order of their keys. */
  list<Kind extends ObjectKind>(kind: Kind): readonly ObjectOf<Kind>[]
  /** Which source gives it. */
  sourceOf(key: ObjectKey): SourceName | undefined
  /** What to say beside that an object isn't there, where there is more to say. */
  explainMissing(key: ObjectKey): string | undefined
}

export function isObjectKind(kind: string): kind is ObjectKind {
  return Object.hasOwn(objectSchemas, kind)
}

/** @param namespace left out of the key for kinds that belong to none */
export function objectKey(kind: ObjectKind, namespace: string, name: string): ObjectKey {
  return isNamespaced(kind) ? `${kind}/${namespace}/${name}` : `${kind}/${name}`
}

export function keyOfObject(object: LocalObject): ObjectKey {
  const { metadata } = object
  const namespace = 'namespace' in metadata ? metadata.namespace : ''
  return objectKey(object.kind, namespace, metadata.name)
}

export function isNamespaced(kind: ObjectKind): boolean {
  return kind !== 'RuntimeClass' && kind !== 'PriorityClass'
}

/**
 * The typed object of a manifest that was checked when it was accepted.
 * @throws PoddError MANIFEST_UNREADABLE where it isn't such a manifest
 */
export function objectFromManifest(manifest: JsonObject): LocalObject {
  const kind = manifest['kind']
  const found = typeof kind === 'string' && isObjectKind(kind) ? filled(kind, manifest) : undefined
  if (found !== undefined) return inNamespace(found)
  throw new PoddError('MANIFEST_UNREADABLE', 'the recorded manifest is not one that this version can read')
}

/** An empty namespace is the default one, as a Pod's is. */
function inNamespace(object: LocalObject): LocalObject {
  switch (object.kind) {
    case 'RuntimeClass':
    case 'PriorityClass':
      return object
    case 'ConfigMap':
    case 'Secret':
    case 'PersistentVolumeClaim':
      if (object.metadata.namespace !== '') return object
      return { ...object, metadata: { ...object.metadata, namespace: 'default' } }
  }
}

function filled(kind: ObjectKind, manifest: JsonObject): LocalObject | undefined {
  switch (kind) {
    case 'ConfigMap':
      return typed(objectSchemas.ConfigMap, manifest)
    case 'Secret':
      return typed(objectSchemas.Secret, manifest)
    case 'PersistentVolumeClaim':
      return typed(objectSchemas.PersistentVolumeClaim, manifest)
    case 'RuntimeClass':
      return typed(objectSchemas.RuntimeClass, manifest)
    case 'PriorityClass':
      return typed(objectSchemas.PriorityClass, manifest)
  }
}

function typed<Schema extends (typeof objectSchemas)[ObjectKind]>(
  schema: Schema,
  manifest: JsonObject,
): Infer<Schema> | undefined {
  const value = fillDefaults(schema, manifest)
  return conforms(schema, value) ? value : undefined
}
