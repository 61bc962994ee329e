import { describe, expect, it } from 'vitest'
import { computePodActions } from '../../../../src/decide/plan/compute-pod-actions.ts'
import { hasFinished } from '../../../../src/decide/plan/progress.ts'
import { isReset, selectOpenRestarts, selectRestarts } from '../../../../src/decide/plan/restart-request.ts'
import { deriveStatus } from '../../../../src/decide/status/derive-status.ts'
import {
  actionsOf,
  ended,
  exitedContainer,
  makePod,
  nowMs,
  observedContainer,
  observedPod,
  podFacts,
  podRecord,
  probe,
  probeVerdicts,
  sidecar,
} from '../../../support/pod-builders.ts'
import type { FactsChanges } from '../../../support/pod-builders.ts'

const running = (name: string) => observedContainer(name)
const allRun = ['a', 'b', 'c'].map((name) => running(name))
const charged = { key: 'busybox:1 {"limits":{},"requests":{}}', delayMs: 80_000, updatedAtMs: nowMs - 6000 }

function requested(...ids: readonly string[]): FactsChanges {
  return { restartRequested: new Set(ids), imageReady: () => true }
}

type Row = readonly [title: string, changes: FactsChanges, actions: readonly string[]]

const rows: readonly Row[] = [
  ['stops and starts a container', requested('b-0'), ['stop b requested', 'start b#1']],
  [
    'stops all before it starts any',
    requested('a-0', 'c-0'),
    ['stop a requested', 'stop c requested', 'start a#1', 'start c#1'],
  ],
  ['has the image before it stops anything', { ...requested('b-0'), imageReady: () => false }, ['fetch b']],
  [
    'lets a container run whose image cannot be had',
    {
      ...requested('b-0'),
      imageReady: () => false,
      retries: { b: { untilMs: nowMs + 5000, waiting: { reason: 'ImagePullBackOff', message: '' } } },
    },
    [],
  ],
  [
    'knows that its successor is not meant',
    {
      ...requested('a-0'),
      containers: [observedContainer('a', { restartCount: 1 }), running('b'), running('c')],
    },
    [],
  ],
  [
    'starts a container again under Never',
    { ...requested('b-0'), pod: { restartPolicy: 'Never' } },
    ['stop b requested', 'start b#1'],
  ],
  [
    'starts a container that has ended under Never',
    {
      ...requested('b-0'),
      pod: { restartPolicy: 'Never' },
      containers: [running('a'), exitedContainer('b', 0), running('c')],
    },
    ['start b#1'],
  ],
  [
    'does not wait for the crash backoff',
    {
      ...requested('b-0'),
      containers: [running('a'), exitedContainer('b', 1, { finishedAtMs: nowMs - 1000 }), running('c')],
      history: { b: { backoff: charged } },
    },
    ['start b#1'],
  ],
  [
    'starts one whose remains are gone',
    {
      ...requested('b-3'),
      pod: { restartPolicy: 'OnFailure' },
      containers: [running('a'), running('c')],
      history: { b: { ended: ended('b', 0, { restartCount: 3 }) } },
    },
    ['start b#4'],
  ],
  [
    'restarts a sidecar beside what came after it',
    { ...requested('s-0'), pod: { init: [sidecar('s')] }, containers: [running('s'), ...allRun] },
    ['stop s requested', 'start s#1'],
  ],
  [
    'restarts a sidecar that has not started yet',
    {
      ...requested('s-0'),
      pod: { init: [sidecar('s', { startupProbe: probe })] },
      containers: [running('s')],
    },
    ['stop s requested', 'start s#1'],
  ],
  [
    'starts a failed init container at once',
    {
      ...requested('i-0'),
      pod: { init: ['i'] },
      containers: [exitedContainer('i', 1, { finishedAtMs: nowMs - 1000 })],
      history: { i: { backoff: charged } },
    },
    ['start i#1'],
  ],
]

