import { describe, expect, it } from 'vitest'
import { computePodActions } from '../../../../src/decide/plan/compute-pod-actions.ts'
import { sandboxRetry, restartKey } from '../../../../src/decide/plan/backoff.ts'
import { hasFinished } from '../../../../src/decide/plan/progress.ts'
import { containerSpecHash } from '../../../../src/pod/values/hash.ts'
import {
  actionsOf,
  bornMs,
  deadSandbox,
  ended,
  exitedContainer,
  nowMs,
  observedContainer,
  observedSandbox,
  podFacts,
  probe,
} from '../../../support/pod-builders.ts'
import type { FactsChanges } from '../../../support/pod-builders.ts'

const running = (name: string) => observedContainer(name)
const otherImage = 'busybox:2'
const charged = { key: 'busybox:1 {"limits":{},"requests":{}}', delayMs: 80_000, updatedAtMs: nowMs - 6000 }

type Row = readonly [title: string, changes: FactsChanges, actions: readonly string[]]

const policyRows: readonly Row[] = [
  // id: leaves-pod-alone-runs
  ['leaves a pod alone that runs', {}, []],
  [
    // id: starts-everything-scratch
    'starts everything from scratch',
    { sandboxes: [], containers: [] },
    ['sandbox 0', 'start a#0', 'start b#0', 'start c#0'],
  ],
  [
    'finishes the postStart hook of an earlier podd before anything else',
    { containers: [running('a'), exitedContainer('b', 1)], postStartsDue: ['a-0', 'b-0', 'z-0'] },
    ['finish a'],
  ],
  [
    'goes on where such a container runs no more',
    { containers: [running('a'), exitedContainer('b', 1), running('c')], postStartsDue: ['b-0'] },
    ['start b#1'],
  ],
  ['starts what was never made', { containers: [running('a')] }, ['start b#0', 'start c#0']],
  [
    // id: restarts-ended-under-always
    'restarts what has ended under Always',
    { containers: [exitedContainer('a', 0), exitedContainer('b', 111), running('c')] },
    ['start a#1', 'start b#1'],
  ],
  [
    // id: restarts-failed-under-onfailure
    'restarts what has failed under OnFailure',
    {
      pod: { restartPolicy: 'OnFailure' },
      containers: [exitedContainer('a', 0), exitedContainer('b', 111), running('c')],
    },
    ['start b#1'],
  ],
  [
    // id: restarts-nothing-under-never
    'restarts nothing under Never',
    {
      pod: { restartPolicy: 'Never' },
      containers: [exitedContainer('a', 0), exitedContainer('b', 111), running('c')],
    },
    [],
  ],
  [
    // id: starts-again-made-never
    'starts again what was made and never started',
    {
      pod: { restartPolicy: 'OnFailure' },
      containers: [exitedContainer('a', 0), observedContainer('b', { state: 'created' }), running('c')],
    },
    ['remove b-0', 'start b#0'],
  ],
  [
    // id: starts-again-made-never-started
    'starts again what was made and never started under Never too',
    {
      pod: { restartPolicy: 'Never' },
      containers: [running('a'), observedContainer('b', { state: 'created' }), running('c')],
    },
    ['remove b-0', 'start b#0'],
  ],
  [
    // id: stops-container-unknown-state
    'stops a container of unknown state before its successor starts, whatever the policy',
    {
      pod: { restartPolicy: 'Never' },
      containers: [running('a'), observedContainer('b', { state: 'unknown' }), running('c')],
    },
    ['stop b unknown', 'start b#1'],
  ],
]

