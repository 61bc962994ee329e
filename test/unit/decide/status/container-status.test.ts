import { describe, expect, it } from 'vitest'
import { deriveContainerStatus } from '../../../../src/decide/status/derive-container-status.ts'
import type { ContainerStatus } from '../../../../src/pod/state/status.ts'
import {
  bornMs,
  ended,
  exitedContainer,
  observedContainer,
  probe,
  sidecar,
  statusFacts,
} from '../../../support/pod-builders.ts'
import type { StatusChanges } from '../../../support/pod-builders.ts'

/** The status of the pod's first container of that role, or of its last init container. */
function statusOf(
  changes: StatusChanges,
  which: 'init' | 'last init' | 'main' | 'ephemeral' = 'main',
): ContainerStatus {
  const facts = statusFacts({ pod: { containers: ['a'] }, ...changes })
  const { initContainers, containers, ephemeralContainers } = facts.pod.spec
  const role = which === 'last init' ? 'init' : which
  const list = { init: initContainers, main: containers, ephemeral: ephemeralContainers }[role]
  const spec = list.at(which === 'last init' ? -1 : 0)
  if (spec === undefined) throw new Error(`no ${role} container`)
  return deriveContainerStatus(facts, spec, role)
}

const terminated = (exitCode: number, restartCount = 0) => ({
  exitCode,
  reason: exitCode === 0 ? 'Completed' : 'Error',
  startedAt: '2026-01-01T00:00:00Z',
  finishedAt: '2026-01-01T00:00:05Z',
  containerID: `containerd://a-${restartCount}`,
})
const backoff = { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container=a' }

describe('a container that has not been made', () => {
  // id: is-being-created
  it('is being created', () => {
    expect(statusOf({})).toEqual({
      name: 'a',
      state: { waiting: { reason: 'ContainerCreating' } },
      lastState: {},
      ready: false,
      restartCount: 0,
      image: 'busybox:1',
      imageID: '',
      started: false,
    })
  })

  it('tells how far the pull of its image is, also while it is tried again', () => {
    const pulling = new Map([['a', 'pulling image "app:1": 1.0 MiB of 3.0 MiB']])
    const message = 'pulling image "app:1": 1.0 MiB of 3.0 MiB'
    expect(statusOf({ pulling }).state).toEqual({ waiting: { reason: 'ContainerCreating', message } })
    const failed = { a: { reason: 'ImagePullBackOff', message: 'Back-off' } }
    expect(statusOf({ pulling, waiting: failed }).state).toEqual({
      waiting: { reason: 'ImagePullBackOff', message },
    })
    const crashed = { a: backoff }
    expect(statusOf({ pulling, waiting: crashed }).state).toEqual({ waiting: backoff })
  })

  it.each(['init', 'main', 'ephemeral'] as const)(
    'of a pod with init containers waits for the pod: %s',
    (role) => {
      const pod = { containers: ['a'], init: ['i'], ephemeral: ['debug'] }
      expect(statusOf({ pod }, role).state).toEqual({ waiting: { reason: 'PodInitializing' } })
    },
  )

  it('says what podd knows of the reason', () => {
    const waiting = { a: { reason: 'ErrImagePull', message: 'no such host' } }
    expect(statusOf({ waiting }).state).toEqual({ waiting: waiting.a })
  })
})

describe('a container that runs', () => {
  // id: has-started-and-is-ready
  it('has started and is ready', () => {
    expect(statusOf({ containers: [observedContainer('a')] })).toEqual({
      name: 'a',
      state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
      lastState: {},
      ready: true,
      restartCount: 0,
      image: 'busybox:1',
      imageID: 'sha256:1',
      containerID: 'containerd://a-0',
      started: true,
      resources: {},
    })
  })

  it.each([
    // id: before-startup-probe-passed
    ['before its startup probe has passed', { startupProbe: probe }, {}, false, false],
    // id: startup-probe-passed
    ['when its startup probe has passed', { startupProbe: probe }, { 'startup a-0': 'success' }, true, true],
    ['before its readiness probe has passed', { readinessProbe: probe }, {}, true, false],
    [
      // id: readiness-probe-passed
      'when its readiness probe has passed',
      { readinessProbe: probe },
      { 'readiness a-0': 'success' },
      true,
      true,
    ],
    [
      // id: readiness-probe-fails
      'when its readiness probe fails',
      { readinessProbe: probe },
      { 'readiness a-0': 'failure' },
      true,
      false,
    ],
    [
      'when its readiness probe passed before it started up',
      { readinessProbe: probe, startupProbe: probe },
      { 'readiness a-0': 'success' },
      false,
      false,
    ],
    [
      'when the verdict is about another container',
      { readinessProbe: probe },
      { 'readiness a-7': 'success' },
      true,
      false,
    ],
    ['when its liveness probe fails', { livenessProbe: probe }, { 'liveness a-0': 'failure' }, true, true],
  ] as const)('%s', (_title, fields, verdicts, started, ready) => {
    const pod = { containers: [{ name: 'a', ...fields }] }
    expect(statusOf({ pod, verdicts, containers: [observedContainer('a')] })).toMatchObject({
      started,
      ready,
    })
  })

  it('shows how the one before it ended', () => {
    const status = statusOf({
      containers: [observedContainer('a', { restartCount: 1 }), exitedContainer('a', 1)],
      history: { a: { ended: ended('a', 1) } },
    })
    expect(status).toMatchObject({ restartCount: 1, lastState: { terminated: terminated(1) } })
  })

  it('shows that also where the record does not tell of it yet', () => {
    const containers = [observedContainer('a', { restartCount: 1 }), exitedContainer('a', 7)]
    const status = statusOf({ containers })
    expect(status).toMatchObject({ restartCount: 1, lastState: { terminated: { exitCode: 7 } } })
  })

  it('does not say that it waits', () => {
    const status = statusOf({ containers: [observedContainer('a')], waiting: { a: backoff } })
    expect(status.state).toHaveProperty('running')
  })
})

describe('a container that has ended', () => {
  // id: says-how
  it('says how', () => {
    const status = statusOf({
      containers: [exitedContainer('a', 3)],
      history: { a: { ended: ended('a', 3) } },
    })
    expect(status).toMatchObject({
      state: { terminated: terminated(3) },
      lastState: {},
      ready: false,
      started: false,
    })
  })

  it('shows its message and its reason', () => {
    const end = ended('a', 137, { reason: 'OOMKilled', message: 'last words' })
    const status = statusOf({ containers: [exitedContainer('a', 137)], history: { a: { ended: end } } })
    expect(status.state.terminated).toMatchObject({ reason: 'OOMKilled', message: 'last words' })
  })

  it.each<[containers: number, inits: number, bytes: number]>([
    [1, 0, 4096],
    [3, 0, 4096],
    [3, 1, 3072],
    [5, 2, 1754],
  ])('shares 12 KiB for messages with the others of its pod: %d, after %d', (count, inits, bytes) => {
    const names = (prefix: string, length: number): string[] =>
      Array.from({ length }, (_, at) => (at === 0 && prefix === 'm' ? 'a' : `${prefix}${at}`))
    const end = ended('a', 1, { message: 'é'.repeat(2048) })
    const status = statusOf({
      pod: { containers: names('m', count), init: names('i', inits) },
      containers: [exitedContainer('a', 1)],
      history: { a: { ended: end } },
    })
    expect(status.state.terminated?.message).toBe('é'.repeat(bytes / 2))
  })

  it('shows the end before it, too', () => {
    const status = statusOf({
      containers: [exitedContainer('a', 0, { restartCount: 1, createdAtMs: bornMs })],
      history: { a: { ended: ended('a', 0, { restartCount: 1 }), endedBefore: ended('a', 7) } },
    })
    expect(status).toMatchObject({
      state: { terminated: terminated(0, 1) },
      lastState: { terminated: terminated(7) },
    })
  })

  it('shows the recorded end as the one before it while its own is not recorded yet', () => {
    const status = statusOf({
      containers: [exitedContainer('a', 0, { restartCount: 1, createdAtMs: bornMs })],
      history: { a: { ended: ended('a', 7), endedBefore: ended('a', 8) } },
    })
    expect(status.lastState).toEqual({ terminated: terminated(7) })
  })

  it('waits for its backoff, and shows its end as the last', () => {
    const status = statusOf({
      containers: [exitedContainer('a', 1)],
      history: { a: { ended: ended('a', 1), endedBefore: ended('a', 7) } },
      waiting: { a: backoff },
    })
    expect(status).toMatchObject({
      state: { waiting: backoff },
      lastState: { terminated: terminated(1) },
      restartCount: 0,
      containerID: 'containerd://a-0',
    })
  })

  it.each([
    ['failed for good', { failed: { reason: 'DeadlineExceeded', message: '' } }],
    [
      'is ending',
      { ending: { cause: 'removed', reason: '', message: '', requestedAtMs: bornMs, graceSeconds: 30 } },
    ],
  ] as const)('waits for nothing any more in a pod that %s', (_what, record) => {
    const status = statusOf({
      containers: [exitedContainer('a', 1)],
      history: { a: { ended: ended('a', 1), endedBefore: ended('a', 7) } },
      record: { containers: { a: { ended: ended('a', 1), endedBefore: ended('a', 7) } }, ...record },
      waiting: { a: backoff },
    })
    expect(status.state).toEqual({ terminated: terminated(1) })
    expect(status.lastState).toEqual({ terminated: terminated(7) })
  })

  it('keeps its status when the runtime has forgotten it', () => {
    const status = statusOf({ sandboxes: [], history: { a: { ended: ended('a', 1, { restartCount: 4 }) } } })
    expect(status).toMatchObject({
      state: { terminated: terminated(1, 4) },
      restartCount: 4,
      imageID: 'sha256:1',
      containerID: 'containerd://a-4',
    })
  })

  it('shows its end as the last while a new one is being made', () => {
    const status = statusOf({
      containers: [observedContainer('a', { state: 'created', restartCount: 1 }), exitedContainer('a', 1)],
      history: { a: { ended: ended('a', 1) } },
    })
    expect(status).toMatchObject({
      state: { waiting: { reason: 'ContainerCreating' } },
      lastState: { terminated: terminated(1) },
      restartCount: 1,
    })
  })
})

describe('a pod that has failed for good', () => {
  const failed = { reason: 'DeadlineExceeded', message: 'too long' }
  const lost = {
    terminated: {
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
      message: 'The container could not be located when the pod was terminated',
    },
  }

  it.each<[string, StatusChanges, Parameters<typeof statusOf>[1], object]>([
    ['a container that was not made has ended', {}, 'main', lost],
    [
      'nor does it wait for its image',
      { waiting: { a: { reason: 'ErrImagePull', message: '' } } },
      'main',
      lost,
    ],
    [
      'one that ran has its own end',
      { containers: [exitedContainer('a', 1)] },
      'main',
      { terminated: terminated(1) },
    ],
    [
      'one that was made and not started waits',
      { containers: [observedContainer('a', { state: 'created' })] },
      'main',
      { waiting: { reason: 'ContainerCreating' } },
    ],
    [
      'one beside a main container that ran has ended, although nothing is left of the init container',
      { pod: { containers: ['a', 'b'], init: ['i'] }, containers: [exitedContainer('b', 1)] },
      'main',
      lost,
    ],
    ['the first init container has ended', { pod: { containers: ['a'], init: ['i'] } }, 'init', lost],
    [
      'one after an init container that was not done waits',
      { pod: { containers: ['a'], init: ['i'] }, containers: [exitedContainer('i', 1)] },
      'main',
      { waiting: { reason: 'PodInitializing' } },
    ],
    [
      'a later init container waits for what it waited for',
      {
        pod: { containers: ['a'], init: ['i', 'b'] },
        containers: [exitedContainer('i', 0)],
        waiting: { b: { reason: 'ErrImagePull', message: 'no such host' } },
      },
      'last init',
      { waiting: { reason: 'ErrImagePull', message: 'no such host' } },
    ],
    [
      'one after a sidecar that was made and not started waits',
      {
        pod: { containers: ['a'], init: [sidecar('s')] },
        containers: [observedContainer('s', { state: 'created' })],
      },
      'main',
      { waiting: { reason: 'PodInitializing' } },
    ],
    [
      'one after those that were done has ended',
      {
        pod: { containers: ['a'], init: ['i', sidecar('s')] },
        containers: [exitedContainer('i', 0), observedContainer('s')],
      },
      'main',
      lost,
    ],
    [
      'one after a sidecar that had not started up waits',
      {
        pod: { containers: ['a'], init: [{ ...sidecar('s'), startupProbe: probe }] },
        containers: [observedContainer('s')],
      },
      'main',
      { waiting: { reason: 'PodInitializing' } },
    ],
    [
      'an ephemeral one waits',
      { pod: { containers: ['a'], ephemeral: ['debug'] } },
      'ephemeral',
      {
        waiting: { reason: 'ContainerCreating' },
      },
    ],
  ])('%s', (_title, changes, role, state) => {
    const record = { ...changes.record, failed }
    expect(statusOf({ ...changes, record }, role).state).toEqual(state)
  })
})

describe('a container of unknown state', () => {
  it('waits', () => {
    const status = statusOf({ containers: [observedContainer('a', { state: 'unknown' })] })
    expect(status).toMatchObject({
      state: { waiting: { reason: 'ContainerStatusUnknown' } },
      ready: false,
      started: false,
    })
  })
})

describe('containers of other kinds', () => {
  it.each([
    // id: init-container-runs
    ['an init container that runs', observedContainer('i'), false],
    // id: init-container-passed
    ['an init container that has passed', exitedContainer('i', 0), true],
    ['an init container that has failed', exitedContainer('i', 1), false],
  ])('%s', (_title, container, ready) => {
    expect(statusOf({ pod: { containers: ['a'], init: ['i'] }, containers: [container] }, 'init').ready).toBe(
      ready,
    )
  })

  it.each([
    // id: a-sidecar-that-runs
    ['a sidecar that runs', observedContainer('i'), true],
    ['a sidecar that has ended', exitedContainer('i', 0), false],
  ])('%s', (_title, container, ready) => {
    const pod = { containers: ['a'], init: [sidecar('i')] }
    expect(statusOf({ pod, containers: [container] }, 'init').ready).toBe(ready)
  })

  it.each([
    // id: init-container-nothing-left
    ['an init container of which nothing is left has passed where main containers run', 'i', true],
    // id: sidecar-nothing-left-waits
    ['a sidecar of which nothing is left waits', sidecar('i'), false],
  ])('%s', (_title, init, passed) => {
    const pod = { containers: ['a'], init: [init] }
    const { state, ready } = statusOf({ pod, containers: [observedContainer('a')] }, 'init')
    expect({ passed: state.terminated?.reason === 'Completed', ready }).toEqual({ passed, ready: passed })
    expect(state.waiting?.reason).toBe(passed ? undefined : 'PodInitializing')
  })

  it('an ephemeral container is never ready', () => {
    const pod = { containers: ['a'], ephemeral: ['debug'] }
    expect(statusOf({ pod, containers: [observedContainer('debug')] }, 'ephemeral')).toMatchObject({
      state: { running: {} },
      ready: false,
    })
  })
})

describe('resources', () => {
  it.each([
    // id: left-out-where-none
    ['are left out where there are none', {}, {}],
    [
      // id: are-those-of-the-spec
      'are those of the spec',
      { limits: { memory: '1Gi' }, requests: { cpu: '100m' } },
      {
        allocatedResources: { cpu: '100m', memory: '1Gi' },
        resources: { limits: { memory: '1Gi' }, requests: { cpu: '100m', memory: '1Gi' } },
      },
    ],
  ])('%s', (_title, resources, expected) => {
    const { allocatedResources, resources: shown } = statusOf({
      pod: { containers: [{ name: 'a', resources }] },
    })
    expect({ ...(allocatedResources && { allocatedResources }), ...(shown && { resources: shown }) }).toEqual(
      expected,
    )
  })
})

describe('whom a container runs as', () => {
  const user = { uid: 1000, gid: 3000, supplementalGroups: [4000] }

  it('is what the runtime says, in each state', () => {
    const shown = { linux: user }
    expect(statusOf({ containers: [observedContainer('a', { user })] }).user).toEqual(shown)
    expect(statusOf({ containers: [exitedContainer('a', 1, { user })] }).user).toEqual(shown)
    const waiting = { a: backoff }
    expect(statusOf({ containers: [exitedContainer('a', 1, { user })], waiting }).user).toEqual(shown)
    const history = { a: { ended: ended('a', 0, { user }) } }
    expect(statusOf({ history }).user).toEqual(shown)
  })

  it('is not guessed where the runtime says nothing, or there is no container yet', () => {
    const pod = { containers: [{ name: 'a', securityContext: { runAsUser: 1000, runAsGroup: 3000 } }] }
    expect(statusOf({ pod, containers: [observedContainer('a')] })).not.toHaveProperty('user')
    expect(statusOf({ pod })).not.toHaveProperty('user')
  })
})

describe('the mounts of a container', () => {
  const mount = (name: string, fields: object) => ({ name, mountPath: `/${name}`, ...fields })
  const volumeMounts = [
    mount('v', {}),
    mount('w', { readOnly: true }),
    mount('x', { readOnly: true, recursiveReadOnly: 'Disabled' }),
    mount('y', { readOnly: true, recursiveReadOnly: 'IfPossible' }),
    mount('z', { readOnly: true, recursiveReadOnly: 'Enabled' }),
  ]
  const container = { name: 'a', volumeMounts }

  it.each([
    ['init', true, 'Enabled'],
    ['main', true, 'Enabled'],
    ['ephemeral', true, 'Enabled'],
    ['main', false, 'Disabled'],
    ['main', undefined, 'Disabled'],
  ] as const)('are shown (%s), recursive as far as the runtime can: %s', (role, can, whenAsked) => {
    const pod = { containers: [container], init: [container], ephemeral: [container] }
    const facts = can === undefined ? { pod } : { pod, recursiveReadOnly: can }
    const readOnly = { readOnly: true, recursiveReadOnly: 'Disabled' }
    expect(statusOf(facts, role).volumeMounts).toEqual([
      mount('v', {}),
      mount('w', readOnly),
      mount('x', readOnly),
      mount('y', { readOnly: true, recursiveReadOnly: whenAsked }),
      mount('z', { readOnly: true, recursiveReadOnly: whenAsked }),
    ])
  })
})
