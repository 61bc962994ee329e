import type { ResourceChange, ResourceObject } from '../../api/resource.ts'
import { isJsonObject } from '../../base/json.ts'
import type { ResourceReader } from '../requests/readers.ts'

/** A client of the API keeps the whole manifest here, values and all. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** Shows Secrets with their keys, and of each value how long it is (`<7 bytes>`). */
export function redactSecrets(reader: ResourceReader<ResourceObject>): ResourceReader<ResourceObject> {
  // One change stays one object for all who hear of it, so that they share its line.
  const known = new WeakMap<ResourceChange<ResourceObject>, ResourceChange<ResourceObject>>()
  const redactChange = (change: ResourceChange<ResourceObject>): ResourceChange<ResourceObject> => {
    const redacted = known.get(change) ?? {
      ...change,
      object: redact(change.object),
      previous: change.previous === undefined ? undefined : redact(change.previous),
    }
    known.set(change, redacted)
    return redacted
  }
  return {
    get revision() {
      return reader.revision
    },
    list: () => reader.list().map((object) => redact(object)),
    listAt: (revision) => reader.listAt(revision)?.map((object) => redact(object)),
    changesAfter: (revision) => reader.changesAfter(revision)?.map((change) => redactChange(change)),
    subscribe: (listener) => reader.subscribe((change) => listener(redactChange(change))),
  }
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
