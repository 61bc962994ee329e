import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import {
  activeRetry,
  restartKey,
  backoffLimits,
  backoffResetMs,
  computeRestartTiming,
  containerRetry,
  isRestartableInit,
  matchRestartRule,
  nextImageRetry,
  noRetries,
  restartsAfterStop,
  sandboxRetry,
  selectCancelledStarts,
  shouldRestart,
  withRetry,
  withoutCancelledStarts,
  withoutReasons,
  withoutReferenceRetries,
} from '../../../../src/decide/plan/backoff.ts'
import type { Retries } from '../../../../src/decide/plan/backoff.ts'
import { computePodActions } from '../../../../src/decide/plan/compute-pod-actions.ts'
import { nextRestartCount } from '../../../../src/decide/plan/container-view.ts'
import type { ObservedContainer } from '../../../../src/pod/state/observed.ts'
import type { BackoffEntry } from '../../../../src/pod/state/pod-record.ts'
import {
  actionsOf,
  bootId,
  deadSandbox,
  ended,
  exitedContainer,
  makePod,
  nowMs,
  observedContainer,
  observedPod,
  observedSandbox,
  podFacts,
} from '../../../support/pod-builders.ts'
import type { FactsChanges } from '../../../support/pod-builders.ts'

function policies(restartPolicy: 'Always' | 'OnFailure' | 'Never', fields: JsonObject = {}) {
  const { spec } = makePod({ restartPolicy, containers: [{ name: 'a', ...fields }] })
  const [container] = spec.containers
  if (container === undefined) throw new Error('no container')
  return { spec, container }
}

const restartOn = (operator: 'In' | 'NotIn', ...values: number[]) => ({
  action: 'Restart',
  exitCodes: { operator, values },
})

describe('shouldRestart', () => {
  it.each([
    ['Always', {}, 0, true],
    ['Always', {}, 1, true],
    ['OnFailure', {}, 0, false],
    ['OnFailure', {}, 1, true],
    ['Never', {}, 0, false],
    ['Never', {}, 1, false],
    ['Never', { restartPolicy: 'Always' }, 0, true],
    ['Never', { restartPolicy: 'OnFailure' }, 0, false],
    ['Never', { restartPolicy: 'OnFailure' }, 137, true],
    ['Always', { restartPolicy: 'Never' }, 1, false],
    ['Always', { restartPolicy: 'OnFailure' }, 0, false],
    ['Always', { restartPolicy: 'Never', restartPolicyRules: [restartOn('In', 42)] }, 42, true],
    ['Always', { restartPolicy: 'Never', restartPolicyRules: [restartOn('In', 42)] }, 43, false],
    ['Never', { restartPolicy: 'Never', restartPolicyRules: [restartOn('NotIn', 0, 1)] }, 2, true],
    ['Never', { restartPolicy: 'Never', restartPolicyRules: [restartOn('NotIn', 0, 1)] }, 1, false],
    ['Always', { restartPolicy: 'OnFailure', restartPolicyRules: [restartOn('In', 0)] }, 0, true],
    ['Never', { restartPolicyRules: [restartOn('In', 42)] }, 42, false],
    ['Never', { restartPolicy: 'Never', restartPolicyRules: [{ action: 'Restart' }] }, 1, false],
  ] as const)('%s with %j after %i: %s', (policy, fields, exitCode, expected) => {
    const { spec, container } = policies(policy, fields)
    expect(shouldRestart(spec, container, exitCode)).toBe(expected)
  })
})

describe('matchRestartRule', () => {
  it('takes the first rule that fits', () => {
    const { container } = policies('Never', {
      restartPolicy: 'Never',
      restartPolicyRules: [
        { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [7] } },
        restartOn('NotIn', 0),
      ],
    })
    expect([7, 8, 0].map((exitCode) => matchRestartRule(container, exitCode))).toEqual([
      'RestartAllContainers',
      'Restart',
      undefined,
    ])
  })
})

