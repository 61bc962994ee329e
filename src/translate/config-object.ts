import type { ConfigObject, LocalObjectMeta } from '../api/local-objects.ts'
import type { ObjectDocument, SourceName } from '../pod/objects/document.ts'
import { objectData } from '../pod/objects/object-data.ts'
import type { ConfigMap } from '../pod/kinds/config-map.ts'
import type { PersistentVolumeClaim } from '../pod/kinds/persistent-volume-claim.ts'
import type { Secret } from '../pod/kinds/secret.ts'
import { uuidOfText } from '../pod/values/hash.ts'

/** A client of the API keeps the whole manifest here, values and all. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

export interface ObjectOrigin {
  readonly source: SourceName
  readonly place: ObjectDocument['place']
}

/** A ConfigMap or Secret as the API shows it. */
export function toConfigObject(
  object: ConfigMap | Secret,
  origin: ObjectOrigin,
  options: { readonly values: boolean },
): ConfigObject {
  const show = options.values ? (text: string) => text : (_text: string, bytes: number) => `<${bytes} bytes>`
  const isText = (key: string): boolean => object.kind === 'ConfigMap' && Object.hasOwn(object.data, key)
  const data = new Map<string, string>()
  const binaryData = new Map<string, string>()
  for (const [key, bytes] of objectData(object)) {
    const text = bytes.toString(isText(key) ? 'utf8' : 'base64')
    const target = object.kind === 'Secret' || isText(key) ? data : binaryData
    target.set(key, show(text, bytes.byteLength))
  }
  return {
    apiVersion: 'v1',
    kind: object.kind,
    metadata: toObjectMeta(object, origin, options),
    ...(object.kind === 'Secret' && { type: object.type }),
    ...(object.immutable && { immutable: true }),
    data: Object.fromEntries(data),
    ...(binaryData.size > 0 && { binaryData: Object.fromEntries(binaryData) }),
  }
}

export function toObjectMeta(
  { kind, metadata }: Pick<ConfigMap | Secret | PersistentVolumeClaim, 'kind' | 'metadata'>,
  { source, place }: ObjectOrigin,
  options: { readonly values: boolean },
): LocalObjectMeta {
  const { name, namespace, labels, annotations } = metadata
  const shown = Object.entries(annotations).filter(([key]) => options.values || key !== lastApplied)
  return {
    name,
    namespace,
    uid: objectUid({ kind, namespace, name, source }),
    ...(Object.keys(labels).length > 0 && { labels }),
    annotations: { ...Object.fromEntries(shown), 'podd.dev/source': source, 'podd.dev/path': place.path },
  }
}

/** The UID of an object that has no record: the same as long as the object has its name and its source. */
export function objectUid(object: {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly source: SourceName | undefined
}): string {
  const { kind, namespace, name, source } = object
  return uuidOfText(JSON.stringify([kind, namespace, name, source]))
}
