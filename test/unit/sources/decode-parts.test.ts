import { expect, it } from 'vitest'
import type { DecodeResult } from '../../../src/pod/decode/decode-documents.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { ResultJoiner, splitResult } from '../../../src/sources/decode-source.ts'

const place = { path: 'a.yaml' }

function resultOf(documents: number, problems: number): DecodeResult {
  const manifestOf = (at: number) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `a${at}` } })
  return {
    documents: Array.from({ length: documents }, (_, at) => manifestOf(at)).map((manifest) => ({
      object: objectFromManifest(manifest),
      manifest,
      place,
    })),
    problems: Array.from({ length: problems }, (_, at) => ({ severity: 'error', place, message: `${at}` })),
    heldObjects: ['default/a'],
    holdsAll: false,
  }
}

it.each([
  [0, 0, 1],
  [1, 1, 1],
  [40, 2000, 1],
  [41, 0, 2],
  [3, 4001, 3],
  [1000, 10, 25],
])('a result of %i documents and %i problems is the same once its %i parts are put together', (...counts) => {
  const [documents, problems, expected] = counts
  const result = resultOf(documents, problems)
  const parts = [...splitResult(result)]
  expect(parts).toHaveLength(expected)
  const joiner = new ResultJoiner()
  // A thread's port copies what is sent over it.
  const given = parts.map((part) => joiner.add(structuredClone(part)))
  expect(given.slice(0, -1).every((each) => each === undefined)).toBe(true)
  expect(given.at(-1)).toEqual(result)
})