const sandboxRows: readonly Row[] = [
  [
    // id: makes-everything-anew-sandbox
    'recreates everything when the sandbox is dead',
    { sandboxes: [deadSandbox] },
    ['stop-pod', 'sandbox 1', 'start a#1', 'start b#1', 'start c#1'],
  ],
  [
    // id: leaves-out-succeeded-under
    'leaves out what has succeeded under OnFailure when the sandbox is dead',
    {
      pod: { restartPolicy: 'OnFailure' },
      sandboxes: [deadSandbox],
      containers: [running('a'), exitedContainer('b', 0), running('c')],
    },
    ['stop-pod', 'sandbox 1', 'start a#1', 'start c#1'],
  ],
  [
    // id: makes-everything-anew-sandbox-no
    'recreates everything when the sandbox has no address',
    { sandboxes: [observedSandbox({ ips: [] })] },
    ['stop-pod', 'sandbox 1', 'start a#1', 'start b#1', 'start c#1'],
  ],
  [
    'recreates everything when the network mode changes',
    { pod: { spec: { hostNetwork: true } } },
    ['stop-pod', 'sandbox 1', 'start a#1', 'start b#1', 'start c#1'],
  ],
  [
    'recreates everything when several sandboxes are ready',
    { sandboxes: [observedSandbox({ attempt: 1 }), observedSandbox()] },
    ['stop-pod', 'sandbox 2', 'start a#1', 'start b#1', 'start c#1'],
  ],
  [
    // id: makes-no-sandbox-pod
    'makes no sandbox for a pod that has ended under Never',
    {
      pod: { restartPolicy: 'Never' },
      sandboxes: [observedSandbox({ attempt: 1, ready: false })],
      containers: ['a', 'b', 'c'].map((name) => exitedContainer(name, 0, { sandboxId: 'sandbox-1' })),
    },
    [],
  ],
  [
    // id: makes-no-sandbox-pod-succeeded
    'makes no sandbox for a pod that has succeeded under OnFailure',
    {
      pod: { restartPolicy: 'OnFailure' },
      sandboxes: [observedSandbox({ attempt: 1, ready: false })],
      containers: ['a', 'b', 'c'].map((name) => exitedContainer(name, 0, { sandboxId: 'sandbox-1' })),
    },
    [],
  ],
  [
    'stops a pod under Never whose sandbox died while it ran',
    { pod: { restartPolicy: 'Never' }, sandboxes: [deadSandbox] },
    ['stop-pod'],
  ],
  [
    // id: makes-sandbox-under-never
    'makes a sandbox under Never when no container was ever made',
    {
      pod: { restartPolicy: 'Never' },
      sandboxes: [observedSandbox({ attempt: 2, ready: false })],
      containers: [],
    },
    ['stop-pod', 'sandbox 3', 'start a#0', 'start b#0', 'start c#0'],
  ],
  [
    'removes the sandboxes before the newest that hold nothing',
    {
      sandboxes: [observedSandbox({ attempt: 1 }), deadSandbox],
      containers: ['a', 'b', 'c'].map((name) => observedContainer(name, { sandboxId: 'sandbox-1' })),
    },
    ['remove sandbox-0'],
  ],
  [
    'waits a second between two sandboxes',
    {
      sandboxes: [observedSandbox({ ready: false, createdAtMs: nowMs - 400 })],
      containers: [],
    },
    [],
  ],
  [
    'does not wait for a sandbox that seems to be made in the future',
    {
      sandboxes: [observedSandbox({ ready: false, createdAtMs: nowMs + 400 })],
      containers: [],
    },
    ['stop-pod', 'sandbox 1', 'start a#0', 'start b#0', 'start c#0'],
  ],
]

