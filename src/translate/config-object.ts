import type { ConfigObject, LocalObjectMeta } from '../api/cluster-objects.ts'
import type { ObjectDocument, SourceName } from '../pod/objects/document.ts'
import type { ConfigMap, PersistentVolumeClaim, Secret } from '../pod/objects/object-kinds.ts'
import { uuidOfText } from '../pod/values/hash.ts'

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

export function toObjectMeta(
  { kind, metadata }: Pick<ConfigMap | Secret | PersistentVolumeClaim, 'kind' | 'metadata'>,
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
