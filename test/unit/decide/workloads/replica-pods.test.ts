import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import {
  expandReplicas,
  isReplicaDocument,
  maxUnavailable,
  ordinalsOf,
  WorkloadTargets,
} from '../../../../src/decide/workloads/replica-pods.ts'
import type { ReplicaDocument, WorkloadPod } from '../../../../src/decide/workloads/replica-pods.ts'
import { objectFromManifest } from '../../../../src/pod/objects/local-object.ts'

const nowMs = 1_000_000
const proofMs = 5000
const labels = { app: 'web' }

function workload(kind: string, spec: JsonObject = {}, image = 'web:2'): ReplicaDocument {
  const manifest = {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      selector: { matchLabels: labels },
      ...(kind === 'DaemonSet' ? {} : { replicas: 3 }),
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image }] } },
      ...spec,
    },
  }
  const document = { object: objectFromManifest(manifest), manifest, place: { path: 'web.yaml' } }
  if (!isReplicaDocument(document)) throw new Error('no workload')
  return document
}

type State = 'new' | 'old' | 'down' | 'fresh' | 'unknown' | 'leaving' | 'none'

/** Its pods: of the newest template and ready for long or since now, or of the one before in this state. */
function podsOf(kind: string, spec: JsonObject, states: readonly State[]): readonly WorkloadPod[] {
  const targets = new WorkloadTargets()
  const newest = targets.podsOf(workload(kind, { ...spec, replicas: states.length }))
  const before = targets.podsOf(workload(kind, { ...spec, replicas: states.length }, 'web:1'))
  return states.flatMap((state, at): readonly WorkloadPod[] => {
    const isNew = state === 'new' || state === 'fresh'
    const manifest = (isNew ? newest : before)[at]?.manifest ?? {}
    const name = newest[at]?.pod.metadata.name ?? ''
    if (state === 'none') return []
    if (state === 'fresh') return [{ name, manifest, state: 'ready', readySinceMs: nowMs - 1000 }]
    if (isNew || state === 'old') return [{ name, manifest, state: 'ready', readySinceMs: 0 }]
    return [{ name, manifest, state: state === 'down' ? 'unready' : state }]
  })
}

/** `0:2`: the pod of ordinal 0 is to run web:2. */
function expand(kind: string, spec: JsonObject, states: readonly State[], replicas = states.length) {
  const document = workload(kind, { ...spec, replicas })
  const targets = new WorkloadTargets().podsOf(document)
  // Whatever their order.
  const known = podsOf(kind, spec, states).toReversed()
  const { pods, wakeAtMs } = expandReplicas(document, targets, known, { nowMs, proofMs })
  const shown = pods.map(
    ({ pod }) =>
      `${pod.metadata.name.replace('web-', '')}:${pod.spec.containers[0]?.image.replace('web:', '') ?? ''}`,
  )
  return { shown: shown.join(' '), wakeAtMs }
}