const changeRows: readonly Row[] = [
  [
    'gets the new image before it stops a container whose image changed',
    { pod: { containers: ['a', { name: 'b', image: otherImage }, 'c'] } },
    ['fetch b'],
  ],
  [
    // id: replaces-container-image-changed
    'replaces a container whose image changed, once the new one is there',
    {
      pod: { containers: ['a', { name: 'b', image: otherImage }, 'c'] },
      imageReady: ({ image }) => image === otherImage,
    },
    ['stop b changed', 'start b#1'],
  ],
  [
    // id: replaces-container-image-changed-under
    'replaces a container whose image changed under Never too',
    {
      pod: { restartPolicy: 'Never', containers: ['a', { name: 'b', image: otherImage }, 'c'] },
      imageReady: () => true,
    },
    ['stop b changed', 'start b#1'],
  ],
  [
    'leaves a container running while its new image cannot be had',
    {
      pod: { containers: ['a', { name: 'b', image: otherImage }, 'c'] },
      retries: { b: { untilMs: nowMs + 5000, waiting: { reason: 'ImagePullBackOff', message: '' } } },
    },
    [],
  ],
  [
    'leaves a container alone whose hash it cannot read',
    {
      containers: [
        observedContainer('a', { specHash: 'v9-0123' }),
        observedContainer('b', { specHash: '' }),
        running('c'),
      ],
    },
    [],
  ],
  [
    // id: replaces-container-fails-liveness
    'replaces a container that fails its liveness probe',
    {
      pod: { containers: ['a', { name: 'b', livenessProbe: probe }, 'c'] },
      verdicts: { 'liveness b-0': 'failure' },
    },
    ['stop b liveness', 'start b#1'],
  ],
  [
    // id: replaces-container-fails-startup
    'replaces a container that fails its startup probe',
    {
      pod: { containers: ['a', { name: 'b', startupProbe: probe }, 'c'] },
      verdicts: { 'startup b-0': 'failure' },
    },
    ['stop b startup', 'start b#1'],
  ],
  [
    'only stops a container that fails its liveness probe under Never',
    {
      pod: { restartPolicy: 'Never', containers: ['a', { name: 'b', livenessProbe: probe }, 'c'] },
      verdicts: { 'liveness b-0': 'failure' },
    },
    ['stop b liveness'],
  ],
  [
    'only stops a container whose own policy is Never when it fails its liveness probe',
    {
      pod: { containers: ['a', { name: 'b', livenessProbe: probe, restartPolicy: 'Never' }, 'c'] },
      verdicts: { 'liveness b-0': 'failure' },
    },
    ['stop b liveness'],
  ],
  [
    'replaces a container whose own policy is OnFailure when it fails its liveness probe under Never',
    {
      pod: {
        restartPolicy: 'Never',
        containers: ['a', { name: 'b', livenessProbe: probe, restartPolicy: 'OnFailure' }, 'c'],
      },
      verdicts: { 'liveness b-0': 'failure' },
    },
    ['stop b liveness', 'start b#1'],
  ],
  [
    // id: replaces-container-fails-liveness-probe
    'replaces a container that fails its liveness probe while it waits for its new image',
    {
      pod: { containers: ['a', { name: 'b', image: otherImage, livenessProbe: probe }, 'c'] },
      verdicts: { 'liveness b-0': 'failure' },
    },
    ['stop b liveness', 'fetch b', 'start b#1'],
  ],
  [
    'does not heed the verdict on a probe that the container no longer has',
    { verdicts: { 'liveness b-0': 'failure', 'startup c-0': 'failure' } },
    [],
  ],
  ['does not heed a readiness probe', { verdicts: { 'readiness a-0': 'failure' } }, []],
]

const due = (...ids: readonly string[]) => ({ restartsDue: new Set(ids) })

const dueRows: readonly Row[] = [
  [
    'starts again what was stopped for a failed probe and ended well, under OnFailure',
    {
      pod: { restartPolicy: 'OnFailure', containers: ['a'] },
      containers: [exitedContainer('a', 0)],
      ...due('a-0'),
    },
    ['start a#1'],
  ],
  [
    'leaves its successor alone',
    {
      pod: { restartPolicy: 'OnFailure', containers: ['a'] },
      containers: [exitedContainer('a', 0, { restartCount: 1 }), exitedContainer('a', 0)],
      ...due('a-0'),
    },
    ['stop-pod', 'remove a-0'],
  ],
  [
    'starts again what was stopped with its sandbox and ended well, under OnFailure',
    {
      pod: { restartPolicy: 'OnFailure', containers: ['a', 'b'] },
      sandboxes: [deadSandbox],
      containers: [exitedContainer('a', 0), exitedContainer('b', 0)],
      ...due('b-0'),
    },
    ['stop-pod', 'sandbox 1', 'start b#1'],
  ],
]

