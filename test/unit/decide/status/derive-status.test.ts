import { describe, expect, it } from 'vitest'
import { deriveStatus } from '../../../../src/decide/status/derive-status.ts'
import type { PodCondition } from '../../../../src/pod/state/status.ts'
import {
  bornMs,
  deadSandbox,
  ended,
  exitedContainer,
  nowMs,
  observedContainer,
  observedSandbox,
  probe,
  sidecar,
  statusFacts,
} from '../../../support/pod-builders.ts'
import type { PodRecord } from '../../../../src/pod/state/pod-record.ts'
import type { PodChanges, StatusChanges } from '../../../support/pod-builders.ts'

function condition(type: string, changes: StatusChanges): Partial<PodCondition> {
  const found = deriveStatus(statusFacts(changes)).status.conditions.find((entry) => entry.type === type)
  if (found === undefined) throw new Error(`no condition ${type}`)
  const { lastTransitionTime: _at, observedGeneration: _of, type: _type, ...rest } = found
  return rest
}

const running = (name: string) => observedContainer(name)
const two: PodChanges = { containers: ['a', { name: 'b', readinessProbe: probe }] }
const once = { restartPolicy: 'Never', containers: ['a'] } as const
const done = [exitedContainer('a', 0)]
const isTrue = { status: 'True' }

