import { describe, expect, it } from 'vitest'
import { computePodActions } from '../../../../src/decide/plan/compute-pod-actions.ts'
import { diffPod } from '../../../../src/decide/sources/diff-pod.ts'
import { noRetries, resizeRetry, withRetry } from '../../../../src/decide/plan/backoff.ts'
import type { PodFacts } from '../../../../src/decide/plan/pod-facts.ts'
import {
  computeHeldBack,
  podAsAllocated,
  podAsApplied,
  selectResizes,
} from '../../../../src/decide/plan/resize.ts'
import { deriveStatus } from '../../../../src/decide/status/derive-status.ts'
import type { ObservedContainer, ObservedPod } from '../../../../src/pod/state/observed.ts'
import { podFromManifest } from '../../../../src/pod/schema/default-pod.ts'
import type { ResourceLists } from '../../../../src/pod/schema/pod-resources.ts'
import type { PodRecord } from '../../../../src/pod/state/pod-record.ts'
import type { Pod } from '../../../../src/pod/schema/pod-schema.ts'
import { containerFacts } from '../../../support/pod-builders.ts'
import type { ContainerAnswers } from '../../../support/pod-builders.ts'

/** `100m/64Mi..200m/128Mi`: requests, then limits; `-` for none. */
function lists(text: string): ResourceLists {
  const [requests = '', limits = ''] = text.split('..')
  const list = (part: string): Record<string, string> => {
    const [cpu = '-', memory = '-'] = part.split('/')
    return { ...(cpu === '-' ? {} : { cpu }), ...(memory === '-' ? {} : { memory }) }
  }
  return { requests: list(requests), limits: list(limits === '' ? '-/-' : limits) }
}

type Policy = Readonly<Partial<Record<'cpu' | 'memory', 'NotRequired' | 'RestartContainer'>>>

function container(name: string, resources: string, more: object = {}, policy: Policy = {}): object {
  const resizePolicy = Object.entries(policy).map(([resourceName, restartPolicy]) => ({
    resourceName,
    restartPolicy,
  }))
  return { name, image: 'app:1', resources: lists(resources), resizePolicy, ...more }
}

function pod(containers: readonly object[], initContainers: readonly object[] = []): Pod {
  const text = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers, initContainers },
  })
  return podFromManifest(JSON.parse(text))
}

function running(name: string, made: string | undefined): ObservedContainer {
  return {
    id: `${name}-id`,
    sandboxId: 's',
    name,
    restartCount: 0,
    state: 'running',
    createdAtMs: 1,
    startedAtMs: 1,
    finishedAtMs: undefined,
    exitCode: undefined,
    reason: '',
    message: '',
    image: 'app:1',
    imageId: 'i',
    specHash: 'same',
    resources: made === undefined ? undefined : lists(made),
    annotations: {},
  }
}

function rows(wanted: Pod, answers: ContainerAnswers = {}): PodFacts['containerFacts'] {
  return containerFacts(wanted, { specHash: () => 'same', imageReady: () => true, ...answers })
}

function facts(
  wanted: Pod,
  containers: readonly ObservedContainer[],
  more: Partial<PodFacts> = {},
): PodFacts {
  const observed: ObservedPod = {
    uid: 'u',
    namespace: 'default',
    name: 'web',
    sandboxes: [
      {
        id: 's',
        attempt: 0,
        ready: true,
        createdAtMs: 0,
        ips: ['10.0.0.2'],
        hostNetwork: false,
        annotations: {},
      },
    ],
    containers,
  }
  return {
    pod: wanted,
    observed,
    history: {},
    probes: {},
    containerFacts: rows(wanted),
    retries: noRetries,
    nowMs: 100_000,
    bootId: 'boot-1',
    limits: { initialMs: 10_000, maxMs: 300_000 },
    ...more,
  }
}