describe('the pods that a workload is to have now', () => {
  it.each<[string, string, JsonObject, readonly State[], string]>([
    ['all of a new Deployment', 'Deployment', {}, ['none', 'none'], '0:2 1:2'],
    ['one new pod at a time', 'Deployment', {}, ['old', 'old', 'old'], '0:2 1:1 2:1'],
    ['none more while a new one proves itself', 'Deployment', {}, ['fresh', 'old', 'old'], '0:2 1:1 2:1'],
    ['the next one once it has', 'Deployment', {}, ['new', 'old', 'old'], '0:2 1:2 2:1'],
    ['what does not work first', 'Deployment', {}, ['old', 'down', 'old'], '0:1 1:2 2:1'],
    ['a new one for what ends', 'Deployment', {}, ['old', 'leaving', 'old'], '0:1 1:2 2:1'],
    ['no other for what is not known yet', 'Deployment', {}, ['unknown', 'new'], '0:1 1:2'],
    [
      'as many at a time as may be missing',
      'Deployment',
      { strategy: { rollingUpdate: { maxUnavailable: 2 } } },
      ['old', 'old', 'old'],
      '0:2 1:2 2:1',
    ],
    [
      'a new one in place of what runs for sure rather than of what may',
      'Deployment',
      { strategy: { rollingUpdate: { maxUnavailable: 2 } } },
      ['unknown', 'new', 'old'],
      '0:1 1:2 2:2',
    ],
    [
      'none beside old ones of a Deployment that recreates its pods',
      'Deployment',
      { strategy: { type: 'Recreate' } },
      ['new', 'old', 'none'],
      '0:2',
    ],
    [
      'all of it once none is old',
      'Deployment',
      { strategy: { type: 'Recreate' } },
      ['new', 'none', 'none'],
      '0:2 1:2 2:2',
    ],
    [
      'the old ones of one that is paused',
      'Deployment',
      { paused: true },
      ['old', 'down', 'none'],
      '0:1 1:1 2:1',
    ],
    ['new ones of one that is paused and has no old one', 'Deployment', { paused: true }, ['none'], '0:2'],
    ['the first of a StatefulSet, until it is ready', 'StatefulSet', {}, ['none', 'none'], '0:2'],
    ['the second once the first is ready', 'StatefulSet', {}, ['new', 'none'], '0:2 1:2'],
    [
      'all at once where they are not ordered',
      'StatefulSet',
      { podManagementPolicy: 'Parallel' },
      ['none', 'none'],
      '0:2 1:2',
    ],
    ['the highest of a StatefulSet first', 'StatefulSet', {}, ['old', 'old', 'old'], '0:1 1:1 2:2'],
    [
      'old where only somebody who deletes them has them replaced, also those that fail',
      'StatefulSet',
      { updateStrategy: { type: 'OnDelete' } },
      ['old', 'leaving', 'down'],
      '0:1 1:2 2:1',
    ],
    [
      'old in a DaemonSet of that kind',
      'DaemonSet',
      { updateStrategy: { type: 'OnDelete' } },
      ['old'],
      '0:1',
    ],
  ])('are %s', (_what, kind, spec, states, expected) => {
    expect(expand(kind, spec, states).shown).toBe(expected)
  })

  it('are those beyond the replicas too that wait to end, the highest first', () => {
    const by = (...states: readonly State[]) => expand('StatefulSet', {}, states, 1).shown
    expect(by('new', 'new', 'new')).toBe('0:2 1:2')
    expect(by('new', 'new', 'leaving')).toBe('0:2 1:2')
    expect(by('new', 'new')).toBe('0:2')
    expect(expand('Deployment', {}, ['new', 'new', 'new'], 1).shown).toBe('0:2')
  })

  it('may change by time alone when a ready one has proven itself', () => {
    expect(expand('Deployment', {}, ['fresh', 'old']).wakeAtMs).toBe(nowMs - 1000 + proofMs)
    expect(expand('Deployment', { minReadySeconds: 3 }, ['fresh', 'old']).wakeAtMs).toBe(nowMs + 2000)
    expect(expand('Deployment', {}, ['new', 'down']).wakeAtMs).toBeUndefined()
    const document = workload('Deployment', { replicas: 2 })
    const targets = new WorkloadTargets().podsOf(document)
    const wakeAtMs = (...sinceMs: readonly number[]) => {
      const pods = targets.flatMap(({ manifest, pod }, at): readonly WorkloadPod[] => [
        { name: pod.metadata.name, manifest, state: 'ready', readySinceMs: sinceMs[at] },
      ])
      return expandReplicas(document, targets, pods, { nowMs, proofMs }).wakeAtMs
    }
    expect(wakeAtMs(nowMs - 1000, nowMs - 2000)).toBe(nowMs - 2000 + proofMs)
    expect(wakeAtMs(nowMs - proofMs, nowMs - proofMs)).toBeUndefined()
  })

  it('are available once they are ready for as long as their workload says', () => {
    const of = (minReadySeconds: number) =>
      expand('StatefulSet', { minReadySeconds }, ['fresh', 'none']).shown
    expect([of(0), of(1), of(2)]).toEqual(['0:2 1:2', '0:2 1:2', '0:2'])
  })
})