describe('a container that is stopped to be started again', () => {
  it.each(dueRows)('%s', (_title, changes, actions) => {
    expect(actionsOf(computePodActions(podFacts(changes)))).toEqual(actions)
  })

  it.each([
    [
      'for a failed liveness probe',
      {
        pod: { restartPolicy: 'OnFailure', containers: ['a', { name: 'b', livenessProbe: probe }] },
        verdicts: { 'liveness b-0': 'failure' },
      },
      ['b-0'],
    ],
    [
      'for a failed startup probe, although it waits for its backoff',
      {
        pod: { restartPolicy: 'OnFailure', containers: ['a', { name: 'b', startupProbe: probe }] },
        verdicts: { 'startup b-0': 'failure' },
        history: { b: { ended: ended('b', 0, { finishedAtMs: nowMs - 1000 }), backoff: charged } },
        containers: [running('a'), observedContainer('b', { id: 'b-0', restartCount: 1 })],
      },
      ['b-0'],
    ],
    [
      'for a failed liveness probe under Never, for it does not run again',
      {
        pod: { restartPolicy: 'Never', containers: ['a', { name: 'b', livenessProbe: probe }] },
        verdicts: { 'liveness b-0': 'failure' },
      },
      [],
    ],
    [
      'of unknown state, whatever the policy',
      {
        pod: { restartPolicy: 'Never' },
        containers: [observedContainer('a', { state: 'unknown' }), running('b')],
      },
      ['a-0'],
    ],
    [
      'with its dead sandbox, but not what has ended or runs once',
      {
        pod: { containers: ['a', { name: 'b', restartPolicy: 'Never' }, 'c'], init: ['i'] },
        sandboxes: [deadSandbox],
        containers: [running('a'), running('b'), exitedContainer('c', 1), exitedContainer('i', 0)],
      },
      ['a-0'],
    ],
    [
      'with its dead sandbox, as an init container that runs once',
      {
        pod: { init: [{ name: 'i', restartPolicy: 'Never' }] },
        sandboxes: [deadSandbox],
        containers: [running('i')],
      },
      ['i-0'],
    ],
    [
      'with a sandbox that is waited for: not yet',
      { sandboxes: [{ ...deadSandbox, createdAtMs: nowMs }] },
      [],
    ],
  ] as const satisfies readonly (readonly [string, FactsChanges, readonly string[]])[])(
    'is recorded: %s',
    (_title, changes, ids) => {
      expect(computePodActions(podFacts(changes)).restartsDue ?? []).toEqual(ids)
    },
  )
})

const allGone = { sandboxes: [], containers: [] }

const finishedRows: readonly Row[] = [
  [
    // id: stops-left-pod-ended
    'stops what is left of a pod that has ended',
    { pod: { restartPolicy: 'Never' }, containers: ['a', 'b', 'c'].map((name) => exitedContainer(name, 0)) },
    ['stop-pod'],
  ],
  [
    // id: starts-nothing-finished-pod
    'starts nothing of a finished pod that the runtime has forgotten',
    {
      pod: { restartPolicy: 'OnFailure' },
      ...allGone,
      history: { a: { ended: ended('a', 0) }, b: { ended: ended('b', 0) }, c: { ended: ended('c', 0) } },
    },
    [],
  ],
  [
    'starts nothing of a failed pod that the runtime has forgotten',
    {
      pod: { restartPolicy: 'Never' },
      ...allGone,
      history: { a: { ended: ended('a', 1) }, b: { ended: ended('b', 0) }, c: { ended: ended('c', 0) } },
    },
    [],
  ],
  [
    'starts only what has not succeeded of a pod that the runtime has forgotten',
    {
      pod: { restartPolicy: 'OnFailure' },
      ...allGone,
      history: { a: { ended: ended('a', 0) }, b: { ended: ended('b', 1, { restartCount: 4 }) } },
    },
    ['sandbox 0', 'start b#5', 'start c#0'],
  ],
  [
    'believes the record when it knows a later end than the runtime',
    {
      pod: { restartPolicy: 'Never', containers: ['a'] },
      containers: [exitedContainer('a', 1)],
      sandboxes: [deadSandbox],
      history: { a: { ended: ended('a', 0, { restartCount: 3 }) } },
    },
    [],
  ],
]