function inShort(given: PodFacts): readonly string[] {
  return computePodActions(given).actions.map((action) => {
    if (action.kind === 'resize-containers')
      return ['resize', ...action.resizes.map(({ spec }) => spec.name)].join(' ')
    if (action.kind === 'stop-container') return `stop ${action.container.name}: ${action.message}`
    return action.kind === 'start-container' ? `start ${action.spec.name}` : action.kind
  })
}

describe('a changed manifest', () => {
  const side = { restartPolicy: 'Always' }
  const one = (resources: string): Pod => pod([container('a', resources)])
  it.each([
    ['cpu and memory up', one('100m/64Mi..200m/128Mi'), one('150m/80Mi..300m/256Mi'), 'in-place'],
    ['a limit down', one('100m/64Mi..200m/128Mi'), one('100m/64Mi..150m/100Mi'), 'in-place'],
    ['a limit where there was none', one('100m/64Mi..-/-'), one('100m/64Mi..200m/-'), 'in-place'],
    ['the same in other words', one('1/1Gi..-/-'), one('1000m/1024Mi..-/-'), 'same'],
    ['a limit taken away', one('100m/64Mi..200m/128Mi'), one('100m/64Mi..200m/-'), 'replace'],
    ['a request taken away', one('100m/64Mi..-/-'), one('-/64Mi..-/-'), 'replace'],
    ['Guaranteed to Burstable', one('100m/64Mi..100m/64Mi'), one('100m/64Mi..200m/64Mi'), 'replace'],
    ['BestEffort to Burstable', one('-/-..-/-'), one('100m/-..-/-'), 'replace'],
    ['Guaranteed, both together', one('100m/64Mi..100m/64Mi'), one('200m/64Mi..200m/64Mi'), 'in-place'],
    [
      'of a sidecar',
      pod([container('a', '1/1Gi')], [container('s', '100m/-', side)]),
      pod([container('a', '1/1Gi')], [container('s', '200m/-', side)]),
      'in-place',
    ],
    [
      'of an init container that runs once',
      pod([container('a', '1/1Gi')], [container('i', '100m/-')]),
      pod([container('a', '1/1Gi')], [container('i', '200m/-')]),
      'in-place',
    ],
    [
      'of an init container that would have to run again for it',
      pod([container('a', '1/1Gi')], [container('i', '100m/-', {}, { cpu: 'RestartContainer' })]),
      pod([container('a', '1/1Gi')], [container('i', '200m/-', {}, { cpu: 'RestartContainer' })]),
      'replace',
    ],
    [
      'of the resize policy',
      pod([container('a', '1/1Gi', {}, { cpu: 'NotRequired' })]),
      pod([container('a', '1/1Gi', {}, { cpu: 'RestartContainer' })]),
      'replace',
    ],
    [
      'of other resources',
      pod([container('a', '1/1Gi')]),
      pod([
        container('a', '1/1Gi', {
          resources: { requests: { cpu: '1', memory: '1Gi', 'ephemeral-storage': '1Gi' } },
        }),
      ]),
      'replace',
    ],
  ])('with %s', (_what, before, after, expected) => {
    expect(diffPod(before, after)).toBe(expected)
  })
})