describe('restartsAfterStop', () => {
  it.each([
    ['Always', {}, true],
    ['OnFailure', {}, true],
    ['Never', {}, false],
    ['Always', { restartPolicy: 'Never' }, false],
    ['Never', { restartPolicy: 'OnFailure' }, true],
    ['Never', { restartPolicy: 'Never', restartPolicyRules: [restartOn('NotIn', 0)] }, false],
  ] as const)('%s with %j: %s', (policy, fields, expected) => {
    const { spec, container } = policies(policy, fields)
    expect(restartsAfterStop(spec, container)).toBe(expected)
  })

  it.each([
    [undefined, false],
    ['OnFailure', false],
    ['Always', true],
  ] as const)('%s makes a sidecar of an init container: %s', (restartPolicy, expected) => {
    expect(isRestartableInit({ restartPolicyRules: [], ...(restartPolicy && { restartPolicy }) })).toBe(
      expected,
    )
  })
})

type Row = readonly [title: string, changes: FactsChanges, actions: readonly string[]]

const own = (restartPolicy: string, rules: JsonObject[] = []) =>
  ['a', 'b'].map((name) => ({ name, restartPolicy, restartPolicyRules: rules }))
const running = observedContainer('c')
const onceOver = [exitedContainer('a', 0), exitedContainer('b', 111), running]

const rows: readonly Row[] = [
  [
    // id: restarts-those-own-policy
    'restarts those whose own policy is Always under Never',
    { pod: { restartPolicy: 'Never', containers: [...own('Always'), 'c'] }, containers: onceOver },
    ['start a#1', 'start b#1'],
  ],
  [
    // id: restarts-those-failed-own
    'restarts those that failed whose own policy is OnFailure under Never',
    { pod: { restartPolicy: 'Never', containers: [...own('OnFailure'), 'c'] }, containers: onceOver },
    ['start b#1'],
  ],
  [
    // id: starts-again-made-never
    'starts again what was made and never started whose own policy is OnFailure',
    {
      pod: { restartPolicy: 'Never', containers: [...own('OnFailure'), 'c'] },
      containers: [exitedContainer('a', 0), observedContainer('b', { state: 'created' }), running],
    },
    ['remove b-0', 'start b#0'],
  ],
  [
    // id: restarts-none-own-policy
    'restarts none whose own policy is Never under Always',
    { pod: { containers: [...own('Never'), 'c'] }, containers: onceOver },
    [],
  ],
  [
    'restarts by the exit code',
    { pod: { containers: [...own('Never', [restartOn('In', 111)]), 'c'] }, containers: onceOver },
    ['start b#1'],
  ],
  [
    // id: leaves-out-new-sandbox
    'leaves out of a new sandbox what has succeeded by its own policy',
    {
      pod: { containers: ['a', { name: 'b', restartPolicy: 'OnFailure' }, 'c'] },
      sandboxes: [deadSandbox],
      containers: [observedContainer('a'), exitedContainer('b', 0), running],
    },
    ['stop-pod', 'sandbox 1', 'start a#1', 'start c#1'],
  ],
  [
    'makes a new sandbox under Never for those that may run again',
    {
      pod: { restartPolicy: 'Never', containers: ['a', { name: 'b', restartPolicy: 'Always' }] },
      sandboxes: [deadSandbox],
      containers: [observedContainer('a'), observedContainer('b')],
    },
    ['stop-pod', 'sandbox 1', 'start b#1'],
  ],
  [
    'makes no new sandbox when every own policy is Never',
    {
      pod: { containers: own('Never') },
      sandboxes: [observedSandbox({ ready: false })],
      containers: [observedContainer('a'), observedContainer('b')],
    },
    ['stop-pod'],
  ],
]

describe('containers with a restartPolicy of their own', () => {
  it.each(rows)('%s', (_title, changes, actions) => {
    expect(actionsOf(computePodActions(podFacts(changes)))).toEqual(actions)
  })
})

const key = 'busybox:1 {"limits":{},"requests":{}}'
const limits = backoffLimits()
const entry = (delayMs: number, agoMs: number): BackoffEntry => ({
  key,
  delayMs,
  updatedAtMs: nowMs - agoMs,
  bootId,
})

