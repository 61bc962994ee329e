import { formatAgeOf } from '../kinds/age.ts'
import type { ResourceObject } from '../resource.ts'
import type { ColumnEntry } from './api-table.ts'

export function nameColumn(): ColumnEntry<ResourceObject> {
  return {
    name: 'Name',
    description: "The object's name, unique among those of its kind in its namespace.",
    cell: ({ metadata }) => metadata.name,
  }
}

export function ageColumn(): ColumnEntry<ResourceObject> {
  return {
    name: 'Age',
    description: 'The time since the object was created.',
    cell: ({ metadata }, nowMs) => formatAgeOf(metadata.creationTimestamp, nowMs),
  }
}
