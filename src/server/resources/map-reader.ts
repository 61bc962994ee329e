import type { ResourceChange, ResourceObject } from '../../api/resource.ts'
import type { ResourceReader } from '../requests/readers.ts'

/** The same objects in another form. A change stays one object for all its listeners, so that they share its line. */
export function mapReader<T extends ResourceObject>(
  reader: ResourceReader<ResourceObject>,
  convert: (object: ResourceObject) => T,
): ResourceReader<T> {
  const known = new WeakMap<ResourceChange<ResourceObject>, ResourceChange<T>>()
  const convertChange = (change: ResourceChange<ResourceObject>): ResourceChange<T> => {
    const converted = known.get(change) ?? {
      ...change,
      object: convert(change.object),
      previous: change.previous === undefined ? undefined : convert(change.previous),
    }
    known.set(change, converted)
    return converted
  }
  return {
    get revision() {
      return reader.revision
    },
    list: () => reader.list().map((object) => convert(object)),
    listAt: (revision) => reader.listAt(revision)?.map((object) => convert(object)),
    changesAfter: (revision) => reader.changesAfter(revision)?.map((change) => convertChange(change)),
    subscribe: (listener) => reader.subscribe((change) => listener(convertChange(change))),
  }
}
