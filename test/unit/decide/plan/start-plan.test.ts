import { describe, expect, it } from 'vitest'
import { previousImageRetry, restartKey } from '../../../../src/decide/plan/backoff.ts'
import type { Retry } from '../../../../src/decide/plan/backoff.ts'
import { planStart, selectAwaitedImages, selectRecreations } from '../../../../src/decide/plan/start-order.ts'
import type { PodRecord } from '../../../../src/pod/state/pod-record.ts'
import { containerSpecHash } from '../../../../src/pod/values/hash.ts'
import {
  ended,
  exitedContainer,
  nowMs,
  observedContainer,
  podFacts,
  sidecar,
} from '../../../support/pod-builders.ts'
import type { FactsChanges, PodChanges } from '../../../support/pod-builders.ts'

const key = 'busybox:1 {"limits":{},"requests":{}}'

function plan(changes: FactsChanges) {
  const facts = podFacts({ pod: { containers: ['a'] }, containers: [], ...changes })
  const [spec] = facts.pod.spec.containers
  if (spec === undefined) throw new Error('no container')
  expect(restartKey(spec)).toBe(key)
  return planStart(facts, spec, 'main')
}

function backoff(delayMs: number, agoMs = 60_000): PodRecord['containers'][string] {
  return { backoff: { key, delayMs, updatedAtMs: nowMs - agoMs } }
}

const crashed = exitedContainer('a', 1, { finishedAtMs: nowMs - 1000 })