describe('ContainersReady and Ready', () => {
  const notReady = (names: string) => ({
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${names}]`,
  })
  it.each([
    ['nothing has been made', { pod: two }, notReady('a b')],
    [
      // id: all-are-ready
      'all are ready',
      { pod: two, containers: [running('a'), running('b')], verdicts: { 'readiness b-0': 'success' } },
      isTrue,
    ],
    ['one is missing', { pod: two, containers: [running('a')] }, notReady('b')],
    [
      // id: not-passed-readiness-probe
      'one has not passed its readiness probe',
      { pod: two, containers: [running('a'), running('b')] },
      notReady('b'),
    ],
    [
      'one fails its readiness probe',
      { pod: two, containers: [running('a'), running('b')], verdicts: { 'readiness b-0': 'failure' } },
      notReady('b'),
    ],
    [
      'one has ended',
      {
        pod: two,
        containers: [exitedContainer('a', 0), running('b')],
        verdicts: { 'readiness b-0': 'success' },
      },
      notReady('a'),
    ],
    [
      'one has not passed its startup probe',
      { pod: { containers: [{ name: 'a', startupProbe: probe }] }, containers: [running('a')] },
      notReady('a'),
    ],
    // id: the-pod-has-succeeded
    ['the pod has succeeded', { pod: once, containers: done }, { status: 'False', reason: 'PodCompleted' }],
    [
      'the pod has failed',
      { pod: once, containers: [exitedContainer('a', 1)] },
      { status: 'False', reason: 'PodFailed' },
    ],
    [
      // id: a-sidecar-is-missing
      'a sidecar is missing',
      {
        pod: { containers: ['a'], init: [sidecar('s1'), sidecar('s2')] },
        containers: [running('a'), running('s1')],
      },
      notReady('s2'),
    ],
    [
      // id: ready-sidecars-too
      'all are ready, sidecars too',
      {
        pod: { containers: ['a'], init: [sidecar('s1'), sidecar('s2')] },
        containers: [running('a'), running('s1'), running('s2')],
      },
      isTrue,
    ],
    [
      // id: sidecar-not-ready
      'a sidecar is not ready',
      {
        pod: { containers: ['a'], init: [sidecar('s1'), sidecar('s2', { readinessProbe: probe })] },
        containers: [running('a'), running('s1'), running('s2')],
      },
      notReady('s2'),
    ],
    [
      'an init container failed in the end, and main containers run all the same',
      { pod: { containers: ['a'], init: ['i'] }, containers: [running('a'), exitedContainer('i', 1)] },
      isTrue,
    ],
    [
      'an init container has ended, as it should',
      { pod: { containers: ['a'], init: ['i'] }, containers: [running('a'), exitedContainer('i', 0)] },
      isTrue,
    ],
  ] as const satisfies readonly (readonly [string, StatusChanges, object])[])(
    'when %s',
    (_title, changes, expected) => {
      expect(condition('ContainersReady', changes)).toEqual(expected)
      expect(condition('Ready', changes)).toEqual(expected)
    },
  )
})

describe('Initialized', () => {
  const incomplete = (names: string) => ({
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${names}]`,
  })
  const inits = (...init: NonNullable<PodChanges['init']>): PodChanges => ({ containers: ['a'], init })
  it.each([
    // id: without-init-containers
    ['without init containers', { pod: { containers: ['a'] } }, isTrue],
    // id: before-first-run
    ['before the first one has run', { pod: inits('i') }, incomplete('i')],
    [
      // id: when-all-have-passed
      'when all have passed',
      { pod: inits('i', 'j'), containers: [exitedContainer('i', 0), exitedContainer('j', 0)] },
      isTrue,
    ],
    // id: when-one-is-missing
    ['when one is missing', { pod: inits('i', 'j'), containers: [exitedContainer('i', 0)] }, incomplete('j')],
    [
      // id: while-one-runs
      'while one runs',
      { pod: inits('i', 'j'), containers: [exitedContainer('i', 0), running('j')] },
      incomplete('j'),
    ],
    [
      'when one has failed',
      { pod: inits('i', 'j'), containers: [exitedContainer('i', 1)] },
      incomplete('i j'),
    ],
    [
      // id: when-the-pod-has-succeeded
      'when the pod has succeeded',
      { pod: { ...inits('i'), restartPolicy: 'Never' }, containers: [exitedContainer('i', 0), ...done] },
      { status: 'True', reason: 'PodCompleted' },
    ],
    [
      // id: before-sidecar-started
      'before a sidecar has started',
      { pod: inits(sidecar('s', { startupProbe: probe })), containers: [running('s')] },
      incomplete('s'),
    ],
    [
      'when a sidecar has started and is not ready yet',
      { pod: inits(sidecar('s', { readinessProbe: probe })), containers: [running('s')] },
      isTrue,
    ],
    // id: when-a-sidecar-has-started
    ['when a sidecar has started', { pod: inits(sidecar('s')), containers: [running('s')] }, isTrue],
    [
      // id: sidecar-starts-again-beside
      'while a sidecar starts again beside a main container',
      { pod: inits(sidecar('s', { startupProbe: probe })), containers: [running('s'), running('a')] },
      isTrue,
    ],
    [
      // id: remains-init-container-gone
      'when the remains of an init container are gone',
      { pod: inits('i'), containers: [exitedContainer('a', 1)] },
      isTrue,
    ],
    [
      'while a sidecar starts again beside one of two main containers',
      {
        pod: { ...inits(sidecar('s', { startupProbe: probe })), containers: ['a', 'b'] },
        containers: [running('s'), running('a')],
      },
      isTrue,
    ],
    [
      'when the remains of an init container are gone, and one of two main containers was made',
      { pod: { ...inits('i'), containers: ['a', 'b'] }, containers: [running('a')] },
      isTrue,
    ],
  ] as const satisfies readonly (readonly [string, StatusChanges, object])[])(
    '%s',
    (_title, changes, expected) => {
      expect(condition('Initialized', changes)).toEqual(expected)
    },
  )
})

describe('PodReadyToStartContainers', () => {
  it.each([
    // id: without-a-sandbox
    ['without a sandbox', { sandboxes: [] }, 'False'],
    // id: sandbox-not-ready
    ['when the sandbox is not ready', { sandboxes: [observedSandbox({ ready: false })] }, 'False'],
    // id: sandbox-no-address
    ['when the sandbox has no address', { sandboxes: [observedSandbox({ ips: [] })] }, 'False'],
    // id: when-the-sandbox-has-an-address
    ['when the sandbox has an address', {}, 'True'],
    [
      'on the host network',
      { pod: { spec: { hostNetwork: true } }, sandboxes: [observedSandbox({ ips: [], hostNetwork: true })] },
      'True',
    ],
  ] as const satisfies readonly (readonly [string, StatusChanges, string])[])(
    '%s',
    (_title, changes, status) => {
      expect(condition('PodReadyToStartContainers', changes)).toEqual({ status })
    },
  )
})

