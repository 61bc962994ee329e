import { describe, expect, it } from 'vitest'
import {
  computeEndingActions,
  computeTerminationWaves,
  endingDeadlineMs,
  endingOverrideSeconds,
  freesNameWithContainers,
  stopTimeout,
} from '../../../../src/decide/plan/ending.ts'
import { podFromManifest } from '../../../../src/pod/schema/default-pod.ts'
import type { ObservedPod } from '../../../../src/pod/state/observed.ts'
import {
  actionsOf,
  deadSandbox,
  exitedContainer,
  makePod,
  nowMs,
  observedContainer,
  observedPod,
  sidecar,
} from '../../../support/pod-builders.ts'

const nothing = { sandboxes: [], containers: [] }

describe('computeEndingActions', () => {
  it.each([
    // id: stops-what-runs
    ['stops what runs', { containers: [observedContainer('a')] }, true, 'stop', ['stop-pod']],
    [
      'stops what may run',
      { sandboxes: [deadSandbox], containers: [observedContainer('a', { state: 'unknown' })] },
      true,
      'stop',
      ['stop-pod'],
    ],
    ['stops a sandbox that is ready', {}, true, 'stop', ['stop-pod']],
    ['stops a sandbox that died by itself once', { sandboxes: [deadSandbox] }, false, 'stop', ['stop-pod']],
    [
      // id: removes-left-stopped
      'removes what is left when all was stopped',
      {
        sandboxes: [deadSandbox],
        containers: [exitedContainer('a', 0), observedContainer('b', { state: 'created' })],
      },
      true,
      'remove',
      ['remove a-0 b-0', 'remove sandbox-0'],
    ],
    ['has nothing to do for a pod that never began', nothing, false, 'remove', []],
    ['has nothing to do for a pod that is gone', nothing, true, 'remove', []],
    [
      'removes containers that have lost their sandbox',
      { sandboxes: [], containers: [exitedContainer('a', 0)] },
      false,
      'remove',
      ['remove a-0'],
    ],
  ] as const satisfies readonly (readonly [
    string,
    Partial<ObservedPod>,
    boolean,
    string,
    readonly string[],
  ])[])('%s', (_title, changes, stoppedBefore, kind, actions) => {
    const plan = computeEndingActions(observedPod(changes), { stoppedBefore })
    expect({ kind: plan.kind, actions: actionsOf(plan) }).toEqual({ kind, actions })
  })
})

describe('computeTerminationWaves', () => {
  const names = (
    observed: ObservedPod,
    pod = makePod({ init: [sidecar('s1'), 'i', sidecar('s2')], ephemeral: ['debug'] }),
  ) => computeTerminationWaves(observed, pod).map((wave) => wave.map(({ name }) => name))
  const all = ['a', 's1', 'b', 's2', 'debug'].map((name) => observedContainer(name))

  // id: stops-sidecars-after-main
  it('stops sidecars after the main containers, in reverse order', () => {
    expect(names(observedPod({ containers: all }))).toEqual([['a', 'b', 'debug'], ['s2'], ['s1']])
  })

  // id: stops-init-container-runs
  it('stops an init container that runs in the first wave', () => {
    const containers = [observedContainer('i'), observedContainer('s1')]
    expect(names(observedPod({ containers }))).toEqual([['i'], ['s1']])
  })

  // id: makes-no-waves-ended
  it('makes no waves of what has ended', () => {
    const containers = [
      exitedContainer('a', 0),
      observedContainer('s2', { state: 'created' }),
      observedContainer('s1'),
    ]
    expect(names(observedPod({ containers }))).toEqual([['s1']])
    expect(names(observedPod())).toEqual([])
  })

  it('stops what may still run', () => {
    const containers = [
      observedContainer('a', { state: 'unknown' }),
      observedContainer('s1', { state: 'unknown' }),
    ]
    expect(names(observedPod({ containers }))).toEqual([['a'], ['s1']])
  })

  it('stops all containers of an orphan at once', () => {
    const waves = computeTerminationWaves(observedPod({ containers: all }), undefined)
    expect(waves.map((wave) => wave.length)).toEqual([5])
  })
})

describe('what is left of a grace', () => {
  it.each([
    ['the whole seconds up to the deadline', 10_000, 10],
    ['a part of a second as a whole one', 9001, 10],
    ['at least two seconds', 500, 2],
    // id: two-seconds-after-deadline
    ['two seconds after the deadline', -60_000, 2],
    ['what the runtime can count, of a grace beyond that', 9e15, 2 ** 32],
  ])('is %s', (_title, leftMs, seconds) => {
    expect(stopTimeout(leftMs)).toBe(seconds)
  })

  it.each([
    ['one second of a hard eviction, whose grace is 1 s', 1000, 1, 1],
    ['that second again, where a hook has used it up', -500, 1, 1],
    ['nothing where all containers restart, which are given no grace', 0, 0, 0],
    ['two seconds where a longer grace was used up', -500, 5, 2],
  ])('is %s', (_title, leftMs, overrideSeconds, seconds) => {
    expect(stopTimeout(leftMs, overrideSeconds)).toBe(seconds)
  })

  it.each([
    ['counts from the request', nowMs - 4000, nowMs + 26_000],
    ['lies in the past when it is over', nowMs - 60_000, nowMs - 30_000],
    ['is never longer than the grace, whatever the clock did', nowMs + 3_600_000, nowMs + 30_000],
  ])('%s', (_title, requestedAtMs, deadlineMs) => {
    expect(endingDeadlineMs({ requestedAtMs, graceSeconds: 30 }, nowMs)).toBe(deadlineMs)
  })
})

describe('the name of a pod that ends', () => {
  const ports = (hostPort?: number) => [
    { containerPort: 80, ...(hostPort === undefined ? {} : { hostPort }) },
  ]

  it.each<[string, readonly object[], boolean]>([
    ['is free with its containers', [{ name: 'a', ports: ports() }, { name: 'b' }], true],
    [
      'waits for the sandbox where any container has a port of the host',
      [{ name: 'a', ports: ports(80) }, { name: 'b' }],
      false,
    ],
    ['is free where that port is 0', [{ name: 'a', ports: ports(0) }], true],
  ])('%s', (_, containers, isFree) => {
    const pod = podFromManifest({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: { containers: containers.map((each) => Object.assign({ image: 'app:1' }, each)) },
    })
    expect(freesNameWithContainers({ cause: 'removed' }, pod)).toBe(isFree)
    expect(freesNameWithContainers({ cause: 'orphaned' }, pod)).toBe(false)
  })
})

it('gives a pod that is to end at once a second, and any other what it is given', () => {
  expect([0, 1, 30].map((graceSeconds) => endingOverrideSeconds({ graceSeconds }))).toEqual([1, 1, 30])
})
