import { expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import { trackUpdate } from '../../../../src/decide/writing/apply-manifest.ts'

const entry = (manager: string, operation: string, fieldsV1: JsonObject): JsonObject => ({
  manager,
  operation,
  apiVersion: 'v1',
  time: 'before',
  fieldsType: 'FieldsV1',
  fieldsV1,
})
const map = (data: JsonObject, managedFields?: readonly JsonObject[]): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', ...(managedFields && { managedFields }) },
  data,
})
const data = (...keys: readonly string[]): JsonObject => ({
  'f:data': Object.fromEntries(keys.map((key) => [`f:${key}`, {}])),
})
const applied = entry('ann', 'Apply', data('a', 'b'))

it.each<[string, JsonObject, JsonObject, readonly JsonObject[] | undefined]>([
  ['nobody applied', map({ a: '1' }), map({ a: '2' }), undefined],
  ['nothing changed', map({ a: '1', b: '1' }, [applied]), map({ a: '1', b: '1' }), [applied]],
  [
    'a field changed',
    map({ a: '1', b: '1' }, [applied]),
    map({ a: '2', b: '1' }),
    [
      { ...applied, fieldsV1: data('b') },
      { ...entry('bob', 'Update', data('a')), time: 'now' },
    ],
  ],
  [
    'a field is gone, and one is new',
    map({ a: '1', b: '1' }, [applied]),
    map({ a: '1', c: '1' }),
    [
      { ...applied, fieldsV1: data('a') },
      { ...entry('bob', 'Update', data('c')), time: 'now' },
    ],
  ],
  [
    'the same manager changed something before',
    map({ a: '1', c: '1' }, [applied, entry('bob', 'Update', data('c'))]),
    map({ a: '1', c: '1', d: '1' }),
    [
      { ...applied, fieldsV1: data('a') },
      { ...entry('bob', 'Update', data('c', 'd')), time: 'now' },
    ],
  ],
  ['the managers are reset', map({ a: '1' }, [applied]), map({ a: '1' }, []), undefined],
])('says who owns what where %s', (_, before, after, managers) => {
  const { metadata } = trackUpdate(before, after, { manager: 'bob', time: 'now' })
  expect(metadata).toEqual({ name: 'a', ...(managers && { managedFields: managers }) })
})
