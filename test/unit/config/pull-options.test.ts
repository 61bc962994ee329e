import { describe, expect, it } from 'vitest'
import { defaultConfig } from '../../../src/config/options.ts'
import { parallelPulls, pullOptionProblems } from '../../../src/config/image-options.ts'

describe('serializeImagePulls and maxParallelImagePulls', () => {
  it('have no value by default: one image is pulled at a time', () => {
    expect(parallelPulls(defaultConfig())).toBe(1)
    expect(pullOptionProblems(defaultConfig())).toEqual([])
  })

  // pkg/kubelet/apis/config/v1beta1/defaults.go and validation/validation_test.go, 1.36
  it.each([
    [undefined, undefined, 1],
    [undefined, 1, 1],
    [undefined, 5, 5],
    [true, undefined, 1],
    [true, 1, 1],
    [false, undefined, undefined],
    [false, 1, 1],
    [false, 3, 3],
  ])('%s and %s: %s at a time', (serializeImagePulls, maxParallelImagePulls, expected) => {
    const settings = { serializeImagePulls, maxParallelImagePulls }
    expect(pullOptionProblems(settings)).toEqual([])
    expect(parallelPulls(settings)).toBe(expected)
  })

  it('true and 3: refused', () => {
    expect(pullOptionProblems({ serializeImagePulls: true, maxParallelImagePulls: 3 })).toEqual([
      {
        field: 'maxParallelImagePulls',
        message: 'cannot be more than 1 unless serializeImagePulls is false',
      },
    ])
  })
})
