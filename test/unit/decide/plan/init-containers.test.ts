import { describe, expect, it } from 'vitest'
import { computePodActions } from '../../../../src/decide/plan/compute-pod-actions.ts'
import {
  actionsOf,
  deadSandbox,
  ended,
  exitedContainer,
  nowMs,
  observedContainer,
  observedSandbox,
  podFacts,
  probe,
  sidecar,
} from '../../../support/pod-builders.ts'
import type { FactsChanges, PodChanges } from '../../../support/pod-builders.ts'

type Row = readonly [title: string, changes: FactsChanges, actions: readonly string[]]

const passed = ['i1', 'i2', 'i3'].map((name) => exitedContainer(name, 0))
const init: PodChanges = { init: ['i1', 'i2', 'i3'] }
const allStart = ['start a#0', 'start b#0', 'start c#0']

const onceRows: readonly Row[] = [
  // id: starts-main-containers-passed
  ['starts the main containers when all have passed', { pod: init, containers: passed }, allStart],
  [
    'runs none again beside one of several main containers, though nothing is left of them',
    { pod: init, containers: [observedContainer('a')] },
    ['start b#0', 'start c#0'],
  ],
  // id: starts-first-fresh-sandbox
  ['starts the first one of a fresh sandbox', { pod: init, containers: [] }, ['start i1#0']],
  [
    // id: starts-next-passed
    'starts the next one when one has passed',
    { pod: init, containers: [exitedContainer('i1', 0)] },
    ['start i2#0'],
  ],
  [
    // id: waits-for-the-one-that-runs
    'waits for the one that runs',
    { pod: init, containers: [observedContainer('i3'), ...passed.slice(0, 2)] },
    [],
  ],
  [
    // id: begins-first-new-sandbox
    'begins with the first one in a new sandbox',
    { pod: init, sandboxes: [deadSandbox], containers: passed },
    ['stop-pod', 'sandbox 1', 'start i1#1'],
  ],
  [
    // id: runs-them-again-new
    'runs them all again in a new sandbox',
    {
      pod: init,
      sandboxes: [observedSandbox({ attempt: 1 }), deadSandbox],
      containers: [exitedContainer('i1', 0, { restartCount: 1, sandboxId: 'sandbox-1' }), ...passed],
    },
    ['start i2#1', 'remove i1-0'],
  ],
  [
    // id: runs-failed-again-under
    'runs the one that failed again under Always',
    { pod: init, containers: [...passed.slice(0, 2), exitedContainer('i3', 137)] },
    ['start i3#1'],
  ],
  [
    // id: runs-failed-again-under-onfailure
    'runs the one that failed again under OnFailure',
    {
      pod: { ...init, restartPolicy: 'OnFailure' },
      containers: [...passed.slice(0, 2), exitedContainer('i3', 137)],
    },
    ['start i3#1'],
  ],
  [
    // id: stops-pod-fails-under
    'stops the pod when one fails under Never',
    {
      pod: { ...init, restartPolicy: 'Never' },
      containers: [...passed.slice(0, 2), exitedContainer('i3', 137)],
    },
    ['stop-pod'],
  ],
  [
    'stops the pod when one fails whose own policy is Never',
    { pod: { init: [{ name: 'i1', restartPolicy: 'Never' }] }, containers: [exitedContainer('i1', 1)] },
    ['stop-pod'],
  ],
  [
    'runs one again whose own policy is OnFailure under Never',
    {
      pod: { restartPolicy: 'Never', init: [{ name: 'i1', restartPolicy: 'OnFailure' }] },
      containers: [exitedContainer('i1', 1)],
    },
    ['start i1#1'],
  ],
  [
    'runs one again that was stopped for its changed image and ended well',
    {
      pod: init,
      containers: [exitedContainer('i2', 0), exitedContainer('i1', 0)],
      restartRequested: new Set(['i2-0']),
    },
    ['start i2#1'],
  ],
  [
    'runs one again that was stopped for its unknown state and ended well',
    {
      pod: { ...init, restartPolicy: 'OnFailure' },
      containers: [exitedContainer('i2', 0), exitedContainer('i1', 0)],
      restartsDue: new Set(['i2-0']),
    },
    ['start i2#1'],
  ],
  [
    // id: replaces-unknown-state-under
    'replaces one of unknown state under Always',
    { pod: init, containers: [...passed.slice(0, 2), observedContainer('i3', { state: 'unknown' })] },
    ['stop i3 unknown', 'start i3#1'],
  ],
  [
    // id: replaces-unknown-state-under-onfailure
    'replaces one of unknown state under OnFailure',
    {
      pod: { ...init, restartPolicy: 'OnFailure' },
      containers: [...passed.slice(0, 2), observedContainer('i3', { state: 'unknown' })],
    },
    ['stop i3 unknown', 'start i3#1'],
  ],
  [
    // id: stops-pod-unknown-state
    'stops the pod when one of unknown state may not run again',
    {
      pod: { ...init, restartPolicy: 'Never' },
      containers: [...passed.slice(0, 2), observedContainer('i3', { state: 'unknown' })],
    },
    ['stop-pod'],
  ],
  [
    'asks no exit code rule about one of unknown state',
    {
      pod: {
        init: [
          {
            name: 'i1',
            restartPolicy: 'Never',
            restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'NotIn', values: [0] } }],
          },
        ],
      },
      containers: [observedContainer('i1', { state: 'unknown' })],
    },
    ['stop-pod'],
  ],
  [
    // id: makes-no-new-sandbox
    'makes no new sandbox under Never once one has run',
    { pod: { ...init, restartPolicy: 'Never' }, sandboxes: [deadSandbox], containers: passed },
    [],
  ],
  [
    // id: makes-new-sandbox-under
    'makes a new sandbox under Never when none was ever made',
    { pod: { ...init, restartPolicy: 'Never' }, sandboxes: [deadSandbox], containers: [] },
    ['stop-pod', 'sandbox 1', 'start i1#0'],
  ],
  [
    // id: makes-new-sandbox-failed
    'makes a new sandbox when one failed under OnFailure',
    {
      pod: { ...init, restartPolicy: 'OnFailure' },
      sandboxes: [deadSandbox],
      containers: [...passed.slice(0, 2), exitedContainer('i3', 137)],
    },
    ['stop-pod', 'sandbox 1', 'start i1#1'],
  ],
  [
    // id: does-not-run-those
    'does not run those again whose remains are gone',
    { pod: init, containers: [observedContainer('i3')] },
    [],
  ],
  [
    // id: runs-none-again-once
    'runs none again once a main container was made',
    { pod: { ...init, containers: ['a'] }, containers: [observedContainer('a')] },
    [],
  ],
  [
    // id: starts-again-made-never
    'starts one again that was made and never started',
    { pod: init, containers: [...passed.slice(0, 2), observedContainer('i3', { state: 'created' })] },
    ['remove i3-0', 'start i3#0'],
  ],
  [
    // id: replaces-running-image-changed
    'replaces a running one whose image changed',
    {
      pod: { init: [{ name: 'i1', image: 'busybox:2' }, 'i2'] },
      containers: [observedContainer('i1')],
      imageReady: () => true,
    },
    ['stop i1 changed', 'start i1#1'],
  ],
  [
    'gets the new image before it stops a running one',
    { pod: { init: [{ name: 'i1', image: 'busybox:2' }, 'i2'] }, containers: [observedContainer('i1')] },
    ['fetch i1'],
  ],
  [
    'lets one run on whose successor would lack something',
    {
      pod: { init: [{ name: 'i1', image: 'busybox:2' }, 'i2'] },
      containers: [observedContainer('i1')],
      imageReady: () => true,
      missingFor: () => 'configmap "c" not found',
    },
    [],
  ],
]

