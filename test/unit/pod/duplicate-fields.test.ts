import { expect, it } from 'vitest'
import { findDuplicateFields } from '../../../src/pod/decode/read-documents.ts'

it.each<[string, readonly string[]]>([
  ['{}', []],
  ['{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}', []],
  ['{"data":{"a":"b","a":"c","a":"d"}}', ['data.a']],
  ['{"spec":{"containers":[{"name":"a"},{"image":"i","image":"j"}]}}', ['spec.containers[1].image']],
  ['{"a":"\\"a\\":{[,","b":"}","a":1}', ['a']],
  ['{"a":[1,[2,3],{"x":{},"x":[]}],"\\u0061":true}', ['a[2].x', 'a']],
  ['[["a","a"],"a"]', []],
])('finds in %s the fields %j', (text, fields) => {
  expect(JSON.parse(text)).toBeDefined()
  expect(findDuplicateFields(text)).toEqual(fields)
})

it('reads a large text once', () => {
  const text = JSON.stringify(Object.fromEntries(Array.from({ length: 200_000 }, (_, n) => [`k${n}`, '{"'])))
  expect(findDuplicateFields(text)).toEqual([])
})
