/*
 * The files of configMap, secret, downwardAPI and projected volumes; and ConfigMaps and Secrets as the API shows them.
 */
import type { ConfigObject, LocalObjectMeta } from '../api/cluster-objects.ts'
import type { OwnerReference } from '../api/resource.ts'
import { cleanPath } from '../base/text.ts'
import type { ObjectDocument, PodOwner } from '../pod/objects/document.ts'
import { objectData } from '../pod/objects/local-object.ts'
import type { ObjectReader } from '../pod/objects/local-object.ts'
import type { ConfigMap, LocalObject, Secret } from '../pod/objects/object-kinds.ts'
import { isBatchKind } from '../pod/objects/workload-kinds.ts'
import type { keyToPathSchema } from '../pod/schema/container-schema.ts'
import type { Infer } from '../pod/schema/types.ts'
import type { downwardAPIFileSchema, VolumeSpec } from '../pod/schema/volume-schema.ts'
import { uuidOfText } from '../pod/values/hash.ts'
import type { SourceName } from '../pod/values/ids.ts'
import { fieldValue, missingObject, MissingReference, resourceFieldValue } from './references.ts'
import type { FieldFacts } from './references.ts'
import { allContainers } from '../pod/schema/pod-resources.ts'
import type { ResourceList } from '../pod/schema/pod-resources.ts'

/** A file of a volume that podd fills. */
export interface VolumeFile {
  readonly data: Uint8Array
  /** Permission bits. */
  readonly mode: number
}

/** By path, relative to the volume. */
export type VolumeFiles = ReadonlyMap<string, VolumeFile>

export interface VolumeFilesInput {
  readonly fields: FieldFacts
  readonly capacity: ResourceList
  readonly objects: ObjectReader
}

type Item = Infer<typeof keyToPathSchema>
type DownwardFile = Infer<typeof downwardAPIFileSchema>
interface FileSource {
  readonly kind: 'ConfigMap' | 'Secret'
  readonly name: string
  readonly items: readonly Item[]
  readonly optional: boolean
}

/**
 * The current files of a configMap, secret, downwardAPI or projected volume; undefined for volumes of other kinds. Of
 * projected sources with the same path, the last one wins (`MakePayload` in
 * `pkg/volume/{configmap,secret,downwardapi}`, `pkg/volume/projected/projected.go`, 1.36).
 * @throws MissingReference for the first missing, non-optional object or key
 */
export function computeVolumeFiles(volume: VolumeSpec, input: VolumeFilesInput): VolumeFiles | undefined {
  const { configMap, secret, downwardAPI, projected } = volume
  if (configMap !== undefined) {
    return objectFiles({ kind: 'ConfigMap', ...configMap }, configMap.defaultMode, input)
  }
  if (secret !== undefined) {
    return objectFiles({ kind: 'Secret', name: secret.secretName, ...secret }, secret.defaultMode, input)
  }
  if (downwardAPI !== undefined) return downwardFiles(downwardAPI.items, downwardAPI.defaultMode, input)
  if (projected === undefined) return undefined
  const { sources, defaultMode } = projected
  const parts = sources.flatMap(({ configMap, secret, downwardAPI }) =>
    [
      configMap && objectFiles({ kind: 'ConfigMap', ...configMap }, defaultMode, input),
      secret && objectFiles({ kind: 'Secret', ...secret }, defaultMode, input),
      downwardAPI && downwardFiles(downwardAPI.items, defaultMode, input),
    ].filter((files) => files !== undefined),
  )
  return new Map(parts.flatMap((files) => Array.from(files)))
}

function objectFiles(source: FileSource, defaultMode: number, input: VolumeFilesInput): VolumeFiles {
  const { kind, name, items, optional } = source
  const object = input.objects.get(kind, input.fields.pod.metadata.namespace, name)
  if (object === undefined) {
    if (optional) return new Map()
    throw missingObject(input.objects, { kind, namespace: input.fields.pod.metadata.namespace, name })
  }
  const data = objectData(object)
  if (items.length === 0) {
    return new Map([...data].map(([key, bytes]) => [key, { data: bytes, mode: defaultMode }]))
  }
  const files = new Map<string, VolumeFile>()
  for (const { key, path, mode } of items) {
    const bytes = data.get(key)
    if (bytes !== undefined) files.set(cleanPath(path), { data: bytes, mode: mode ?? defaultMode })
    else if (!optional) {
      throw new MissingReference(
        `${kind.toLowerCase()} references non-existent ${kind === 'ConfigMap' ? 'config' : 'secret'} key: ${key}`,
      )
    }
  }
  return files
}