const s1 = sidecar('s1')
const s2 = sidecar('s2', { livenessProbe: probe, startupProbe: probe })
const s3 = sidecar('s3', { livenessProbe: probe, startupProbe: probe })
const sidecars: PodChanges = { init: [s1, s2, s3] }
const [r1, r2, r3] = [observedContainer('s1'), observedContainer('s2'), observedContainer('s3')]
const started = { 'startup s2-0': 'success', 'startup s3-0': 'success' } as const
const mains = ['a', 'b', 'c'].map((name) => observedContainer(name))
const failed3 = exitedContainer('s3', 137)

const sidecarRows: readonly Row[] = [
  [
    // id: starts-main-containers-once
    'starts the main containers once the sidecars have started',
    { pod: sidecars, containers: [r1, r2, r3], verdicts: started },
    allStart,
  ],
  // id: starts-first-sidecar-fresh
  ['starts the first sidecar of a fresh sandbox', { pod: sidecars, containers: [] }, ['start s1#0']],
  [
    // id: starts-sidecar-again-made
    'starts a sidecar again that was made and never started',
    { pod: sidecars, containers: [r1, r2, observedContainer('s3', { state: 'created' })], verdicts: started },
    ['remove s3-0', 'start s3#0'],
  ],
  // id: starts-follows-sidecar-started
  ['starts what follows a sidecar that has started', { pod: sidecars, containers: [r1] }, ['start s2#0']],
  [
    // id: does-not-wait-liveness
    'does not wait for the liveness of a sidecar',
    { pod: sidecars, containers: [r1, r2], verdicts: started },
    ['start s3#0'],
  ],
  // id: waits-startup-probe-sidecar
  ['waits for the startup probe of a sidecar that has not run', { pod: sidecars, containers: [r1, r2] }, []],
  [
    // id: waits-startup-probe-sidecar-under
    'waits for the startup probe of a sidecar that is still starting',
    { pod: sidecars, containers: [r1, r2], verdicts: { 'startup s2-0': 'unknown' } },
    [],
  ],
  [
    'starts no sidecar again beside main containers that are stopped for good',
    {
      pod: {
        restartPolicy: 'Never',
        init: [sidecar('s1')],
        containers: [{ name: 'a', livenessProbe: probe }, 'b'],
      },
      containers: [exitedContainer('s1', 1), observedContainer('a'), exitedContainer('b', 0)],
      verdicts: { 'liveness a-0': 'failure' },
    },
    ['stop a liveness'],
  ],
  [
    'starts a sidecar again beside a main container that goes on',
    {
      pod: {
        restartPolicy: 'Never',
        init: [sidecar('s1')],
        containers: [{ name: 'a', livenessProbe: probe }, 'b'],
      },
      containers: [exitedContainer('s1', 1), observedContainer('a'), observedContainer('b')],
      verdicts: { 'liveness a-0': 'failure' },
    },
    ['stop a liveness', 'start s1#1'],
  ],
  [
    'starts no sidecar in a new sandbox for main containers that have succeeded under OnFailure',
    {
      pod: { restartPolicy: 'OnFailure', init: [sidecar('s1')], containers: ['a', 'b'] },
      sandboxes: [deadSandbox],
      containers: [observedContainer('s1'), exitedContainer('a', 0), exitedContainer('b', 0)],
    },
    ['stop-pod'],
  ],
  [
    // id: replaces-sidecar-fails-liveness
    'replaces a sidecar that fails its liveness probe, and holds nothing up for it',
    { pod: sidecars, containers: [r1, r2, r3], verdicts: { ...started, 'liveness s3-0': 'failure' } },
    ['stop s3 liveness', 'start s3#1', ...allStart],
  ],
  [
    // id: replaces-sidecar-fails-startup
    'replaces a sidecar that fails its startup probe, and holds up what follows',
    { pod: sidecars, containers: [r1, r2, r3], verdicts: { ...started, 'startup s3-0': 'failure' } },
    ['stop s3 startup', 'start s3#1'],
  ],
  [
    // id: replaces-sidecar-image-changed
    'replaces a sidecar whose image changed, and holds nothing up for it',
    {
      pod: { init: [s1, s2, sidecar('s3', { image: 'busybox:2' })] },
      containers: [r1, r2, r3],
      verdicts: started,
      imageReady: () => true,
    },
    ['stop s3 changed', 'start s3#1', ...allStart],
  ],
  [
    'replaces one whose image changed before it has started up, and holds up what follows',
    {
      pod: { init: [s1, sidecar('s2', { image: 'busybox:2', startupProbe: probe }), s3] },
      containers: [r1, r2],
      imageReady: () => true,
    },
    ['stop s2 changed', 'start s2#1'],
  ],
  [
    'gets the new image of one that has not started up',
    {
      pod: { init: [s1, sidecar('s2', { image: 'busybox:2', startupProbe: probe }), s3] },
      containers: [r1, r2],
    },
    ['fetch s2'],
  ],
  [
    // id: gets-new-image-before
    'gets the new image before it stops a sidecar whose image changed',
    { pod: { init: [sidecar('s1', { image: 'busybox:2' })] }, containers: [r1, ...mains] },
    ['fetch s1'],
  ],
  [
    // id: replaces-sidecar-fails-liveness-probe
    'replaces a sidecar that fails its liveness probe while it waits for its new image',
    {
      pod: { init: [sidecar('s1', { image: 'busybox:2', livenessProbe: probe })] },
      containers: [r1, ...mains],
      verdicts: { 'liveness s1-0': 'failure' },
    },
    ['stop s1 liveness', 'fetch s1', 'start s1#1'],
  ],
  [
    // id: restarts-sidecars-ended-before
    'restarts sidecars that ended before the one it has come to',
    {
      pod: sidecars,
      containers: [exitedContainer('s1', 0), r2, exitedContainer('s3', 0)],
      verdicts: started,
    },
    ['start s1#1', 'start s3#1'],
  ],
  [
    // id: restarts-sidecar-ended-starts
    'restarts a sidecar that ended and starts the main containers',
    { pod: sidecars, containers: [exitedContainer('s1', 0), r2, r3], verdicts: started },
    ['start s1#1', ...allStart],
  ],
  [
    // id: makes-no-new-sandbox-under
    'makes no new sandbox under Never once a sidecar has run',
    { pod: { ...sidecars, restartPolicy: 'Never' }, sandboxes: [deadSandbox], containers: [r1, r2, failed3] },
    ['stop-pod'],
  ],
  [
    // id: makes-new-sandbox-under-never
    'makes a new sandbox under Never when no sidecar was ever made',
    { pod: { ...sidecars, restartPolicy: 'Never' }, sandboxes: [deadSandbox], containers: [] },
    ['stop-pod', 'sandbox 1', 'start s1#0'],
  ],
  [
    // id: makes-new-sandbox-sidecar
    'makes a new sandbox when a sidecar failed under OnFailure',
    {
      pod: { ...sidecars, restartPolicy: 'OnFailure' },
      sandboxes: [deadSandbox],
      containers: [r1, r2, failed3],
    },
    ['stop-pod', 'sandbox 1', 'start s1#1'],
  ],
  [
    // id: makes-new-sandbox-sidecar-failed
    'makes a new sandbox when a sidecar failed under Always',
    { pod: sidecars, sandboxes: [deadSandbox], containers: [r1, r2, failed3] },
    ['stop-pod', 'sandbox 1', 'start s1#1'],
  ],
  [
    // id: restarts-sidecar-failed-although
    'restarts a sidecar that failed although the pod runs once',
    { pod: { ...sidecars, restartPolicy: 'Never' }, containers: [r1, r2, failed3], verdicts: started },
    ['start s3#1'],
  ],
  [
    // id: replaces-sidecar-unknown-state
    'replaces a sidecar of unknown state although the pod runs once',
    {
      pod: { ...sidecars, restartPolicy: 'Never' },
      containers: [r1, r2, observedContainer('s3', { state: 'unknown' })],
      verdicts: started,
    },
    ['stop s3 unknown', 'start s3#1'],
  ],
  [
    // id: restarts-sidecar-beside-running
    'restarts a sidecar beside running main containers although the pod runs once',
    {
      pod: { ...sidecars, restartPolicy: 'Never' },
      containers: [r1, r2, failed3, ...mains],
      verdicts: started,
    },
    ['start s3#1'],
  ],
  [
    // id: stops-sidecars-once-main
    'stops the sidecars once the main containers have ended',
    {
      pod: { ...sidecars, restartPolicy: 'Never' },
      containers: [r1, r2, r3, ...['a', 'b', 'c'].map((name) => exitedContainer(name, 0))],
      verdicts: started,
    },
    ['stop-pod'],
  ],
  [
    'restarts no sidecar once the main containers have ended',
    {
      pod: { ...sidecars, restartPolicy: 'Never' },
      sandboxes: [deadSandbox],
      containers: [failed3, ...['a', 'b', 'c'].map((name) => exitedContainer(name, 0))],
    },
    [],
  ],
  [
    // id: restarts-sidecars-remains-gone
    'restarts sidecars whose remains are gone',
    { pod: sidecars, containers: [r3], verdicts: started },
    ['start s1#0', 'start s2#0', ...allStart],
  ],
  [
    // id: starts-sidecar-anew-new
    'starts a sidecar again in a new sandbox',
    {
      pod: { init: [s1], containers: ['a'] },
      sandboxes: [observedSandbox({ attempt: 1 }), deadSandbox],
      containers: [exitedContainer('s1', 137), exitedContainer('a', 137)],
    },
    ['start s1#1'],
  ],
  [
    'starts what follows a sidecar in a backoff that came after its turn',
    {
      pod: { init: [s1, 'i2'] },
      containers: [exitedContainer('s1', 1, { finishedAtMs: nowMs - 1000 }), exitedContainer('i2', 0)],
      history: {
        s1: {
          backoff: {
            key: 'busybox:1 {"limits":{},"requests":{}}',
            delayMs: 40_000,
            updatedAtMs: nowMs - 5000,
          },
        },
      },
    },
    allStart,
  ],
]

