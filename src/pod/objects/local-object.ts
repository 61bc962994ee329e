/* Objects that pods refer to: their keys, their data, who may read them, and which of them a pod needs. */
import { PoddError } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ContainerSpec } from '../schema/container-schema.ts'
import { allContainers } from '../schema/pod-resources.ts'
import type { Pod } from '../schema/pod-schema.ts'
import { readAs } from '../schema/types.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import type { SourceKind, SourceName } from '../values/ids.ts'
import { dataOf, isObjectKind, objectKinds } from './object-kinds.ts'
import type { ConfigMap, LocalObject, ObjectKind, ObjectOf, Secret } from './object-kinds.ts'

export type { LocalObject, ObjectKind, ObjectOf } from './object-kinds.ts'

/**
 * `Kind/namespace/name`, or `Kind/name` for kinds without namespaces. No pod's key looks like it: kinds begin with a
 * capital.
 */
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
  return isObjectKind(kind) && objectKinds[kind].isSecret === true
}

/**
 * The typed object of a manifest that was checked when it was accepted.
 * @throws PoddError MANIFEST_UNREADABLE where it isn't such a manifest
 */
export function objectFromManifest(manifest: JsonObject): LocalObject {
  const kind = manifest['kind']
  if (isObjectKind(kind)) {
    const { schema } = objectKinds[kind]
    const object = readAs(schema, isNamespaced(kind) ? inNamespace(manifest) : manifest)
    if (object !== undefined) return object
  }
  throw new PoddError('MANIFEST_UNREADABLE', 'the recorded manifest is not one that this version can read')
}

/** An empty namespace is the default one, as a Pod's is. */
function inNamespace(manifest: JsonObject): JsonObject {
  const { metadata } = manifest
  if (!isJsonObject(metadata) || (metadata['namespace'] ?? '') !== '') return manifest
  return { ...manifest, metadata: { ...metadata, namespace: 'default' } }
}

/**
 * The files of a ConfigMap or Secret: key to content. A Secret's stringData wins over its data, as it does
 * where an API server merges them (`pkg/registry/core/secret/strategy.go`, 1.36).
 */
export function objectData(object: ConfigMap | Secret): ReadonlyMap<string, Buffer> {
  return object.kind === 'Secret'
    ? dataOf({ base64: object.data, text: object.stringData })
    : dataOf({ base64: object.binaryData, text: object.data })
}

/** What the sources of one kind may do with the objects that pods refer to. */
export interface ObjectPolicy {
  /** The kinds of other sources whose ConfigMaps, Secrets and claims the pods of one may read. */
  readonly readsObjectsOf: readonly SourceKind[]
  /** Whether its cluster-wide objects count: RuntimeClasses, and PriorityClasses for the pods of other sources. */
  readonly givesClusterObjects: boolean
}

export type ObjectPolicies = Readonly<Record<SourceKind, ObjectPolicy>>

/** A ConfigMap or Secret that something refers to; its namespace is the pod's. */
export interface ConfigReference {
  readonly kind: 'ConfigMap' | 'Secret'
  readonly name: string
}

/** The pod whose pull secrets are used. */
export interface PullSecrets {
  readonly source: SourceName
  readonly namespace: string
  /** `imagePullSecrets` of the pod. */
  readonly names: readonly string[]
}

/** The Secrets that a pod names for its pulls; undefined where it names none. */
export function pullSecretsOf(pod: Pod, source: SourceName): PullSecrets | undefined {
  const names = pod.spec.imagePullSecrets.map(({ name }) => name)
  return names.length === 0 ? undefined : { source, namespace: pod.metadata.namespace, names }
}

/** The Secrets that a pod names for its image pulls; missing ones are skipped. */
export function pullSecretReferences({ spec, metadata }: Pod): readonly ObjectKey[] {
  const names = spec.imagePullSecrets.map(({ name }) => name).filter((name) => name !== '')
  return names.map((name) => objectKey('Secret', metadata.namespace, name))
}

/** All objects that a pod refers to, including optional ones. */
export function podReferences(pod: Pod): ReadonlySet<ObjectKey> {
  const { spec, metadata } = pod
  const { runtimeClassName, priorityClassName } = spec
  const configs = [
    ...allContainers(spec).flatMap((container) => environmentReferences(container)),
    ...spec.volumes.flatMap((volume) => volumeReferences(volume)),
  ]
  return new Set([
    ...pullSecretReferences(pod),
    ...configs.map(({ kind, name }) => objectKey(kind, metadata.namespace, name)),
    ...spec.volumes.flatMap(({ persistentVolumeClaim: claim }) =>
      claim === undefined ? [] : objectKey('PersistentVolumeClaim', metadata.namespace, claim.claimName),
    ),
    ...(runtimeClassName === undefined ? [] : [objectKey('RuntimeClass', '', runtimeClassName)]),
    ...(priorityClassName === undefined ? [] : [objectKey('PriorityClass', '', priorityClassName)]),
  ])
}

/** The ConfigMaps and Secrets that a container consumes: in its environment or a mounted volume. */
export function containerReferences(container: ContainerSpec, { spec }: Pod): readonly ConfigReference[] {
  const mounted = new Set(container.volumeMounts.map(({ name }) => name))
  const volumes = spec.volumes.filter(({ name }) => mounted.has(name))
  return [...environmentReferences(container), ...volumes.flatMap((volume) => volumeReferences(volume))]
}

function environmentReferences(container: ContainerSpec): readonly ConfigReference[] {
  return [
    ...container.envFrom.flatMap(({ configMapRef, secretRef }) => pair(configMapRef, secretRef)),
    ...container.env.flatMap(({ valueFrom }) => pair(valueFrom?.configMapKeyRef, valueFrom?.secretKeyRef)),
  ]
}

function volumeReferences({ configMap, secret, projected }: VolumeSpec): readonly ConfigReference[] {
  return [
    ...pair(configMap, secret && { name: secret.secretName }),
    ...(projected?.sources ?? []).flatMap((source) => pair(source.configMap, source.secret)),
  ]
}

type Named = { readonly name: string } | undefined

function pair(configMap: Named, secret: Named): readonly ConfigReference[] {
  return [
    ...(configMap === undefined ? [] : [{ kind: 'ConfigMap' as const, name: configMap.name }]),
    ...(secret === undefined ? [] : [{ kind: 'Secret' as const, name: secret.name }]),
  ]
}