describe('computePodActions', () => {
  it.each([...policyRows, ...sandboxRows, ...changeRows, ...finishedRows])(
    '%s',
    (_title, changes, actions) => {
      expect(actionsOf(computePodActions(podFacts(changes)))).toEqual(actions)
    },
  )

  it('removes the dead of each name but the newest', () => {
    const containers = [
      running('a'),
      exitedContainer('b', 1, { restartCount: 2 }),
      running('c'),
      exitedContainer('b', 1, { restartCount: 1 }),
      exitedContainer('b', 1),
    ]
    expect(actionsOf(computePodActions(podFacts({ containers })))).toEqual(['start b#3', 'remove b-1 b-0'])
  })
})

describe('a pod whose sandbox is gone', () => {
  const never = { restartPolicy: 'Never' } as const
  it.each([
    ['is lost where nothing of it runs', { containers: [exitedContainer('a', 0)] }, true],
    [
      'is lost where only its record tells that it ran',
      { containers: [], history: { a: { ended: ended('a', 0) } } },
      true,
    ],
    ['is not lost where something of it runs', {}, undefined],
    ['is not lost where nothing of it ever ran', { containers: [], history: { a: {} } }, undefined],
  ] as const satisfies readonly (readonly [string, FactsChanges, true | undefined])[])(
    '%s, under Never',
    (_title, changes, isLost) => {
      const plan = computePodActions(podFacts({ pod: never, sandboxes: [deadSandbox], ...changes }))
      expect(plan.isLost).toBe(isLost)
    },
  )

  it.each([
    ['its sandbox', { sandboxes: [deadSandbox] }, 'SandboxChanged'],
    ['its cgroup', { isCgroupRemoved: true }, 'CgroupRemoved'],
  ])('is stopped for the loss of %s', (_title, changes, reason) => {
    expect(computePodActions(podFacts(changes)).actions[0]).toEqual({ kind: 'stop-pod', reason })
  })
})

describe('a container that is condemned', () => {
  const pod = { restartPolicy: 'Never' } as const
  const condemned = ['a-0', 'c-0']

  it('is removed once it runs no more', () => {
    const containers = [exitedContainer('a', 0), exitedContainer('b', 0), running('c')]
    expect(actionsOf(computePodActions(podFacts({ pod, containers, condemned })))).toEqual(['remove a-0'])
  })

  it('stays while anything else is to be done', () => {
    const containers = [exitedContainer('a', 0), running('c')]
    expect(actionsOf(computePodActions(podFacts({ pod, containers, condemned })))).toEqual(['start b#0'])
  })
})

it('finishes the postStart hook with the spec of its own container', () => {
  const plan = computePodActions(podFacts({ postStartsDue: ['b-0'] }))
  expect(plan.actions).toMatchObject([{ kind: 'finish-post-start', spec: { name: 'b' } }])
})