const ephemeral: PodChanges = { restartPolicy: 'Always', init: ['i1'], ephemeral: ['debug'] }
const debug = observedContainer('debug')
const steady = [...mains, exitedContainer('i1', 0)]

const ephemeralRows: readonly Row[] = [
  // id: leaves-ephemeral-container-alone
  ['leaves an ephemeral container alone', { pod: ephemeral, containers: [debug, ...steady] }, []],
  [
    // id: starts-ephemeral-container-beside
    'starts an ephemeral container beside the others',
    { pod: ephemeral, containers: steady },
    ['start debug#0'],
  ],
  [
    // id: starts-second-ephemeral-container
    'starts a second ephemeral container',
    { pod: { ...ephemeral, ephemeral: ['debug', 'debug2'] }, containers: [debug, ...steady] },
    ['start debug2#0'],
  ],
  [
    // id: never-restarts-ephemeral-container
    'never restarts an ephemeral container',
    { pod: ephemeral, containers: [exitedContainer('debug', 1), ...steady] },
    [],
  ],
  [
    'never restarts an ephemeral container that the runtime has forgotten',
    { pod: ephemeral, containers: steady, history: { debug: { ended: ended('debug', 0) } } },
    [],
  ],
  [
    // id: starts-ephemeral-container-init
    'starts an ephemeral container while an init container runs',
    { pod: ephemeral, containers: [observedContainer('i1')] },
    ['start debug#0'],
  ],
  [
    'starts an ephemeral container before the init containers',
    { pod: ephemeral, containers: [] },
    ['start debug#0', 'start i1#0'],
  ],
  [
    // id: makes-new-sandbox-failed-init
    'makes a new sandbox for a failed init container and starts no ephemeral container in it yet',
    {
      pod: { ...ephemeral, restartPolicy: 'OnFailure' },
      sandboxes: [deadSandbox],
      containers: [exitedContainer('i1', 137), debug],
    },
    ['stop-pod', 'sandbox 1', 'start i1#1'],
  ],
  [
    // id: does-not-restart-ephemeral
    'does not restart an ephemeral container in a new sandbox',
    {
      pod: ephemeral,
      sandboxes: [observedSandbox({ attempt: 1 }), deadSandbox],
      containers: [exitedContainer('debug', 137), exitedContainer('i1', 0, { sandboxId: 'sandbox-1' })],
    },
    allStart,
  ],
  [
    // id: stops-pod-only-ephemeral
    'stops a pod of which only an ephemeral container runs',
    {
      pod: { ...ephemeral, restartPolicy: 'Never' },
      containers: [debug, ...['i1', 'a', 'b', 'c'].map((name) => exitedContainer(name, 0))],
    },
    ['stop-pod'],
  ],
  [
    // id: leaves-ephemeral-container-unknown
    'leaves an ephemeral container of unknown state alone',
    {
      pod: { ...ephemeral, restartPolicy: 'Never' },
      containers: [observedContainer('debug', { state: 'unknown' }), ...steady],
    },
    [],
  ],
  [
    'starts no ephemeral container in a pod that is over',
    {
      pod: { ...ephemeral, restartPolicy: 'Never' },
      containers: [observedContainer('i1', { state: 'unknown' })],
    },
    ['stop-pod'],
  ],
]

describe('init containers', () => {
  it.each(onceRows)('%s', (_title, changes, actions) => {
    expect(actionsOf(computePodActions(podFacts(changes)))).toEqual(actions)
  })
})

describe('sidecars', () => {
  it.each(sidecarRows)('%s', (_title, changes, actions) => {
    expect(actionsOf(computePodActions(podFacts(changes)))).toEqual(actions)
  })
})

describe('ephemeral containers', () => {
  it.each(ephemeralRows)('%s', (_title, changes, actions) => {
    expect(actionsOf(computePodActions(podFacts(changes)))).toEqual(actions)
  })

  it('are started as such', () => {
    const { actions } = computePodActions(podFacts({ pod: ephemeral, containers: [] }))
    expect(actions).toMatchObject([{ role: 'ephemeral' }, { role: 'init' }])
  })
})