/** After TestComputePodActionsForPodResize (`pkg/kubelet/kuberuntime/kuberuntime_manager_test.go`, 1.36). */
describe('a pod whose containers have other resources than it asks for', () => {
  const before = '100m/100Mi..100m/100Mi'
  const two = (a: string, b: string, policy: Policy = {}): Pod =>
    pod([container('a', a, {}, policy), container('b', b)])
  it.each<[string, Pod, readonly ObservedContainer[], readonly string[]]>([
    // id: nothing-when-all-is-as-asked
    ['nothing when all is as asked', two(before, before), [running('a', before), running('b', before)], []],
    [
      'nothing for the same in other words',
      pod([container('a', '1/1Gi')]),
      [running('a', '1000m/1024Mi')],
      [],
    ],
    [
      // id: a-resize-for-cpu
      'a resize for cpu',
      two('200m/100Mi..200m/100Mi', before),
      [running('a', before), running('b', before)],
      ['resize a'],
    ],
    [
      // id: a-resize-for-memory
      'a resize for memory',
      two('100m/200Mi..100m/200Mi', before),
      [running('a', before), running('b', before)],
      ['resize a'],
    ],
    [
      // id: resize-cpu-memory
      'a resize for cpu and memory',
      two('200m/200Mi..200m/200Mi', before),
      [running('a', before), running('b', before)],
      ['resize a'],
    ],
    [
      'nothing for cpu that is the same in other words',
      pod([container('a', '1/1Gi..1/1Gi')]),
      [running('a', '1000m/1Gi..1000m/1Gi')],
      [],
    ],
    [
      // id: restart-memory-where-policy
      'a restart for memory where its policy asks for it',
      two('200m/200Mi', '100m/100Mi', { cpu: 'NotRequired', memory: 'RestartContainer' }),
      [running('a', '100m/100Mi'), running('b', '100m/100Mi')],
      ['stop a: Container a resize requires restart', 'start a', 'resize'],
    ],
    [
      // id: no-restart-cpu-policy
      'no restart for cpu when the policy of memory asks for it',
      two('200m/100Mi', '100m/100Mi', { cpu: 'NotRequired', memory: 'RestartContainer' }),
      [running('a', '100m/100Mi'), running('b', '100m/100Mi')],
      ['resize a'],
    ],
    [
      'one for a limit alone',
      pod([container('a', '100m/100Mi..-/200Mi')]),
      [running('a', '100m/100Mi..-/100Mi')],
      ['resize a'],
    ],
    [
      'one for a request alone',
      pod([container('a', '200m/100Mi..-/200Mi')]),
      [running('a', '100m/100Mi..-/200Mi')],
      ['resize a'],
    ],
    [
      'one for both containers',
      two('200m/100Mi', '50m/100Mi'),
      [running('a', '100m/100Mi'), running('b', '100m/100Mi')],
      ['resize a b'],
    ],
    [
      // id: restart-where-policy-asks
      'a restart where the policy asks for it, and the cgroup in the end',
      two('200m/100Mi', '100m/100Mi', { cpu: 'RestartContainer' }),
      [running('a', '100m/100Mi'), running('b', '100m/100Mi')],
      ['stop a: Container a resize requires restart', 'start a', 'resize'],
    ],
    [
      // id: no-restart-resource-policy
      'no restart when the resource with that policy stays',
      two('100m/200Mi', '100m/100Mi', { cpu: 'RestartContainer', memory: 'NotRequired' }),
      [running('a', '100m/100Mi'), running('b', '100m/100Mi')],
      ['resize a'],
    ],
    [
      'the restart first of one and the resize of the other',
      two('200m/100Mi', '200m/100Mi', { cpu: 'RestartContainer' }),
      [running('a', '100m/100Mi'), running('b', '100m/100Mi')],
      ['stop a: Container a resize requires restart', 'resize b', 'start a', 'resize'],
    ],
    [
      'nothing for one whose resources are unknown',
      two(before, before),
      [running('a', undefined), running('b', before)],
      [],
    ],
  ])('gets %s', (_what, wanted, containers, expected) => {
    expect(inShort(facts(wanted, containers))).toEqual(expected)
  })

  it('waits with a restart until what the new container needs is at hand', () => {
    const wanted = pod([container('a', '200m/-', {}, { cpu: 'RestartContainer' })])
    const has = [running('a', '100m/-')]
    expect(
      inShort(facts(wanted, has, { containerFacts: rows(wanted, { imageReady: () => false }) })),
    ).toEqual(['fetch-image'])
    const missingFor = () => 'secret "s" not found'
    const blocked = facts(wanted, has, { containerFacts: rows(wanted, { missingFor }) })
    expect(inShort(blocked)).toEqual([])
    expect(computePodActions(blocked).resize).toEqual({
      kind: 'in-progress',
      error: 'secret "s" not found',
    })
  })

  it('fetches a new image once, though a resize needs the restart too', () => {
    const wanted = pod([container('a', '200m/-', {}, { cpu: 'RestartContainer' })])
    const containerFacts = rows(wanted, { specHash: () => 'v1-new', imageReady: () => false })
    const has = [{ ...running('a', '100m/-'), specHash: 'v1-old' }]
    expect(inShort(facts(wanted, has, { containerFacts }))).toEqual(['fetch-image'])
  })

  it('gets no resize for a container that is stopped, and one for another', () => {
    const livenessProbe = { exec: { command: ['true'] } }
    const wanted = pod([container('a', '200m/-', { livenessProbe }), container('b', '200m/-')])
    const has = [running('a', '100m/-'), running('b', '100m/-')]
    expect(inShort(facts(wanted, has, { probes: { 'a-id': { liveness: 'failure' } } }))).toEqual([
      'stop a: Container a failed liveness probe, will be restarted',
      'resize b',
      'start a',
    ])
  })

  it('starts a sidecar again as one, and a main container as one', () => {
    const policy = { cpu: 'RestartContainer' } as const
    const side = container('s', '200m/-', { restartPolicy: 'Always' }, policy)
    const wanted = pod([container('a', '200m/-', {}, policy)], [side])
    const { actions } = computePodActions(facts(wanted, [running('s', '100m/-'), running('a', '100m/-')]))
    expect(
      actions.flatMap((action) =>
        action.kind === 'start-container' ? [[action.spec.name, action.role]] : [],
      ),
    ).toEqual([
      ['s', 'init'],
      ['a', 'main'],
    ])
  })

  it('is content when the record says that it was resized, and not for another container', () => {
    const wanted = pod([container('a', '200m/-')])
    const resized = (containerId: string): Partial<PodFacts> => ({
      history: { a: { resized: { containerId, resources: lists('200m/-') } } },
    })
    expect(inShort(facts(wanted, [running('a', '100m/-')], resized('a-id')))).toEqual([])
    expect(inShort(facts(wanted, [running('a', '100m/-')], resized('b-id')))).toEqual(['resize a'])
  })

  it('waits while a resize that failed is held, and says so', () => {
    const waiting = { reason: 'Error', message: 'below usage' }
    const retries = withRetry(noRetries, resizeRetry, { untilMs: 110_000, waiting })
    const plan = computePodActions(
      facts(pod([container('a', '200m/-')]), [running('a', '100m/-')], { retries }),
    )
    expect(plan).toMatchObject({
      actions: [],
      wakeAtMs: 110_000,
      resize: { kind: 'in-progress', error: 'below usage' },
    })
  })

  it('says that it waits for room, whatever runs meanwhile', () => {
    const resizeRefusal = { reason: 'Deferred', message: 'no room' } as const
    const pending = { kind: 'pending', reason: 'Deferred', message: 'no room' }
    const asLetIn = facts(pod([container('a', '100m/-')]), [running('a', '100m/-')], { resizeRefusal })
    expect(computePodActions(asLetIn)).toMatchObject({ actions: [], resize: pending })
    const shrinking = facts(pod([container('a', '50m/-')]), [running('a', '100m/-')], { resizeRefusal })
    expect(inShort(shrinking)).toEqual(['resize a'])
    expect(computePodActions(shrinking).resize).toEqual(pending)
  })

  it('resizes an init container while it runs', () => {
    const given = facts(pod([container('a', '1/1Gi')], [container('i', '200m/-')]), [running('i', '100m/-')])
    expect(selectResizes(given).map(({ spec }) => spec.name)).toEqual(['i'])
    expect(inShort(given)).toEqual(['resize i'])
  })

  it('counts with what its containers have', () => {
    const given = facts(two('200m/100Mi', '100m/100Mi'), [
      running('a', '100m/100Mi..-/-'),
      running('b', '100m/100Mi'),
    ])
    expect(selectResizes(given).map(({ spec }) => spec.name)).toEqual(['a'])
    expect(podAsApplied(given).spec.containers.map(({ resources }) => resources.requests)).toEqual([
      { cpu: '100m', memory: '100Mi' },
      { cpu: '100m', memory: '100Mi' },
    ])
    const settled = facts(two('200m/100Mi', '100m/100Mi'), [])
    expect(podAsApplied(settled)).toBe(settled.pod)
  })
})