describe('a restart on request', () => {
  it.each(rows)('%s', (_title, changes, actions) => {
    expect(actionsOf(computePodActions(podFacts(changes)))).toEqual(actions)
  })

  it('charges no backoff', () => {
    const history = { b: { backoff: charged } }
    const plan = computePodActions(podFacts({ ...requested('b-0'), history }))
    expect(plan.actions).toContainEqual(
      expect.objectContaining({ kind: 'start-container', backoff: charged }),
    )
  })

  it('is told as an event tells it', () => {
    const [stop] = computePodActions(podFacts(requested('b-0'))).actions
    expect(stop).toMatchObject({ message: 'Container b is restarted on request' })
  })

  it('keeps a pod from being over between its old container and its new one', () => {
    const changes = {
      pod: { restartPolicy: 'Never' as const, containers: ['a'] },
      containers: [exitedContainer('a', 143)],
    }
    expect(hasFinished(podFacts(changes))).toBe(true)
    expect(hasFinished(podFacts({ ...changes, restartRequested: new Set(['a-0']) }))).toBe(false)
    const { pod, observed } = podFacts(changes)
    const phase = (restartRequested?: readonly string[]): string =>
      deriveStatus({
        pod,
        observed,
        record: podRecord({ restartRequested }),
        probes: probeVerdicts({}),
        waiting: new Map(),
        blocked: undefined,
        runtimeName: 'containerd',
        hostIps: [],
        nowMs,
        clock: { wallMs: nowMs, uptimeMs: 0 },
      }).status.phase
    expect(phase()).toBe('Failed')
    expect(phase(['a-0'])).toBe('Running')
  })
})

describe('which containers a restart is about', () => {
  const pod = makePod({ init: ['setup', sidecar('proxy')], containers: ['web', 'cache'] })
  const facts = (containers: readonly ReturnType<typeof observedContainer>[]) => ({
    pod,
    observed: observedPod({ containers }),
    history: {},
  })
  const all = facts([exitedContainer('setup', 0), running('proxy'), running('web'), running('cache')])

  it('is all but init containers that are through', () => {
    expect(selectRestarts(all, undefined)).toEqual({
      names: ['proxy', 'web', 'cache'],
      ids: ['proxy-0', 'web-0', 'cache-0'],
    })
  })

  it('is those that are named', () => {
    expect(selectRestarts(all, ['cache'])).toEqual({ names: ['cache'], ids: ['cache-0'] })
  })

  it('is the init container that has failed and waits', () => {
    const failed = facts([exitedContainer('setup', 1)])
    expect(selectRestarts(failed, undefined)).toMatchObject({
      names: ['setup', 'proxy', 'web', 'cache'],
      ids: ['setup-0'],
    })
  })

  it.each([
    ['setup', 'runs-once'],
    ['nobody', 'unknown'],
  ])('is never %s: %s', (name, why) => {
    expect(selectRestarts(all, ['web', name])).toEqual({ refused: name, why })
  })

  it('is done when the container has a successor, or its pod has none of that name any more', () => {
    const now = facts([
      observedContainer('web', { restartCount: 1 }),
      exitedContainer('web', 143),
      exitedContainer('cache', 143),
    ])
    expect(selectOpenRestarts(now, ['web-0', 'cache-0', 'gone-0'])).toEqual(['cache-0'])
  })

  it('is not done while its successor was only created: that may be removed again', () => {
    const now = facts([
      observedContainer('web', { restartCount: 1, state: 'created' }),
      exitedContainer('web', 143),
    ])
    expect(selectOpenRestarts(now, ['web-0'])).toEqual(['web-0'])
  })
})

describe('isReset', () => {
  const all = new Set(['a-0'])
  const live = (state: 'created' | 'running', restartCount = 0) =>
    ({ kind: 'live', container: observedContainer('a', { state, restartCount }) }) as const
  const over = (restartCount: number) =>
    ({ kind: 'ended', end: ended('a', 1, { restartCount }), container: undefined }) as const

  it.each([
    ['one that was created and never started', live('created'), true],
    ['one that runs', live('running'), false],
    ['one that was created since', live('created', 1), false],
    ['one that is over', over(0), true],
    ['one that was made and ended since', over(1), false],
    ['none', { kind: 'none' } as const, false],
  ])('of a restart of all is %s: %#', (_which, view, expected) => {
    expect(isReset(all, view)).toBe(expected)
    expect(isReset(undefined, view)).toBe(false)
  })
})