describe('a plan that waits', () => {
  const waiting = { reason: 'ErrImagePull', message: 'no such host' }

  // id: says-container-waits-until
  it('says what a container waits for, and until when', () => {
    const plan = computePodActions(
      podFacts({
        containers: [running('a'), running('c')],
        retries: { b: { untilMs: nowMs + 4000, waiting } },
      }),
    )
    expect(plan).toEqual({ actions: [], wakeAtMs: nowMs + 4000, waiting: new Map([['b', waiting]]) })
  })

  it('wakes for what comes first', () => {
    const retries = { b: { untilMs: nowMs + 4000, waiting }, c: { untilMs: nowMs + 3000, waiting } }
    const plan = computePodActions(podFacts({ containers: [running('a')], retries }))
    expect(plan.wakeAtMs).toBe(nowMs + 3000)
    expect([...plan.waiting.keys()]).toEqual(['b', 'c'])
  })

  it('starts, in a sandbox that exists, all but the containers that can not be created', () => {
    const blocked = { message: 'no such class', containers: ['b'] }
    const plan = computePodActions(podFacts({ containers: [running('a')], blocked }))
    expect(actionsOf(plan)).toEqual(['start c#0'])
    expect(plan.waiting).toEqual(new Map([['b', { reason: 'Blocked', message: 'no such class' }]]))
  })

  it('tries again once the backoff is over', () => {
    const retries = { b: { untilMs: nowMs, waiting } }
    const plan = computePodActions(podFacts({ containers: [running('a'), running('c')], retries }))
    expect(actionsOf(plan)).toEqual(['start b#0'])
  })

  it('gives a backoff up that a clock set back has made endless', () => {
    const retries = { b: { untilMs: nowMs + 3_600_000, waiting } }
    const plan = computePodActions(podFacts({ containers: [running('a'), running('c')], retries }))
    expect(actionsOf(plan)).toEqual(['start b#0'])
  })

  it('starts nothing while the sandbox cannot be made', () => {
    const creating = { reason: 'ContainerCreating', message: 'no network' }
    const plan = computePodActions(
      podFacts({
        ...allGone,
        otherBackoffs: [[sandboxRetry, { untilMs: nowMs + 4000, waiting: creating }]],
      }),
    )
    expect(actionsOf(plan)).toEqual([])
    expect(plan.wakeAtMs).toBe(nowMs + 4000)
    expect(plan.waiting).toEqual(new Map(['a', 'b', 'c'].map((name) => [name, creating])))
  })

  const newImage = { containers: ['a', { name: 'b', image: otherImage }, 'c'] }

  it('starts the successor of a changed container at once, though that had crashed a moment ago', () => {
    const [, spec] = podFacts({}).pod.spec.containers
    const key = spec === undefined ? '' : restartKey(spec)
    const plan = computePodActions(
      podFacts({
        containers: [
          observedContainer('a'),
          observedContainer('b', { restartCount: 1 }),
          exitedContainer('b', 1, { finishedAtMs: nowMs - 2000 }),
          observedContainer('c'),
        ],
        history: { b: { backoff: { key, delayMs: 300_000, updatedAtMs: nowMs - 2000 } } },
        specHash: (container) => containerSpecHash(container) + (container.name === 'b' ? '.new' : ''),
        imageReady: () => true,
      }),
    )
    expect(actionsOf(plan)).toEqual(['stop b changed', 'start b#2'])
    expect(plan.waiting).toEqual(new Map())
  })

  it('stops no container whose new image is not there yet', () => {
    expect(actionsOf(computePodActions(podFacts({ pod: newImage })))).toEqual(['fetch b'])
  })

  it('fetches the new image of each container', () => {
    const containers = ['a', { name: 'b', image: otherImage }, { name: 'c', image: otherImage }]
    expect(actionsOf(computePodActions(podFacts({ pod: { containers } })))).toEqual(['fetch b', 'fetch c'])
  })

  it('does not fetch a new image that is being fetched', () => {
    const facts = podFacts({ pod: newImage })
    const { b } = facts.containerFacts
    if (b === undefined) throw new Error('no container b')
    const containerFacts = { ...facts.containerFacts, b: { ...b, isFetching: true } }
    expect(actionsOf(computePodActions({ ...facts, containerFacts }))).toEqual([])
  })

  it('stops no container whose successor would lack something', () => {
    const missingFor = (): string => 'configmap "c" not found'
    const plan = computePodActions(podFacts({ pod: newImage, imageReady: () => true, missingFor }))
    expect(actionsOf(plan)).toEqual([])
    expect(plan.blockedRestarts).toEqual(new Map([['b', 'configmap "c" not found']]))
  })

  it('says nothing of a running container that waits for its new image', () => {
    const plan = computePodActions(
      podFacts({
        pod: { containers: ['a', { name: 'b', image: otherImage }, 'c'] },
        retries: { b: { untilMs: nowMs + 4000, waiting } },
      }),
    )
    expect(plan).toEqual({
      actions: [],
      wakeAtMs: nowMs + 4000,
      waiting: new Map(),
    })
  })

  it('stops a container whose probe failed although its successor has to wait', () => {
    const facts = podFacts({
      pod: { containers: ['a', { name: 'b', livenessProbe: probe }, 'c'] },
      containers: [
        running('a'),
        observedContainer('b', { restartCount: 3, createdAtMs: nowMs - 30_000 }),
        exitedContainer('b', 137, { restartCount: 2, finishedAtMs: nowMs - 31_000 }),
        running('c'),
      ],
      verdicts: { 'liveness b-3': 'failure' },
    })
    const backoff = {
      key: 'busybox:1 {"limits":{},"requests":{}}',
      delayMs: 40_000,
      updatedAtMs: nowMs - 30_000,
    }
    const plan = computePodActions({ ...facts, history: { b: { backoff } } })
    expect(actionsOf(plan)).toEqual(['stop b liveness'])
    expect(plan.wakeAtMs).toBe(nowMs + 9000)
    expect(plan.waiting.get('b')?.reason).toBe('CrashLoopBackOff')
  })
})

