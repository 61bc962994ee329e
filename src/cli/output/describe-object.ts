import type { ServedKind } from '../../api/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject, entriesOf, textAt } from '../../base/json.ts'
import { Description } from './description.ts'

/** The columns of an object of any kind in the layout of `kubectl describe`, then its data. */
export function describeObject(kind: ServedKind, object: ResourceObject, nowMs: number): string {
  const { name, namespace, labels, annotations } = object.metadata
  const text = new Description()
  text.add(0, 'Name', name)
  if (namespace !== undefined) text.add(0, 'Namespace', namespace)
  text.add(0, 'Labels', entriesOf(labels, '='))
  text.add(0, 'Annotations', entriesOf(annotations, ': '))
  const cells = kind.cells(object, nowMs)
  for (const [index, { title }] of kind.columns.entries()) {
    const label = title.charAt(0) + title.slice(1).toLowerCase()
    if (!['NAME', 'DATA', 'KEYS'].includes(title)) text.add(0, label, cells[index] || '<none>')
  }
  if ('data' in object && isJsonObject(object.data)) text.addBlock(0, 'Data', entriesOf(object.data, ': '))
  // As kubectl writes it (`kubectl/pkg/describe/describe.go` ConfigMapDescriber, 1.36).
  if ('binaryData' in object && isJsonObject(object.binaryData)) {
    for (const line of ['', 'BinaryData', '====']) text.addLine(0, line)
    for (const line of sizesOf(object.binaryData)) text.addLine(0, line)
  }
  return text.toString()
}

/** Of base64: `key: 12 bytes`, sorted by key. */
function sizesOf(data: JsonObject): readonly string[] {
  return Object.keys(data)
    .sort()
    .map((key) => `${key}: ${Buffer.byteLength(textAt(data, key) ?? '', 'base64')} bytes`)
}