describe('how many pods may be missing', () => {
  it.each<[string, JsonObject, number]>([
    ['DaemonSet', {}, 1],
    ['Deployment', { replicas: 3 }, 1],
    ['Deployment', { replicas: 8 }, 2],
    ['Deployment', { replicas: 8, strategy: { rollingUpdate: { maxUnavailable: '50%' } } }, 4],
    ['Deployment', { replicas: 8, strategy: { rollingUpdate: { maxUnavailable: 3 } } }, 3],
    ['Deployment', { replicas: 8, strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } }, 1],
    ['StatefulSet', { replicas: 8 }, 1],
    ['StatefulSet', { replicas: 8, updateStrategy: { rollingUpdate: { maxUnavailable: 2 } } }, 2],
  ])('of a %s with %j is %i', (kind, spec, count) => {
    expect(maxUnavailable(workload(kind, spec).object)).toBe(count)
  })
})

describe('what is made from a workload', () => {
  it.each<[string, JsonObject, readonly number[]]>([
    ['DaemonSet', {}, [0]],
    ['Deployment', { replicas: 2 }, [0, 1]],
    ['StatefulSet', { replicas: 2 }, [0, 1]],
    ['StatefulSet', { replicas: 2, ordinals: { start: 5 } }, [5, 6]],
  ])('of a %s with %j has the ordinals %j', (kind, spec, ordinals) => {
    expect(ordinalsOf(workload(kind, spec).object)).toEqual(ordinals)
  })

  it('has the identity and the claims of a member of a StatefulSet', () => {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    const document = workload('StatefulSet', {
      replicas: 1,
      serviceName: 'db',
      volumeClaimTemplates: [
        { metadata: { name: 'data' }, spec },
        { metadata: { name: 'logs' }, spec },
      ],
      template: {
        metadata: { labels },
        spec: {
          containers: [{ name: 'main', image: 'web:1' }],
          volumes: [
            { name: 'data', emptyDir: {} },
            { name: 'tmp', emptyDir: {} },
            { name: 'run', emptyDir: {} },
          ],
        },
      },
    })
    const targets = new WorkloadTargets()
    const [pod] = targets.podsOf(document)
    expect(targets.podsOf(document)[0]).toBe(pod)
    expect(pod?.manifest).toMatchObject({
      metadata: {
        name: 'web-0',
        labels: {
          app: 'web',
          'statefulset.kubernetes.io/pod-name': 'web-0',
          'apps.kubernetes.io/pod-index': '0',
        },
      },
      spec: {
        hostname: 'web-0',
        subdomain: 'db',
        volumes: [
          { name: 'data', persistentVolumeClaim: { claimName: 'data-web-0' } },
          { name: 'logs', persistentVolumeClaim: { claimName: 'logs-web-0' } },
          { name: 'tmp', emptyDir: {} },
          { name: 'run', emptyDir: {} },
        ],
      },
    })
    const [claim, ...more] = targets.claimsOf(document)
    expect(claim?.object).toMatchObject({ kind: 'PersistentVolumeClaim', metadata: { name: 'data-web-0' } })
    expect(more).toMatchObject([{ object: { metadata: { name: 'logs-web-0' } } }])
    expect(targets.claimsOf(document)[0]).toBe(claim)
    expect(targets.claimsOf(workload('Deployment'))).toEqual([])
    const [plain] = targets.podsOf(workload('StatefulSet', { replicas: 1 }))
    expect(plain?.manifest['spec']).not.toHaveProperty('subdomain')
    expect(plain?.manifest['spec']).not.toHaveProperty('volumes')
  })

  it.each<[string, JsonObject, object | undefined]>([
    ['StatefulSet', {}, undefined],
    ['StatefulSet', { minReadySeconds: 3 }, { minReadyMs: 3000 }],
    ['Deployment', { progressDeadlineSeconds: 60 }, { deadlineMs: 60_000 }],
    [
      'Deployment',
      { progressDeadlineSeconds: 60, minReadySeconds: 3 },
      { deadlineMs: 60_000, minReadyMs: 3000 },
    ],
  ])('of a %s with %j says how it is judged', (kind, spec, progress) => {
    const [pod] = new WorkloadTargets().podsOf(workload(kind, spec))
    expect(pod?.progress).toEqual(progress)
    expect(pod?.owner).toEqual({ kind, name: 'web' })
  })
})