describe('what a stop is told', () => {
  it.each([
    ['of a failed probe', 'Always', 'Container b failed liveness probe, will be restarted'],
    ['of a failed probe with no restart', 'Never', 'Container b failed liveness probe'],
  ] as const)('%s', (_title, restartPolicy, message) => {
    const plan = computePodActions(
      podFacts({
        pod: { restartPolicy, containers: ['a', { name: 'b', livenessProbe: probe }, 'c'] },
        verdicts: { 'liveness b-0': 'failure' },
      }),
    )
    expect(plan.actions[0]).toMatchObject({ kind: 'stop-container', message })
  })
})

describe('hasFinished', () => {
  it.each([
    ['a pod that runs', {}, false],
    [
      'a pod of which a part runs',
      { pod: { restartPolicy: 'Never' }, containers: [exitedContainer('a', 0), running('b'), running('c')] },
      false,
    ],
    [
      'a pod that is to run again',
      { pod: { containers: ['a'] }, containers: [exitedContainer('a', 0)] },
      false,
    ],
    [
      'a pod that has ended',
      { pod: { restartPolicy: 'Never', containers: ['a'] }, containers: [exitedContainer('a', 3)] },
      true,
    ],
    ['a pod that was never begun', { ...allGone }, false],
    [
      'a pod whose init container failed for good',
      { pod: { restartPolicy: 'Never', init: ['i'] }, containers: [exitedContainer('i', 1)] },
      true,
    ],
    [
      'a pod whose init container failed and is run again',
      { pod: { restartPolicy: 'OnFailure', init: ['i'] }, containers: [exitedContainer('i', 1)] },
      false,
    ],
    [
      'a pod whose init container succeeded',
      { pod: { restartPolicy: 'Never', init: ['i'] }, containers: [exitedContainer('i', 0)] },
      false,
    ],
    [
      'a pod whose container was stopped to be started again, and ended well',
      {
        pod: { restartPolicy: 'OnFailure', containers: ['a'] },
        containers: [exitedContainer('a', 0)],
        ...due('a-0'),
      },
      false,
    ],
    [
      'a pod of which only the record is left',
      {
        pod: { restartPolicy: 'Never', containers: ['a'] },
        ...allGone,
        history: { a: { ended: ended('a', 0, { finishedAtMs: bornMs }) } },
      },
      true,
    ],
  ] as const satisfies readonly (readonly [string, FactsChanges, boolean])[])(
    '%s',
    (_title, changes, finished) => {
      expect(hasFinished(podFacts(changes))).toBe(finished)
    },
  )
})
