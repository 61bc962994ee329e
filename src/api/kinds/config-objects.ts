import type { ConfigObject } from '../local-objects.ts'
import { writeVerbs } from './api-resource.ts'
import { servedKind } from './served-kind.ts'

const nameColumn = { title: 'NAME', cell: ({ metadata }: ConfigObject) => metadata.name }

/** How many entries, and their keys; no table has a value. */
const dataColumns = [
  { title: 'DATA', cell: (object: ConfigObject) => String(keysOf(object).length) },
  { title: 'KEYS', cell: (object: ConfigObject) => keysOf(object).join(',') },
]

export const configMapKind = servedKind<ConfigObject>({
  resource: 'configmaps',
  verbs: writeVerbs,
  singular: 'configmap',
  shortNames: ['cm'],
  kind: 'ConfigMap',
  columns: [nameColumn, ...dataColumns],
})

/** Their tables are made from podd's redacted form, so that no value leaves the daemon for them. */
export const secretKind = servedKind<ConfigObject>({
  resource: 'secrets',
  verbs: writeVerbs,
  singular: 'secret',
  shortNames: [],
  kind: 'Secret',
  tableRoot: '/podd/v1',
  fields: { type: ({ type }) => type ?? '' },
  columns: [nameColumn, { title: 'TYPE', cell: ({ type }) => type ?? '' }, ...dataColumns],
})

function keysOf({ data = {}, binaryData = {} }: ConfigObject): readonly string[] {
  return [...Object.keys(data), ...Object.keys(binaryData)].sort()
}
