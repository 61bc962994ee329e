import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import type { DecodeResult } from '../../../src/pod/decode/decode-documents.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { ResultJoiner, splitResult } from '../../../src/sources/decode-source.ts'
import type { DecodePart } from '../../../src/sources/decode-source.ts'

const plain: JsonObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }

/** A result of documents that hold this, and of so many problems. */
function resultOf(values: readonly Json[], problems = 0): DecodeResult {
  const place = { path: 'a.yaml' }
  return {
    documents: values.map((extra) => ({
      object: objectFromManifest(plain),
      manifest: { ...plain, extra },
      place,
    })),
    problems: Array.from({ length: problems }, (_, at) => ({ severity: 'error', place, message: `${at}` })),
    heldObjects: ['default/a'],
    holdsAll: false,
  }
}

function join(parts: readonly DecodePart[]): DecodeResult | undefined {
  const joiner = new ResultJoiner()
  // A thread's port copies what is sent over it.
  return parts.map((part) => joiner.add(structuredClone(part))).at(-1)
}

describe('a result in parts', () => {
  const large = fc.constantFrom<Json>(
    Array.from({ length: 2_500 }, (_, at) => ({ name: `E${at}`, value: 'x' })),
    Object.fromEntries(Array.from({ length: 2_500 }, (_, at) => [`k${at}`, at])),
  )
  const small: fc.Arbitrary<Json> = fc
    .jsonValue({ maxDepth: 3 })
    .map((value) => JSON.parse(JSON.stringify(value)))

  it('is the same once it is put together', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof({ weight: 5, arbitrary: small }, { weight: 1, arbitrary: large }), {
          maxLength: 4,
        }),
        fc.nat(5_000),
        (values, problems) => {
          const result = resultOf(values, problems)
          const parts = [...splitResult(result)]
          expect(join(parts)).toEqual(result)
          const pieces = parts.flatMap(({ items }) =>
            items.map((item) => ('tokens' in item ? item.tokens.length : 0)),
          )
          expect(Math.max(0, ...pieces)).toBeLessThanOrEqual(8_000)
        },
      ),
      { numRuns: 8 },
    )
  })

  it('keeps what stands in a document twice one thing, and the key __proto__ a key', () => {
    const twice = Array.from({ length: 100 }, (_, at) => ({ at }))
    const odd: Json = JSON.parse('{"__proto__": {"a": 1}}')
    const result = resultOf([[odd, ...Array.from({ length: 30 }, () => twice)]])
    const parts = [...splitResult(result)]
    const joined = join(parts)?.documents[0]?.manifest['extra']
    expect(joined).toEqual(result.documents[0]?.manifest['extra'])
    const items: readonly unknown[] = Array.isArray(joined) ? joined : []
    expect(Object.keys(Object(items[0]))).toEqual(['__proto__'])
    expect(items[1]).toBe(items[30])
  })
})