describe('what is held back until there is room', () => {
  const spec = (cpu: string, other = '100m/-') => pod([container('a', cpu), container('b', other)]).spec
  const requests = (cpu: string) => ({ limits: {}, requests: { cpu } })

  it('is what containers had, of those that change, where one asks for more', () => {
    expect(computeHeldBack(spec('100m/-'), spec('200m/-', '50m/-'))).toEqual({
      a: requests('100m'),
      b: requests('100m'),
    })
    expect(computeHeldBack(spec('100m/-'), spec('200m/-'))).toEqual({ a: requests('100m') })
  })

  it('is nothing where none asks for more than before', () => {
    expect(computeHeldBack(spec('100m/-'), spec('100m/-'))).toBeUndefined()
    expect(computeHeldBack(spec('100m/-'), spec('50m/-'))).toBeUndefined()
  })

  it('stays what it was when the manifest changes again, and ends when it goes back', () => {
    const open = { a: requests('100m') }
    expect(computeHeldBack(spec('200m/-'), spec('300m/-'), open)).toEqual(open)
    expect(computeHeldBack(spec('200m/-'), spec('100m/-'), open)).toBeUndefined()
    expect(computeHeldBack(spec('200m/-'), spec('50m/-'), open)).toBeUndefined()
  })

  it('makes the pod one with what its containers had', () => {
    const asked = pod([container('a', '200m/-'), container('b', '100m/-')])
    const allocated = podAsAllocated(asked, { a: requests('100m') })
    expect(allocated.spec.containers.map(({ resources }) => resources.requests)).toEqual([
      { cpu: '100m' },
      { cpu: '100m' },
    ])
    expect(podAsAllocated(asked, undefined)).toBe(asked)
  })
})

