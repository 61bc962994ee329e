import { describe, expect, it } from 'vitest'
import { mergeTolerations } from '../../../../src/decide/writing/prepare-object.ts'

describe('mergeTolerations', () => {
  const exists = { key: 'a', operator: 'Exists' }
  const equal = { key: 'a', operator: 'Equal', value: 'x', effect: 'NoSchedule' }
  it.each([
    ['none', undefined, [], []],
    ['different ones', [exists], [{ key: 'b' }], [exists, { key: 'b' }]],
    ['the same twice', [exists], [exists], [exists]],
    ['one that the other covers', [equal], [exists], [exists]],
    ['one that covers the other', [exists], [equal], [exists]],
    ['one that covers all', [equal], [{ operator: 'Exists' }], [{ operator: 'Exists' }]],
    [
      'another effect',
      [{ ...exists, effect: 'NoExecute' }],
      [equal],
      [{ ...exists, effect: 'NoExecute' }, equal],
    ],
    [
      'a longer time',
      [{ ...exists, effect: 'NoExecute', tolerationSeconds: 5 }],
      [{ ...exists, effect: 'NoExecute', tolerationSeconds: 9 }],
      [{ ...exists, effect: 'NoExecute', tolerationSeconds: 9 }],
    ],
  ])('takes %s', (_case, first, second, merged) => {
    expect(mergeTolerations(first, second)).toEqual(merged)
  })
})