describe('planStart', () => {
  it('starts what was never made, and charges nothing', () => {
    expect(plan({})).toMatchObject({
      kind: 'start',
      action: { role: 'main', restartCount: 0, backoff: undefined },
    })
  })

  // id: starts-again-crashed-charges
  it('starts again what crashed, and charges the first delay', () => {
    expect(plan({ containers: [crashed] })).toMatchObject({
      kind: 'start',
      action: { restartCount: 1, backoff: { key, delayMs: 10_000, updatedAtMs: nowMs } },
    })
  })

  it.each([
    [10_000, 'back-off 10s restarting failed container=a pod=web_default(uid-web)'],
    [80_000, 'back-off 1m20s restarting failed container=a pod=web_default(uid-web)'],
    [60_000, 'back-off 1m0s restarting failed container=a pod=web_default(uid-web)'],
    [160_000, 'back-off 2m40s restarting failed container=a pod=web_default(uid-web)'],
    [300_000, 'back-off 5m0s restarting failed container=a pod=web_default(uid-web)'],
    // id: waits-out-backoff-i
  ])('waits out a backoff of %i ms in the words of Kubernetes', (delayMs, message) => {
    expect(plan({ containers: [crashed], history: { a: backoff(delayMs) } })).toEqual({
      kind: 'wait',
      untilMs: nowMs - 1000 + delayMs,
      waiting: { reason: 'CrashLoopBackOff', message },
    })
  })

  it('starts at once a container that has other resources now', () => {
    const history = { a: { backoff: { key: 'busybox:1 {}', delayMs: 300_000, updatedAtMs: nowMs - 60_000 } } }
    expect(plan({ containers: [crashed], history })).toMatchObject({
      kind: 'start',
      action: { backoff: { key, delayMs: 10_000 } },
    })
  })

  describe('of a container whose new image cannot be had', () => {
    const backoff: Retry = { untilMs: nowMs + 5000, waiting: { reason: 'ErrImagePull', message: 'no' } }
    const missing: Retry = { ...backoff, image: 'busybox:1' }
    const before = { ...crashed, image: 'busybox:0' }

    it('takes the one that it had, by its backoff', () => {
      const retries = { a: missing }
      expect(plan({ containers: [before], retries })).toMatchObject({
        kind: 'start',
        action: {
          spec: { name: 'a', image: 'busybox:0', imagePullPolicy: 'Never' },
          awaitedImage: 'busybox:1',
          restartCount: 1,
          backoff: { key: key.replace(':1', ':0') },
        },
      })
      const earned = { key: key.replace(':1', ':0'), delayMs: 20_000, updatedAtMs: nowMs - 60_000 }
      expect(plan({ containers: [before], retries, history: { a: { backoff: earned } } })).toMatchObject({
        kind: 'wait',
        untilMs: nowMs + 19_000,
        waiting: { reason: 'CrashLoopBackOff' },
      })
    })

    it.each([
      ['it had no other', { containers: [crashed], retries: { a: missing } }],
      ['it never ran', { retries: { a: missing } }],
      ['something else keeps it from starting', { containers: [before], retries: { a: backoff } }],
      [
        'another image is missing',
        { containers: [before], retries: { a: { ...backoff, image: 'volume:1' } } },
      ],
      [
        'the one it had is gone as well',
        {
          containers: [before],
          retries: { a: missing },
          otherBackoffs: [[previousImageRetry('a'), backoff] as const],
        },
      ],
    ])('waits where %s', (_why, facts) => {
      expect(plan(facts)).toEqual({ kind: 'wait', ...backoff })
    })

    it.each([
      ['that is about to be stopped', { containers: [{ ...before, state: 'running' }] }],
      [
        'that ran when its manifest was changed',
        { containers: [before], history: { a: { awaitedImage: 'busybox:1' } } },
      ],
      [
        'whose last start has failed',
        {
          containers: [observedContainer('a', { state: 'created', image: 'busybox:0' })],
          history: { a: { ended: ended('a', 1, { image: 'busybox:0' }), awaitedImage: 'busybox:1' } },
        },
      ],
    ] satisfies readonly (readonly [string, FactsChanges])[])(
      'takes the one that it had for one %s',
      (_which, facts) => {
        expect(plan(facts)).toMatchObject({
          kind: 'start',
          action: { spec: { image: 'busybox:0' }, awaitedImage: 'busybox:1' },
        })
        expect(plan({ ...facts, imageReady: () => true })).toMatchObject({
          action: { spec: { image: 'busybox:1' } },
        })
      },
    )

    it.each<[string, PodChanges, number, string]>([
      ['it has, of one that runs on under Always', { containers: ['a'] }, 0, 'busybox:0'],
      [
        'is new, of one that has completed',
        { restartPolicy: 'OnFailure', containers: ['a'] },
        0,
        'busybox:1',
      ],
      ['it has, of one that has failed', { restartPolicy: 'OnFailure', containers: ['a'] }, 1, 'busybox:0'],
      [
        'is new, of an init container that has passed',
        { containers: ['b'], init: ['a', 'i'] },
        0,
        'busybox:1',
      ],
      [
        'it has, of an init container that has failed',
        { containers: ['b'], init: ['a', 'i'] },
        1,
        'busybox:0',
      ],
      ['it has, of one after init containers', { containers: ['a'], init: ['i'] }, 0, 'busybox:0'],
      ['it has, of a sidecar', { containers: ['b'], init: [sidecar('a')] }, 0, 'busybox:0'],
    ])('takes the image that %s', (_which, pod, exitCode, image) => {
      const end = exitedContainer('a', exitCode, { finishedAtMs: nowMs - 60_000, image: 'busybox:0' })
      const history = { a: { awaitedImage: 'busybox:1' } }
      const facts = podFacts({ pod, containers: [end], history })
      const { initContainers, containers } = facts.pod.spec
      const spec = [...initContainers, ...containers].find(({ name }) => name === 'a')
      if (spec === undefined) throw new Error('no container')
      expect(planStart(facts, spec, 'main')).toMatchObject({ action: { spec: { image } } })
    })

    it('tries the new one first', () => {
      const action = plan({ containers: [before] })
      expect(action).toMatchObject({ kind: 'start', action: { spec: { image: 'busybox:1' } } })
      expect(action).not.toHaveProperty('action.awaitedImage')
    })
  })

  it('knows a backoff although the runtime has forgotten the container', () => {
    const history = {
      a: { ...backoff(40_000), ended: ended('a', 1, { finishedAtMs: nowMs - 1000, restartCount: 7 }) },
    }
    expect(plan({ history })).toMatchObject({ kind: 'wait', untilMs: nowMs + 39_000 })
  })

  it('starts at once what was made and never started, and charges nothing more', () => {
    const history = { a: backoff(40_000) }
    const containers = [observedContainer('a', { state: 'created', restartCount: 2 }), crashed]
    expect(plan({ containers, history })).toMatchObject({
      kind: 'start',
      action: { restartCount: 2, backoff: { delayMs: 40_000 } },
    })
  })

  // id: charges-nothing-first-container
  it('charges nothing for the first container that is stopped for a failed probe', () => {
    expect(plan({ containers: [observedContainer('a')] })).toMatchObject({
      kind: 'start',
      action: { restartCount: 1, backoff: undefined },
    })
  })

  it.each([
    ['long ago', 60_000, { kind: 'start', action: { backoff: { delayMs: 80_000 } } }],
    ['a moment ago', 30_000, { kind: 'wait', untilMs: nowMs + 10_000 }],
  ])('counts the delay of one that is stopped from the end before it: %s', (_when, endedAgoMs, expected) => {
    const containers = [
      observedContainer('a', { restartCount: 1 }),
      exitedContainer('a', 1, { finishedAtMs: nowMs - endedAgoMs }),
    ]
    expect(plan({ containers, history: { a: backoff(40_000, endedAgoMs) } })).toMatchObject(expected)
  })

  it.each<[string, FactsChanges]>([
    ['of the same spec whose image is present', { imageReady: () => true }],
    [
      'of another spec whose image is not',
      { specHash: () => containerSpecHash({ name: 'a', image: 'new' }) },
    ],
  ])('delays one that is stopped for its own failure, %s', (_which, facts) => {
    const containers = [
      observedContainer('a', { restartCount: 1 }),
      exitedContainer('a', 1, { finishedAtMs: nowMs - 30_000 }),
    ]
    expect(plan({ containers, history: { a: backoff(40_000, 30_000) }, ...facts })).toMatchObject({
      kind: 'wait',
      untilMs: nowMs + 10_000,
    })
  })

  it('starts one of another spec whose image is present at once, and charges nothing', () => {
    const containers = [
      observedContainer('a', { restartCount: 1 }),
      exitedContainer('a', 1, { finishedAtMs: nowMs - 30_000 }),
    ]
    const specHash = () => containerSpecHash({ name: 'a', image: 'new' })
    const history = { a: backoff(40_000, 30_000) }
    expect(plan({ containers, history, specHash, imageReady: () => true })).toMatchObject({
      kind: 'start',
      action: { restartCount: 2, backoff: history.a.backoff },
    })
  })

  it('forgets the backoff of one that is stopped after a run of more than ten minutes', () => {
    const containers = [observedContainer('a', { restartCount: 1 })]
    const history = {
      a: { ...backoff(300_000, 700_000), ended: ended('a', 1, { finishedAtMs: nowMs - 200_000 }) },
    }
    expect(plan({ containers, history })).toMatchObject({
      kind: 'start',
      action: { backoff: { delayMs: 10_000 } },
    })
  })

  it('puts the backoff of a failed start before everything else', () => {
    const backoff = { untilMs: nowMs + 1, waiting: { reason: 'CreateContainerError', message: 'no' } }
    expect(plan({ retries: { a: backoff } })).toEqual({ kind: 'wait', ...backoff })
  })
})