describe('the status of a resize', () => {
  const record: PodRecord = {
    version: 1,
    uid: 'u',
    namespace: 'default',
    name: 'web',
    source: 'file',
    path: 'web.yaml',
    manifest: {},
    acceptedAtMs: 0,
    conditions: {},
    containers: {},
  }
  const given = facts(pod([container('a', '200m/100Mi..300m/-')]), [running('a', '100m/100Mi..200m/-')])
  const statusOf = (resize: Parameters<typeof deriveStatus>[0]['resize']) =>
    deriveStatus({
      pod: given.pod,
      observed: given.observed,
      record,
      probes: given.probes,
      waiting: new Map(),
      blocked: undefined,
      runtimeName: 'containerd',
      hostIps: ['192.0.2.1'],
      nowMs: 0,
      clock: { wallMs: 0, uptimeMs: 0 },
      resize,
    }).status

  it.each([
    [
      { kind: 'pending', reason: 'Infeasible', message: 'too much' } as const,
      { type: 'PodResizePending', status: 'True', reason: 'Infeasible', message: 'too much' },
    ],
    [
      { kind: 'in-progress', error: 'below usage' } as const,
      { type: 'PodResizeInProgress', status: 'True', reason: 'Error', message: 'below usage' },
    ],
    [{ kind: 'in-progress', error: undefined } as const, { type: 'PodResizeInProgress', status: 'True' }],
  ])('tells of %j', (resize, expected) => {
    const found = statusOf(resize).conditions.filter(({ type }) => type.startsWith('PodResize'))
    expect(found).toEqual([{ ...expected, observedGeneration: 1, lastTransitionTime: expect.any(String) }])
  })

  // id: shows-containers-no-condition
  it('shows what the containers have, and no condition without a resize', () => {
    const status = statusOf(undefined)
    expect(status.conditions.filter(({ type }) => type.startsWith('PodResize'))).toEqual([])
    expect(status.containerStatuses?.[0]).toMatchObject({
      allocatedResources: { cpu: '100m', memory: '100Mi' },
      resources: { limits: { cpu: '200m' }, requests: { cpu: '100m', memory: '100Mi' } },
    })
  })
})