describe('the times of conditions', () => {
  const facts = statusFacts({ pod: { containers: ['a'] }, containers: [running('a')] })

  it('are those of the change', () => {
    const first = deriveStatus(facts)
    const ready = (status: ReturnType<typeof deriveStatus>) =>
      status.status.conditions.find(({ type }) => type === 'Ready')?.lastTransitionTime
    expect(ready(first)).toBe('2026-01-01T01:00:00Z')
    const record = { ...facts.record, ...first.recordChange }
    const later = deriveStatus({ ...facts, record, nowMs: nowMs + 60_000 })
    expect(ready(later)).toBe('2026-01-01T01:00:00Z')
    expect(later.recordChange).toBeUndefined()
    const gone = { ...facts, record, nowMs: nowMs + 60_000, observed: { ...facts.observed, containers: [] } }
    expect(ready(deriveStatus(gone))).toBe('2026-01-01T01:01:00Z')
    expect(deriveStatus(gone).recordChange?.conditions?.['PodScheduled']).toEqual(
      record.conditions['PodScheduled'],
    )
  })

  it('are forgotten with a condition that is no more, and with no other', () => {
    const { conditions = {} } = deriveStatus(facts).recordChange ?? {}
    const { PodScheduled } = conditions
    if (PodScheduled === undefined) throw new Error('no condition PodScheduled')
    const record = { ...facts.record, conditions: { ...conditions, PodResizePending: PodScheduled } }
    expect(deriveStatus({ ...facts, record }).recordChange?.conditions).toEqual(conditions)
  })
})

describe('the generation that a status was found for', () => {
  const removed = {
    cause: 'removed',
    reason: 'Killing',
    message: '',
    requestedAtMs: nowMs,
    graceSeconds: 30,
  } as const
  it.each([
    ['of a record of an older podd', {}, 1],
    ['after two changes', { generation: 3 }, 3],
    ['of a pod that is being deleted', { generation: 3, ending: removed }, 4],
    [
      'of a pod that failed and stays',
      { ending: { ...removed, cause: 'deadline', reason: 'DeadlineExceeded' } as const },
      1,
    ],
  ])('%s', (_title, record, generation) => {
    const { status } = deriveStatus(statusFacts({ record }))
    expect(status.observedGeneration).toBe(generation)
    expect(new Set(status.conditions.map(({ observedGeneration }) => observedGeneration))).toEqual(
      new Set([generation]),
    )
  })
})

describe('a pod that is ended', () => {
  const ending = { reason: 'Why', message: 'because', requestedAtMs: nowMs, graceSeconds: 30 } as const
  it.each([
    ['for its deadline, says why', { ...ending, cause: 'deadline' }, { reason: 'Why', message: 'because' }],
    ['to be deleted, does not', { ...ending, cause: 'removed' }, {}],
  ] as const)('%s', (_what, given, shown) => {
    const { status } = deriveStatus(statusFacts({ record: { ending: given } }))
    const { reason, message } = status
    expect({ ...(reason && { reason }), ...(message && { message }) }).toEqual(shown)
  })
})

describe('the resources of a pod', () => {
  const pod = { containers: [{ name: 'a', resources: { requests: { cpu: '1' } } }] }
  const blocked = { reason: 'Blocked', message: 'too much' }
  it.each([
    ['are shown before it runs', { pod }, { cpu: '1' }],
    ['are not shown while it may not start', { pod, blocked }, undefined],
    ['are shown while it runs', { pod, containers: [running('a')] }, { cpu: '1' }],
    [
      'are shown while it runs and may not be started again',
      { pod, containers: [running('a')], blocked },
      { cpu: '1' },
    ],
  ] as const satisfies readonly (readonly [string, StatusChanges, object | undefined])[])(
    '%s',
    (_what, changes, allocated) => {
      expect(deriveStatus(statusFacts(changes)).status.allocatedResources).toEqual(allocated)
    },
  )
})

it('shows a container as not started while its postStart hook runs, and the others as they are', () => {
  const { status } = deriveStatus(
    statusFacts({
      pod: { containers: ['a', 'b', 'c'] },
      containers: [running('a'), running('b'), exitedContainer('c', 1)],
      postStarts: new Set(['a-0', 'c-0']),
    }),
  )
  expect(status.containerStatuses).toMatchObject([
    { state: { waiting: { reason: 'ContainerCreating' } }, started: false },
    { state: { running: {} }, started: true },
    { state: { terminated: { exitCode: 1 } } },
  ])
})

