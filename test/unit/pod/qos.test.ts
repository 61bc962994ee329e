import { describe, expect, it } from 'vitest'
import type { Json } from '../../../src/base/json.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { computeQosClass } from '../../../src/pod/schema/pod-resources.ts'
import { withFields } from './sample-pod.ts'

const both = { cpu: '1', memory: '1Gi' }

describe('computeQosClass', () => {
  it.each<[string, Json[], Json[], string]>([
    ['nothing', [{}], [], 'BestEffort'],
    ['zeros', [{ requests: { cpu: 0 } }], [], 'BestEffort'],
    ['limits of both, which are requested too', [{ limits: both }], [], 'Guaranteed'],
    [
      'the same in another notation',
      [{ limits: both, requests: { cpu: '1000m', memory: '1024Mi' } }],
      [],
      'Guaranteed',
    ],
    ['a request below its limit', [{ limits: both, requests: { cpu: '500m' } }], [], 'Burstable'],
    ['one resource only', [{ limits: { cpu: 1 } }], [], 'Burstable'],
    ['requests alone', [{ requests: both }], [], 'Burstable'],
    ['one container of two', [{ limits: both }, {}], [], 'Burstable'],
    ['an init container without', [{ limits: both }], [{}], 'Burstable'],
    ['all with', [{ limits: both }, { limits: both }], [{ limits: both }], 'Guaranteed'],
  ])('%s', (_what, containers, initContainers, expected) => {
    const toContainer =
      (prefix: string) =>
      (resources: Json, index: number): Json => ({
        name: `${prefix}${index}`,
        image: 'i',
        resources,
      })
    const manifest = withFields({
      'spec.containers': containers.map(toContainer('c')),
      'spec.initContainers': initContainers.map(toContainer('i')),
    })
    expect(computeQosClass(podFromManifest(manifest).spec)).toBe(expected)
  })

  it('goes by the resources of the pod where there are any', () => {
    const { spec } = podFromManifest(withFields({}))
    expect(computeQosClass({ ...spec, resources: { limits: both, requests: both } })).toBe('Guaranteed')
    expect(computeQosClass({ ...spec, resources: { limits: {}, requests: { cpu: '1' } } })).toBe('Burstable')
  })
})
