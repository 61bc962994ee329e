import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import { computePodActions } from '../../../../src/decide/plan/compute-pod-actions.ts'
import { derivePodResources } from '../../../../src/decide/status/derive-status.ts'
import { diffPod } from '../../../../src/decide/sources/diff-pod.ts'
import {
  changesPodLevel,
  computeHeldBack,
  podAsAllocated,
  podAsApplied,
  selectResizes,
} from '../../../../src/decide/plan/resize.ts'
import type { Pod } from '../../../../src/pod/schema/pod-schema.ts'
import {
  containerFacts,
  makePod,
  observedContainer,
  observedPod,
  podFacts,
  podRecord,
} from '../../../support/pod-builders.ts'

type Lists = JsonObject

const lists = (limits: JsonObject, requests: JsonObject = {}): Lists => ({ limits, requests })
const has = (limits: Readonly<Record<string, string>>, requests: Readonly<Record<string, string>> = {}) => ({
  limits,
  requests,
})

/** A pod whose containers `own`, with a memory limit of 32Mi, and `free`, with none, are bound by those of the pod. */
function within(resources: Lists | undefined, free: JsonObject = {}): Pod {
  return makePod({
    containers: [
      { name: 'own', resources: { limits: { memory: '32Mi' } } },
      { name: 'free', ...free },
    ],
    spec: resources === undefined ? {} : { resources },
  })
}

const both = (podLimits: Readonly<Record<string, string>> | undefined) =>
  [
    { name: 'own', resources: has({ memory: '32Mi' }, { memory: '32Mi' }) },
    { name: 'free', resources: has({}) },
  ].map(({ name, resources }) => observedContainer(name, { resources, podLimits }))

const small = { cpu: '200m', memory: '64Mi' }
const large = { cpu: '400m', memory: '128Mi' }

describe('a changed manifest', () => {
  it.each([
    ['more for the pod', lists(small), lists(large), 'in-place'],
    ['less for the pod', lists(large), lists(small), 'in-place'],
    ['the same in other words', lists({ cpu: '1' }), lists({ cpu: '1000m' }), 'same'],
    ['a request of the pod', lists(large, { cpu: '100m' }), lists(large, { cpu: '200m' }), 'in-place'],
    ['a limit of the pod taken away', lists(small), lists({ cpu: '200m' }, { memory: '40Mi' }), 'replace'],
    ['all of the pod taken away', lists({}, { memory: '32Mi' }), undefined, 'replace'],
    ['another class', lists(large, { cpu: '100m' }), lists(large, large), 'replace'],
    ['a pod level where there was none', undefined, lists({}, { memory: '40Mi' }), 'in-place'],
    [
      'huge pages of the pod',
      lists({ ...small, 'hugepages-2Mi': '2Mi' }),
      lists({ ...small, 'hugepages-2Mi': '4Mi' }),
      'replace',
    ],
  ])('with %s', (_what, before, after, expected) => {
    expect(diffPod(within(before), within(after))).toBe(expected)
  })
})

