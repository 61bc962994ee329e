import type { ResourceObject } from '../../api/resource.ts'
import { isJsonObject } from '../../base/json.ts'
import type { ResourceReader } from '../requests/readers.ts'
import { mapReader } from './map-reader.ts'

/** The annotation in which kubectl keeps the whole manifest, including the values. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** Shows Secrets with their keys, and the length of each value (`<7 bytes>`). */
export function redactSecrets(reader: ResourceReader<ResourceObject>): ResourceReader<ResourceObject> {
  return mapReader(reader, redact)
}

function redact(object: ResourceObject): ResourceObject {
  const { annotations = {} } = object.metadata
  const shown = Object.entries(annotations).filter(([key]) => key !== lastApplied)
  const data = 'data' in object && isJsonObject(object.data) ? object.data : {}
  const sizes = Object.entries(data).map(([key, value]) => [
    key,
    `<${typeof value === 'string' ? Buffer.byteLength(value, 'base64') : 0} bytes>`,
  ])
  const redacted = {
    ...object,
    metadata: { ...object.metadata, annotations: Object.fromEntries(shown) },
    data: Object.fromEntries(sizes),
  }
  return redacted
}
