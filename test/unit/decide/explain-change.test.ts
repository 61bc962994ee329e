import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { explainChange } from '../../../src/decide/sources/diff-pod.ts'
import { makePod } from '../../support/pod-builders.ts'
import type { PodChanges } from '../../support/pod-builders.ts'

const requests = (cpu: string): JsonObject => ({ requests: { cpu }, limits: { cpu: '2' } })

function change(before: PodChanges, after: PodChanges, isPastChange = false) {
  return explainChange({ pod: makePod(before), isPastChange }, makePod(after))
}

describe('explainChange', () => {
  it('tells starts, ends and what stays', () => {
    const pod = makePod()
    expect(explainChange(undefined, pod)).toEqual({ verdict: 'create', details: [] })
    expect(explainChange({ pod, isPastChange: false }, undefined)).toEqual({ verdict: 'end', details: [] })
    expect(explainChange({ pod, isPastChange: true }, pod)).toEqual({ verdict: 'unchanged', details: [] })
    expect(explainChange(undefined, undefined)).toEqual({ verdict: 'unchanged', details: [] })
  })

  it('names the containers that restart or are resized, and what else changes in place', () => {
    const main = (image: string, cpu: string): PodChanges => ({
      containers: [{ name: 'main', image, resources: requests(cpu) }, { name: 'side' }],
    })
    const labelled = { ...main('web:2', '200m'), metadata: { labels: { tier: 'front' } } }
    const { verdict, details } = change(main('web:1', '100m'), {
      ...labelled,
      spec: { activeDeadlineSeconds: 60 },
    })
    expect(verdict).toBe('update')
    expect(details).toEqual([
      'container main restarts: image web:1 -> web:2',
      'container main is resized: requests.cpu 100m -> 200m',
      'metadata.labels changes',
      'spec.activeDeadlineSeconds changes',
    ])
  })

  it('says where a resize restarts its container', () => {
    const sized = (cpu: string): PodChanges => ({
      containers: [
        {
          name: 'main',
          resources: requests(cpu),
          resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
        },
      ],
    })
    expect(change(sized('100m'), sized('200m')).details).toEqual([
      'container main restarts, resized: requests.cpu 100m -> 200m',
    ])
  })

  it('names the fields that need a new pod, and not those that do not', () => {
    const before: PodChanges = {
      containers: [{ name: 'main', image: 'web:1', env: [{ name: 'A', value: '1' }] }],
    }
    const after: PodChanges = {
      containers: [{ name: 'main', image: 'web:2', env: [{ name: 'A', value: '2' }] }],
      spec: { hostNetwork: true },
    }
    const { verdict, details } = change(before, after)
    expect(verdict).toBe('replace')
    expect(details).toContain('spec.containers[0].env[0].value')
    expect(details).toContain('spec.hostNetwork')
    expect(details).not.toContain('spec.containers[0].image')
  })

  it('names resources where changing them so changes the QoS class', () => {
    const sized = (resources: JsonObject): PodChanges => ({ containers: [{ name: 'main', resources }] })
    const { verdict, details } = change(
      sized({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } }),
      sized({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } }),
    )
    expect({ verdict, details }).toEqual({
      verdict: 'replace',
      details: ['spec.containers[0].resources.limits.cpu'],
    })
  })

  it('replaces a pod that has finished for any change of its spec', () => {
    expect(change({ containers: ['a'] }, { containers: [{ name: 'a', image: 'web:2' }] }, true)).toEqual({
      verdict: 'replace',
      details: ['spec.containers[0].image'],
    })
  })

  it('names a few fields of many', () => {
    const env = (value: string): PodChanges => ({
      containers: [{ name: 'main', env: Array.from({ length: 12 }, (_, at) => ({ name: `V${at}`, value })) }],
    })
    const { details } = change(env('1'), env('2'))
    expect(details).toHaveLength(9)
    expect(details.at(-1)).toBe('4 more fields')
  })
})