function downwardFiles(
  items: readonly DownwardFile[],
  defaultMode: number,
  input: VolumeFilesInput,
): VolumeFiles {
  return new Map(
    items.map((item) => [
      cleanPath(item.path),
      { data: Buffer.from(downwardValue(item, input)), mode: item.mode ?? defaultMode },
    ]),
  )
}

function downwardValue({ fieldRef, resourceFieldRef }: DownwardFile, input: VolumeFilesInput): string {
  const { fields, capacity } = input
  if (fieldRef !== undefined) {
    const value = fieldValue(fieldRef.fieldPath, fields)
    if (value === undefined) throw new MissingReference(`unsupported fieldPath: ${fieldRef.fieldPath}`)
    return value
  }
  const container = allContainers(fields.pod.spec).find(
    ({ name }) => name === resourceFieldRef?.containerName,
  )
  const value =
    resourceFieldRef &&
    container &&
    resourceFieldValue(resourceFieldRef, container, { pod: fields.pod.spec, capacity })
  if (value !== undefined) return value
  const { containerName = '', resource = '' } = resourceFieldRef ?? {}
  throw new MissingReference(`unsupported resource: ${resource} of container ${containerName}`)
}

export interface ObjectOrigin {
  readonly source: SourceName
  readonly place: ObjectDocument['place']
  readonly kept?: ObjectDocument['kept']
}

/** A ConfigMap or Secret as the API shows it; a Secret's `stringData` has become `data`, as in an API server. */
export function toConfigObject(object: ConfigMap | Secret, origin: ObjectOrigin): ConfigObject {
  const head = { apiVersion: 'v1', metadata: toObjectMeta(object, origin) } as const
  const immutable = object.immutable ? { immutable: true } : {}
  if (object.kind === 'ConfigMap') {
    const { data, binaryData } = object
    const binary = Object.keys(binaryData).length > 0 ? { binaryData } : {}
    return { ...head, kind: 'ConfigMap', ...immutable, ...dataOf(data), ...binary }
  }
  const texts = Object.entries(object.stringData).map(([key, text]) => [
    key,
    Buffer.from(text).toString('base64'),
  ])
  const data = { ...object.data, ...Object.fromEntries(texts) }
  return { ...head, kind: 'Secret', type: object.type, ...immutable, ...dataOf(data) }
}

/** Omits an empty map, as an API server does. */
function dataOf(data: Readonly<Record<string, string>>): Pick<ConfigObject, 'data'> {
  return Object.keys(data).length > 0 ? { data } : {}
}

type NamespacedObject = Extract<LocalObject, { readonly metadata: { readonly namespace: string } }>

export function toObjectMeta(
  { kind, metadata }: Pick<NamespacedObject, 'kind' | 'metadata'>,
  { source, place, kept }: ObjectOrigin,
): LocalObjectMeta {
  const { name, namespace, labels, annotations } = metadata
  return {
    ...kept?.metadata,
    name,
    namespace,
    uid:
      kept?.uid ??
      objectUid({ kind, namespace, name, source: kind === 'PersistentVolumeClaim' ? undefined : source }),
    ...(Object.keys(labels).length > 0 && { labels }),
    annotations: { ...annotations, 'podd.dev/source': source, 'podd.dev/path': place.path },
  }
}

/** As what a workload makes refers to it. */
export function ownerReference(
  { kind, name, uid }: PodOwner,
  { namespace, source }: { readonly namespace: string; readonly source: SourceName },
): OwnerReference {
  return {
    apiVersion: isBatchKind(kind) ? 'batch/v1' : 'apps/v1',
    kind,
    name,
    uid: uid ?? objectUid({ kind, namespace, name, source }),
    controller: true,
    blockOwnerDeletion: true,
  }
}

/** The UID of an object that has no record: stable for a name and a source. */
export function objectUid(object: {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly source: SourceName | undefined
}): string {
  const { kind, namespace, name, source } = object
  return uuidOfText(JSON.stringify([kind, namespace, name, source]))
}
