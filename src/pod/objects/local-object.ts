import { PoddError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { isObjectKind, objectKinds } from '../kinds/object-kinds.ts'
import type { LocalObject, ObjectKind, ObjectOf } from '../kinds/object-kinds.ts'
import { conforms, fillDefaults } from '../schema/fill-defaults.ts'
import type { SourceName } from '../values/source-name.ts'

export type { LocalObject, ObjectKind, ObjectOf } from '../kinds/object-kinds.ts'

/** `Kind/namespace/name`, or `Kind/name` for kinds without namespaces. No pod's key looks like it: kinds begin with a capital. */
export type ObjectKey = string

/** Reads the objects that pods refer to. */
export interface ObjectReader {
  /** @param namespace ignored for kinds without namespaces */
  get<Kind extends ObjectKind>(kind: Kind, namespace: string, name: string): ObjectOf<Kind> | undefined
  /** All objects of a kind, ordered by key. */
  list<Kind extends ObjectKind>(kind: Kind): readonly ObjectOf<Kind>[]
  /** The source that gives it. */
  sourceOf(key: ObjectKey): SourceName | undefined
  /** The addition to a message about a missing object, if any. */
  explainMissing(key: ObjectKey): string | undefined
}

/** @param namespace left out of the key for kinds without namespaces */
export function objectKey(kind: ObjectKind, namespace: string, name: string): ObjectKey {
  return isNamespaced(kind) ? `${kind}/${namespace}/${name}` : `${kind}/${name}`
}

export function keyOfObject(object: LocalObject): ObjectKey {
  const { metadata } = object
  const namespace = 'namespace' in metadata ? metadata.namespace : ''
  return objectKey(object.kind, namespace, metadata.name)
}

export function isNamespaced(kind: ObjectKind): boolean {
  return objectKinds[kind].scope === 'Namespaced'
}

/** Whether the values of such a manifest are kept out of messages. */
export function holdsSecrets(manifest: JsonObject): boolean {
  const kind = manifest['kind']
  return isObjectKind(kind) && objectKinds[kind].isSecret
}

/**
 * The typed object of a manifest that was checked when it was accepted.
 * @throws PoddError MANIFEST_UNREADABLE where it isn't such a manifest
 */
export function objectFromManifest(manifest: JsonObject): LocalObject {
  const kind = manifest['kind']
  if (isObjectKind(kind)) {
    const { schema } = objectKinds[kind]
    const object = fillDefaults(schema, isNamespaced(kind) ? inNamespace(manifest) : manifest)
    if (conforms(schema, object)) return object
  }
  throw new PoddError('MANIFEST_UNREADABLE', 'the recorded manifest is not one that this version can read')
}

/** An empty namespace is the default one, as a Pod's is. */
function inNamespace(manifest: JsonObject): JsonObject {
  const { metadata } = manifest
  if (!isJsonObject(metadata) || (metadata['namespace'] ?? '') !== '') return manifest
  return { ...manifest, metadata: { ...metadata, namespace: 'default' } }
}