describe('selectRecreations', () => {
  const recreated = (facts: FactsChanges): readonly string[] => {
    const { pod, observed, history, podResources, restartRequested } = podFacts(facts)
    const hashes = new Map(observed.containers.map(({ name, specHash }) => [name, specHash]))
    const all = { pod, observed, history, podResources, restartRequested }
    return [...selectRecreations(all, (name) => (name === 'a' ? 'changed' : hashes.get(name)))]
  }

  it('has what runs by another spec, and what is to be restarted on request', () => {
    expect(recreated({})).toEqual(['a'])
    expect(recreated({ restartRequested: new Set(['b-0']) })).toEqual(['a', 'b'])
  })

  it('has nothing that does not run', () => {
    const containers = [exitedContainer('a', 1), observedContainer('b', { state: 'created' })]
    expect(recreated({ containers, restartRequested: new Set(['b-0']) })).toEqual([])
  })
})

describe('selectAwaitedImages', () => {
  const { pod, observed } = podFacts({})
  const [a] = pod.spec.containers
  if (a === undefined) throw new Error('no container')
  const fetch = { kind: 'fetch-image', spec: { ...a, image: 'busybox:2' } } as const

  it.each([
    ['the new image that is fetched for a container of another', observed, [['a', 'busybox:2']]],
    [
      'none, where the container had the image that is fetched',
      { containers: [observedContainer('b'), observedContainer('a', { image: 'busybox:2' })] },
      [['a', undefined]],
    ],
    ['the image of one that was never created', { containers: [] }, [['a', 'busybox:2']]],
  ])('is %s', (_which, pods, expected) => {
    expect(selectAwaitedImages([fetch], pods)).toEqual(expected)
  })

  it('is what a container waits for that is started without it', () => {
    const start = planStart(
      podFacts({
        pod: { containers: ['a'] },
        containers: [exitedContainer('a', 1, { image: 'busybox:0', finishedAtMs: nowMs - 60_000 })],
        history: { a: { awaitedImage: 'busybox:1' } },
      }),
      a,
      'main',
    )
    if (start.kind !== 'start') throw new Error('it waits')
    expect(selectAwaitedImages([start.action], observed)).toEqual([['a', 'busybox:1']])
  })
})
