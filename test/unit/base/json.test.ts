import fc from 'fast-check'
import { expect, it } from 'vitest'
import { canonicalJson, sameData } from '../../../src/base/json.ts'

it('data is the same exactly where its canonical JSON is', () => {
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(undefined, null, 0, 1, '', 'a', true, Number.NaN),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('any'), { maxKeys: 3 }),
    ),
  })).any
  fc.assert(
    fc.property(value, value, (a, b) => {
      expect(sameData(a, b)).toBe(canonicalJson(a) === canonicalJson(b))
      expect(sameData(a, structuredClone(a))).toBe(true)
    }),
    { numRuns: 1000 },
  )
})