describe('computeRestartTiming', () => {
  it.each([
    ['is free the first time', undefined, 0, { kind: 'now', entry: entry(10_000, 0) }],
    [
      'waits from the end of the container',
      entry(10_000, 60_000),
      4000,
      { kind: 'wait', untilMs: nowMs + 6000, delayMs: 10_000 },
    ],
    [
      'goes on when the delay is over, and doubles it',
      entry(10_000, 60_000),
      10_000,
      { kind: 'now', entry: entry(20_000, 0) },
    ],
    ['doubles up to the cap', entry(160_000, 400_000), 160_000, { kind: 'now', entry: entry(300_000, 0) }],
    ['stays at the cap', entry(300_000, 400_000), 300_000, { kind: 'now', entry: entry(300_000, 0) }],
    [
      'is free again after a run of more than ten minutes',
      entry(300_000, backoffResetMs + 2000),
      1000,
      { kind: 'now', entry: entry(10_000, 0) },
    ],
    [
      'does not count the time after the end as a run',
      entry(300_000, backoffResetMs + 2000),
      5000,
      { kind: 'wait', untilMs: nowMs + 295_000, delayMs: 300_000 },
    ],
    [
      'is free when the image or the resources are others',
      { ...entry(300_000, 60_000), key: 'busybox:2 {}' },
      1000,
      { kind: 'now', entry: entry(10_000, 0) },
    ],
    [
      'is free after a boot of the host',
      { ...entry(300_000, 60_000), bootId: 'boot-0' },
      1000,
      { kind: 'now', entry: entry(10_000, 0) },
    ],
    [
      'waits where an older podd took no note of the boot',
      { ...entry(10_000, 60_000), bootId: undefined },
      4000,
      { kind: 'wait', untilMs: nowMs + 6000, delayMs: 10_000 },
    ],
    [
      'does not wait for an end in the future',
      entry(40_000, -3_580_000),
      -3_600_000,
      { kind: 'now', entry: entry(80_000, 0) },
    ],
  ] as const)('%s', (_title, previous, finishedAgoMs, expected) => {
    const finishedAtMs = nowMs - finishedAgoMs
    expect(computeRestartTiming({ key, previous, finishedAtMs, nowMs, bootId, limits })).toEqual(expected)
  })

  it('is not free sooner because the cap is lower', () => {
    const previous = entry(1000, 60_000)
    const timing = computeRestartTiming({
      key,
      previous,
      finishedAtMs: nowMs - 200,
      nowMs,
      bootId,
      limits: backoffLimits(1000),
    })
    expect(timing).toMatchObject({ kind: 'wait', untilMs: nowMs + 800 })
  })

  it('counts the delay from where it is told, and the run up to its end', () => {
    const previous = entry(40_000, 30_000)
    const timing = computeRestartTiming({
      key,
      previous,
      finishedAtMs: nowMs,
      countedFromMs: nowMs - 31_000,
      nowMs,
      bootId,
      limits,
    })
    expect(timing).toEqual({ kind: 'wait', untilMs: nowMs + 9000, delayMs: 40_000 })
  })

  it.each([
    [undefined, [10, 20, 40, 80, 160, 300, 300]],
    [60_000, [10, 20, 40, 60, 60, 60, 60]],
    [1000, [1, 1, 1, 1, 1, 1, 1]],
  ])('with the cap %s waits in seconds %j', (maxMs, seconds) => {
    const capped = backoffLimits(maxMs)
    let previous: BackoffEntry | undefined
    let clockMs = nowMs
    const waits: number[] = []
    for (let crash = 0; crash <= seconds.length; crash += 1) {
      const finishedAtMs = clockMs
      let timing = computeRestartTiming({
        key,
        previous,
        finishedAtMs,
        nowMs: clockMs,
        bootId,
        limits: capped,
      })
      if (timing.kind === 'wait') {
        waits.push((timing.untilMs - clockMs) / 1000)
        clockMs = timing.untilMs
        timing = computeRestartTiming({ key, previous, finishedAtMs, nowMs: clockMs, bootId, limits: capped })
      }
      if (timing.kind !== 'now') throw new Error('waits twice')
      previous = timing.entry
    }
    expect(waits).toEqual(seconds)
  })
})

describe('restartKey', () => {
  const container = policies('Always', { resources: { limits: { cpu: '1', memory: '1Gi' } } }).container

  it.each([
    ['the command', { command: ['true'] }, true],
    ['the order of the resources', { resources: { limits: { memory: '1Gi', cpu: '1' } } }, true],
    ['the image', { image: 'busybox:2' }, false],
    ['the resources', { resources: { limits: { cpu: '2', memory: '1Gi' } } }, false],
  ])('%s: the same %s', (_what, fields, same) => {
    const changed = policies('Always', {
      resources: { limits: { cpu: '1', memory: '1Gi' } },
      ...fields,
    }).container
    expect(restartKey(changed) === restartKey(container)).toBe(same)
  })
})

