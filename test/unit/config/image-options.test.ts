import { describe, expect, it } from 'vitest'
import {
  imageOptionProblems,
  parallelPulls,
  pullOptionProblems,
  registryOptionProblems,
} from '../../../src/config/image-options.ts'
import { completeConfig } from '../../../src/config/options.ts'
import { readConfigFile } from '../../../src/config/read-config-file.ts'

const read = (fields: object, kind = 'KubeletConfiguration') =>
  readConfigFile(
    JSON.stringify({
      apiVersion: kind === 'KubeletConfiguration' ? 'kubelet.config.k8s.io/v1beta1' : 'podd.dev/v1',
      kind,
      ...fields,
    }),
    'config.yaml',
  )

describe('the options of image garbage collection', () => {
  it("are the kubelet's, with its defaults", async () => {
    expect(completeConfig({})).toMatchObject({
      imageGcHighThresholdPercent: 85,
      imageGcLowThresholdPercent: 80,
      imageMinimumGcAgeMs: 120_000,
      imageMaximumGcAgeMs: 0,
    })
    const { values, problems } = await read({
      imageGCHighThresholdPercent: 70,
      imageGCLowThresholdPercent: 0,
      imageMinimumGCAge: '0s',
      imageMaximumGCAge: '168h',
    })
    expect(problems).toEqual([])
    expect(values).toEqual({
      imageGcHighThresholdPercent: 70,
      imageGcLowThresholdPercent: 0,
      imageMaximumGcAgeMs: 604_800_000,
    })
    expect((await read({ imageMinimumGCAge: '0s' }, 'PoddConfiguration')).values).toEqual({
      imageMinimumGcAgeMs: 0,
    })
  })

  it.each([
    ['imageGCHighThresholdPercent', 101, 'must be from 0 to 100'],
    ['imageGCLowThresholdPercent', -1, 'must be from 0 to 100'],
    ['imageMinimumGCAge', '-1s', 'must be at least 0s'],
    ['imageMaximumGCAge', '-1h', 'must be at least 0s'],
  ])('refuse %s: %j', async (field, value, message) => {
    expect((await read({ [field]: value })).problems).toEqual([
      expect.objectContaining({ severity: 'error', field, message }),
    ])
  })

  it.each([
    [{}, []],
    [{ imageGcLowThresholdPercent: 85 }, ['imageGCLowThresholdPercent']],
    [{ imageGcHighThresholdPercent: 40 }, ['imageGCLowThresholdPercent']],
    [{ imageMaximumGcAgeMs: 120_000 }, ['imageMaximumGCAge']],
    [{ imageMaximumGcAgeMs: 120_001 }, []],
    [{ imageMinimumGcAgeMs: 999_999 }, []],
  ])('have to fit together: %j', (changes, fields) => {
    const problems = imageOptionProblems({ ...completeConfig({}), ...changes })
    expect(problems.map(({ field }) => field)).toEqual(fields)
  })
})

describe('serializeImagePulls and maxParallelImagePulls', () => {
  it('have no value by default: one image is pulled at a time', () => {
    expect(parallelPulls(completeConfig({}))).toBe(1)
    expect(pullOptionProblems(completeConfig({}))).toEqual([])
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

describe('verifiers of images', () => {
  const settings = {
    imageCredentialProviderConfig: undefined,
    imageCredentialProviderBinDir: undefined,
    imagePullCredentialsVerificationPolicy: 'NeverVerify',
    preloadedImagesVerificationAllowlist: [],
    imageVerifiers: '/etc/podd/verifiers',
  }

  it('are for the embedded containerd only: another one would not ask them', () => {
    expect(registryOptionProblems({ ...settings, containerRuntimeEndpoint: 'embedded' })).toEqual([])
    const containerRuntimeEndpoint = 'unix:///run/containerd/containerd.sock'
    expect(registryOptionProblems({ ...settings, containerRuntimeEndpoint })).toEqual([
      { field: 'imageVerifiers', message: expect.stringContaining('is for the embedded containerd only') },
    ])
  })
})