describe('a pod whose own resources change', () => {
  const names = (facts: Parameters<typeof selectResizes>[0]): readonly string[] =>
    selectResizes(facts).map(({ spec }) => spec.name)
  const facts = (pod: Pod, podLimits: typeof small | undefined, podResources?: ReturnType<typeof has>) => ({
    pod,
    observed: observedPod({ containers: both(podLimits) }),
    history: {},
    podResources,
  })

  it('has its containers without a limit of their own resized with it', () => {
    const given = facts(within(lists(large)), small, has(small, small))
    // `own` has no cpu limit, `free` has none at all.
    expect(selectResizes(given).map(({ spec, from, to }) => [spec.name, from.limits, to.limits])).toEqual([
      ['own', { cpu: '200m', memory: '32Mi' }, { cpu: '400m', memory: '32Mi' }],
      ['free', small, large],
    ])
    expect(changesPodLevel(given)).toBe(true)
    expect(podAsApplied(given).spec.resources).toEqual({ limits: small, requests: small })
  })

  it('is resized alone where its limits stay', () => {
    const given = facts(
      within(lists(large, { cpu: '300m', memory: '100Mi' })),
      large,
      has(large, { cpu: '200m' }),
    )
    expect(names(given)).toEqual([])
    expect(changesPodLevel(given)).toBe(true)
  })

  it('is content with what it was made with, also by a podd that did not note it', () => {
    expect(names(facts(within(lists(small)), small))).toEqual([])
    expect(names(facts(within(lists(small)), undefined))).toEqual([])
    expect(changesPodLevel(facts(within(lists(small)), small))).toBe(false)
  })

  it('is content once the record says so', () => {
    const resized = has({ ...large, memory: '32Mi' }, { memory: '32Mi' })
    const history = {
      own: { resized: { containerId: 'own-0', resources: resized } },
      free: { resized: { containerId: 'free-0', resources: has(large) } },
    }
    const pod = within(lists(large))
    const { limits, requests } = pod.spec.resources ?? has({})
    expect(names({ ...facts(pod, small, has(limits, requests)), history })).toEqual([])
  })

  it.each<[string, JsonObject, string[]]>([
    ['in place', {}, ['resize pod own free']],
    [
      'by a restart where a container wants one for the limit that binds it',
      { resizePolicy: [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }] },
      ['stop-container', 'resize pod own', 'start-container', 'resize'],
    ],
  ])('is resized %s', (_how, free, expected) => {
    const pod = within(lists(large), free)
    const plan = computePodActions({
      ...podFacts({ containers: both(small), podResources: has(small, small) }),
      containerFacts: containerFacts(pod, { imageReady: () => true }),
      pod,
    })
    const short = plan.actions.map((action) =>
      action.kind === 'resize-containers'
        ? [
            'resize',
            ...(action.podLevel ? ['pod'] : []),
            ...action.resizes.map(({ spec }) => spec.name),
          ].join(' ')
        : action.kind,
    )
    expect(short).toEqual(expected)
    expect(plan.resize).toEqual({ kind: 'in-progress', error: undefined })
  })
})

describe('what is held back until there is room', () => {
  it('is what the pod had where it asks for more itself', () => {
    const held = computeHeldBack(within(lists(small)).spec, within(lists(large)).spec)
    expect(held).toEqual({ '/pod': has(small, { ...small, memory: '32Mi' }) })
    expect(podAsAllocated(within(lists(large)), held).spec.resources).toEqual(held?.['/pod'])
  })

  it('leaves a pod without resources of its own without any', () => {
    const after = within(lists({}, { memory: '40Mi' }))
    const held = computeHeldBack(within(undefined).spec, after.spec)
    expect(held).toEqual({ '/pod': has({}) })
    expect(podAsAllocated(after, held).spec.resources).toBeUndefined()
  })

  it('is nothing where the pod asks for less', () => {
    expect(computeHeldBack(within(lists(large)).spec, within(lists(small)).spec)).toBeUndefined()
  })
})

describe('the resources in the status of a pod', () => {
  const derive = (
    pod: Pod,
    changes: Parameters<typeof podRecord>[0] = {},
    phase: 'Running' | 'Pending' = 'Running',
  ) =>
    derivePodResources({
      pod,
      record: podRecord(changes),
      observed: observedPod({ containers: both(pod.spec.resources && small) }),
      phase,
    })

  it('are those of the pod level', () => {
    const requests = { cpu: '100m', memory: '48Mi' }
    expect(derive(within(lists(large, requests)))).toEqual({
      allocatedResources: requests,
      resources: { limits: large, requests },
    })
  })

  it('are what it had until it was given more', () => {
    const podResources = has(small, { cpu: '100m', memory: '32Mi' })
    expect(derive(within(lists(large, { cpu: '300m', memory: '64Mi' })), { podResources })).toEqual({
      allocatedResources: { cpu: '300m', memory: '64Mi' },
      resources: podResources,
    })
    const allocated = { '/pod': podResources }
    expect(derive(within(lists(large, { cpu: '300m', memory: '64Mi' })), { allocated })).toEqual({
      allocatedResources: podResources.requests,
      resources: podResources,
    })
  })

  it('are the sum of the containers without one, and no limit that no cgroup has', () => {
    const pod = within(undefined)
    expect(derive(pod)).toEqual({
      allocatedResources: { memory: '32Mi' },
      resources: { requests: { memory: '32Mi' } },
    })
    expect(derive(pod, {}, 'Pending').resources).toEqual({
      limits: { memory: '32Mi' },
      requests: { memory: '32Mi' },
    })
  })

  it('are limits too while it runs, where each of its containers has one', () => {
    const pod = makePod({ containers: [{ name: 'alone', resources: { limits: small } }] })
    const { resources } = derive(pod)
    expect(resources).toEqual({ limits: small, requests: small })
  })

  it('are none of a pod that asks for nothing', () => {
    expect(derive(makePod())).toEqual({})
  })
})