const backoff = (reason: string) => ({ untilMs: 1000, waiting: { reason, message: '' } })

const all: Retries = [
  [sandboxRetry, 'FailedMount'] as const,
  [containerRetry('a'), 'CreateContainerConfigError'] as const,
  [nextImageRetry('a'), 'ErrImagePull'] as const,
  [containerRetry('b'), 'ImagePullBackOff'] as const,
].reduce((retries, [key, reason]) => withRetry(retries, key, backoff(reason)), noRetries)

it('ends the retries of the sandbox and of what could not be configured where an object changed', () => {
  const left = withoutReferenceRetries(all)
  expect(left.sandbox).toBeUndefined()
  expect(left.containers).toEqual({
    a: { 'next-image': backoff('ErrImagePull') },
    b: { container: backoff('ImagePullBackOff') },
  })
})

it('ends retries by their reasons alone, and leaves that of the sandbox', () => {
  const left = withoutReasons(all, (reason) => reason.includes('Image'))
  expect(left.sandbox).toEqual(backoff('FailedMount'))
  expect(left.containers).toEqual({ a: { container: backoff('CreateContainerConfigError') }, b: {} })
})

it.each([
  ['before its end', 999, true],
  ['at its end', 1000, false],
  ['as long before its end as a backoff may last', 1000 - 300_000, true],
  ['longer before its end, as where the clock was set back', 1000 - 300_001, false],
])('counts a backoff %s or not', (_when, nowMs, isActive) => {
  expect(activeRetry({ retries: all, nowMs }, sandboxRetry) !== undefined).toBe(isActive)
})

const failed = (message: string): ObservedContainer =>
  observedContainer('a', { state: 'exited', exitCode: 128, reason: 'StartError', message })

describe('a start that failed and is on no record', () => {
  it.each([
    ['failed to get container info: context canceled', 0],
    ['failed to update container IO owner: context canceled', 0],
    ['failed to create containerd task: failed to create shim task: context canceled', 0],
    ['failed to create containerd task: failed to start shim: start failed: : signal: killed: unknown', 0],
    ['nri invoke: context canceled', 0],
    ['NRI container start failed: context canceled', 0],
    ['failed to start containerd task "a-0": context canceled', 1],
    ['failed to update container "a-0" state: context canceled', 1],
    ['failed to create containerd tasks', 1],
    ['', 1],
  ])('%j gives its successor number %i', (message, count) => {
    const observed = observedPod({ containers: [failed(message)] })
    const seen = withoutCancelledStarts(observed, selectCancelledStarts(observed, {}))
    expect(seen.containers.map(({ state }) => state)).toEqual(['created'])
    expect(nextRestartCount('a', seen, undefined)).toBe(count)
  })
})

it.each([
  ['created', observedContainer('a', { state: 'created' }), {}, true],
  ['running', observedContainer('a'), {}, false],
  ['failed, on no record', failed('failed to start containerd task "a-0": x'), {}, true],
  ['failed, on record', failed('x'), { a: { ended: ended('a', 128, { containerId: 'a-0' }) } }, false],
  ['failed, one before on record', failed('x'), { a: { ended: ended('a', 1, { containerId: 'z' }) } }, true],
  [
    'exited by itself',
    observedContainer('a', { state: 'exited', exitCode: 128, reason: 'Error' }),
    {},
    false,
  ],
])('of a container that is %s the start may have been cancelled: %j', (_, container, history, expected) => {
  const observed = observedPod({ containers: [container] })
  expect(selectCancelledStarts(observed, history).has(container.id)).toBe(expected)
})

it('counts only the container whose start was cancelled as created', () => {
  const observed = observedPod({ containers: [failed('x'), observedContainer('b')] })
  const seen = withoutCancelledStarts(observed, selectCancelledStarts(observed, {}))
  expect(seen.containers.map(({ name, state }) => `${name} ${state}`)).toEqual(['a created', 'b running'])
})

it('has a start that is still in flight count as it ends', () => {
  const before = observedPod({ containers: [observedContainer('a', { state: 'created' })] })
  const selected = selectCancelledStarts(before, {})
  const after = observedPod({ containers: [observedContainer('a')] })
  expect(withoutCancelledStarts(after, selected)).toBe(after)
})