describe('deriveStatus', () => {
  // id: gives-addresses-class-start
  it('gives addresses, class and start', () => {
    const { status } = deriveStatus(
      statusFacts({
        sandboxes: [observedSandbox({ ips: ['10.0.0.10', 'fd00::10'] })],
        record: { startedAtMs: bornMs + 1234 },
      }),
    )
    expect(status).toMatchObject({
      phase: 'Pending',
      hostIP: '192.168.1.2',
      hostIPs: [{ ip: '192.168.1.2' }, { ip: 'fd00::2' }],
      podIP: '10.0.0.10',
      podIPs: [{ ip: '10.0.0.10' }, { ip: 'fd00::10' }],
      startTime: '2026-01-01T00:00:01Z',
      qosClass: 'BestEffort',
    })
    expect(status).not.toHaveProperty('initContainerStatuses')
    expect(status).not.toHaveProperty('ephemeralContainerStatuses')
    expect(status).not.toHaveProperty('reason')
  })

  // id: gives-addresses-host-pod
  it('gives the addresses of the host to a pod on its network', () => {
    const { status } = deriveStatus(
      statusFacts({
        pod: { spec: { hostNetwork: true } },
        sandboxes: [observedSandbox({ ips: [], hostNetwork: true })],
      }),
    )
    expect(status.podIPs).toEqual([{ ip: '192.168.1.2' }, { ip: 'fd00::2' }])
  })

  // id: gives-no-address-where
  it('gives no address where there is none', () => {
    const { status } = deriveStatus(statusFacts({ sandboxes: [], hostIps: [] }))
    expect(status).not.toHaveProperty('podIP')
    expect(status).not.toHaveProperty('hostIP')
  })

  it('keeps the addresses that it had while no sandbox is ready', () => {
    const record = { podIps: ['10.0.0.9'] }
    const shown = (changes: StatusChanges) => {
      const { status, recordChange } = deriveStatus(statusFacts({ record, ...changes }))
      return [status.podIP, recordChange?.podIps ?? record.podIps]
    }
    expect(shown({ sandboxes: [deadSandbox] })).toEqual(['10.0.0.9', ['10.0.0.9']])
    expect(shown({ sandboxes: [] })).toEqual(['10.0.0.9', ['10.0.0.9']])
    expect(shown({})).toEqual(['10.0.0.10', ['10.0.0.10']])
    expect(shown({ sandboxes: [observedSandbox({ ips: [] })] })).toEqual([undefined, []])
    expect(shown({ record: {} })).toEqual(['10.0.0.10', ['10.0.0.10']])
    const same = { podIps: ['10.0.0.10'] }
    expect(deriveStatus(statusFacts({ record: same })).recordChange).not.toHaveProperty('podIps')
    const onHost = deriveStatus(statusFacts({ pod: { spec: { hostNetwork: true } } }))
    expect(onHost.recordChange).not.toHaveProperty('podIps')
  })

  // id: says-why-pod-may
  it('says why a pod may not run for now, as long as it is Pending', () => {
    const blocked = { reason: 'Blocked', message: 'host port 80/TCP is held by pod default/other' }
    expect(deriveStatus(statusFacts({ sandboxes: [], blocked })).status).toMatchObject({
      phase: 'Pending',
      ...blocked,
    })
    const runs = deriveStatus(
      statusFacts({ pod: { containers: ['a'] }, containers: [running('a')], blocked }),
    ).status
    expect(runs.phase).toBe('Running')
    expect(runs).not.toHaveProperty('reason')
  })

  it.each([
    ['is Pending while it runs', { containers: [running('a')] }, 'Pending'],
    ['has succeeded where it has', { containers: done }, 'Succeeded'],
  ])('of a pod that may not run any more says that it %s', (_what, changes, phase) => {
    const blocked = { reason: 'Forbidden', message: 'privileged', isForbidden: true }
    expect(deriveStatus(statusFacts({ pod: once, blocked, ...changes })).status.phase).toBe(phase)
  })

  const why = { reason: 'Evicted', message: 'the disk is full' }
  const evicted = { cause: 'evicted', requestedAtMs: 0, graceSeconds: 1, ...why } as const
  it.each<[what: string, record: Partial<PodRecord>, isDisrupted: boolean]>([
    ['that runs', {}, false],
    ['that is being evicted for the node', { ending: { ...evicted, until: 'pressure-ends' } }, true],
    ['that was evicted for the node', { failed: { ...why, until: 'shutdown-ends', admission: true } }, true],
    ['that was evicted for what it used itself', { failed: why }, false],
    ['that is being evicted for what it uses itself', { ending: evicted }, false],
    ['that was rejected', { failed: { ...why, admission: true } }, false],
  ])('tells of a pod %s whether the node has disrupted it', (_what, record, isDisrupted) => {
    const { conditions } = deriveStatus(statusFacts({ pod: { containers: ['a'] }, record })).status
    expect(conditions.filter(({ type }) => type === 'DisruptionTarget')).toMatchObject(
      isDisrupted ? [{ status: 'True', reason: 'TerminationByKubelet', message: 'the disk is full' }] : [],
    )
  })

  it('tells of no containers where the pod was refused before any was made', () => {
    const failed = { reason: 'OutOfcpu', message: 'too much', admission: true }
    const pod = { containers: ['a'], init: ['i'] }
    const { status } = deriveStatus(statusFacts({ pod, record: { failed } }))
    expect(status).toMatchObject({
      phase: 'Failed',
      reason: 'OutOfcpu',
      message: 'Pod was rejected: too much',
    })
    expect(Object.keys(status).filter((key) => key.endsWith('ontainerStatuses'))).toEqual([])
    const ran = deriveStatus(
      statusFacts({ pod, containers: [exitedContainer('a', 1)], record: { failed } }),
    ).status
    expect(ran.containerStatuses).toHaveLength(1)
    const known = (history: PodRecord['containers']) =>
      deriveStatus(statusFacts({ pod, record: { failed, containers: history } })).status.containerStatuses
    expect(known({ a: { ended: ended('a', 1) } })).toHaveLength(1)
    expect(known({ a: {} })).toBeUndefined()
  })

  // id: keeps-pod-failed-made
  it('keeps a pod Failed that was made so, whatever its containers say', () => {
    const failed = { reason: 'DeadlineExceeded', message: 'too long' }
    const { status } = deriveStatus(
      statusFacts({ pod: { containers: ['a'] }, containers: [running('a')], record: { failed } }),
    )
    expect(status).toMatchObject({ phase: 'Failed', ...failed })
    expect(status.conditions.find(({ type }) => type === 'Ready')).toMatchObject({
      status: 'False',
      reason: 'PodFailed',
    })
  })

  // id: keeps-pod-succeeded-runtime
  it('keeps a pod Succeeded that the runtime has forgotten', () => {
    const { status } = deriveStatus(
      statusFacts({ pod: once, sandboxes: [], history: { a: { ended: ended('a', 0) } } }),
    )
    expect(status.phase).toBe('Succeeded')
    expect(status.containerStatuses?.[0]?.state.terminated).toMatchObject({
      exitCode: 0,
      reason: 'Completed',
    })
  })

  // id: falls-back-pending-pod
  it('falls back to Pending when the pod starts from the beginning', () => {
    const { status } = deriveStatus(
      statusFacts({ sandboxes: [observedSandbox({ attempt: 1 }), deadSandbox], containers: [] }),
    )
    expect(status.phase).toBe('Pending')
    expect(status.containerStatuses?.map(({ state }) => state.waiting?.reason)).toEqual(
      Array(3).fill('ContainerCreating'),
    )
  })

  it('tells of all kinds of containers apart', () => {
    const { status } = deriveStatus(
      statusFacts({ pod: { containers: ['a'], init: ['i'], ephemeral: ['debug'] } }),
    )
    expect(status.initContainerStatuses?.map(({ name }) => name)).toEqual(['i'])
    expect(status.containerStatuses?.map(({ name }) => name)).toEqual(['a'])
    expect(status.ephemeralContainerStatuses?.map(({ name }) => name)).toEqual(['debug'])
  })
})
