import { describe, expect, it } from 'vitest'
import { derivePhase } from '../../../../src/decide/status/derive-status.ts'
import type { PodPhase } from '../../../../src/pod/state/status.ts'
import {
  deadSandbox,
  ended,
  exitedContainer,
  observedContainer,
  observedSandbox,
  probe,
  sidecar,
  statusFacts,
} from '../../../support/pod-builders.ts'
import type { PodChanges, StatusChanges } from '../../../support/pod-builders.ts'

type Row = readonly [title: string, changes: StatusChanges, phase: PodPhase]

const running = (name: string) => observedContainer(name)
const created = (name: string, restartCount = 0) =>
  observedContainer(name, { state: 'created', restartCount })
const ok = (name: string) => exitedContainer(name, 0)
const bad = (name: string) => exitedContainer(name, 1)
const two = (restartPolicy: PodChanges['restartPolicy']): PodChanges => ({
  ...(restartPolicy && { restartPolicy }),
  containers: ['a', 'b'],
})
const backoff = {
  a: { reason: 'CrashLoopBackOff', message: '' },
  b: { reason: 'CrashLoopBackOff', message: '' },
}

const mainRows: readonly Row[] = [
  // id: always-nothing-made
  ['Always: nothing made', { pod: two('Always') }, 'Pending'],
  // id: always-all-run
  ['Always: all run', { pod: two('Always'), containers: [running('a'), running('b')] }, 'Running'],
  // id: always-all-have-ended
  ['Always: all have ended', { pod: two('Always'), containers: [ok('a'), ok('b')] }, 'Running'],
  ['Always: all have failed', { pod: two('Always'), containers: [bad('a'), bad('b')] }, 'Running'],
  // id: always-runs-ended
  ['Always: one runs, one has ended', { pod: two('Always'), containers: [running('a'), ok('b')] }, 'Running'],
  // id: always-runs-missing
  ['Always: one runs, one is missing', { pod: two('Always'), containers: [running('a')] }, 'Pending'],
  [
    // id: always-runs-made
    'Always: one runs, one was made',
    { pod: two('Always'), containers: [running('a'), created('b')] },
    'Pending',
  ],
  [
    // id: always-runs-backoff
    'Always: one runs, one is in a backoff',
    { pod: two('Always'), containers: [running('a'), bad('b')], waiting: backoff },
    'Running',
  ],
  [
    'Always: one runs, one is being recreated',
    { pod: two('Always'), containers: [running('a'), created('b', 1), bad('b')] },
    'Running',
  ],
  [
    'Always: one is being recreated',
    { pod: { containers: ['a'] }, containers: [created('a', 1), bad('a')] },
    'Running',
  ],
  [
    'Always: one is of unknown state',
    { pod: two('Always'), containers: [running('a'), observedContainer('b', { state: 'unknown' })] },
    'Pending',
  ],
  // id: never-nothing-made
  ['Never: nothing made', { pod: two('Never') }, 'Pending'],
  // id: never-all-run
  ['Never: all run', { pod: two('Never'), containers: [running('a'), running('b')] }, 'Running'],
  // id: never-all-have-succeeded
  ['Never: all have succeeded', { pod: two('Never'), containers: [ok('a'), ok('b')] }, 'Succeeded'],
  // id: never-all-have-failed
  ['Never: all have failed', { pod: two('Never'), containers: [bad('a'), bad('b')] }, 'Failed'],
  ['Never: one has failed', { pod: two('Never'), containers: [ok('a'), bad('b')] }, 'Failed'],
  [
    // id: never-runs-succeeded
    'Never: one runs, one has succeeded',
    { pod: two('Never'), containers: [running('a'), ok('b')] },
    'Running',
  ],
  // id: never-runs-missing
  ['Never: one runs, one is missing', { pod: two('Never'), containers: [running('a')] }, 'Pending'],
  [
    // id: never-runs-made
    'Never: one runs, one was made',
    { pod: two('Never'), containers: [running('a'), created('b')] },
    'Pending',
  ],
  [
    'Never: the runtime has forgotten it',
    {
      pod: two('Never'),
      sandboxes: [],
      history: { a: { ended: ended('a', 0) }, b: { ended: ended('b', 0) } },
    },
    'Succeeded',
  ],
  // id: onfailure-nothing-made
  ['OnFailure: nothing made', { pod: two('OnFailure') }, 'Pending'],
  // id: onfailure-all-run
  ['OnFailure: all run', { pod: two('OnFailure'), containers: [running('a'), running('b')] }, 'Running'],
  // id: onfailure-all-have-succeeded
  ['OnFailure: all have succeeded', { pod: two('OnFailure'), containers: [ok('a'), ok('b')] }, 'Succeeded'],
  // id: onfailure-all-have-failed
  ['OnFailure: all have failed', { pod: two('OnFailure'), containers: [bad('a'), bad('b')] }, 'Running'],
  [
    // id: onfailure-runs-succeeded
    'OnFailure: one runs, one has succeeded',
    { pod: two('OnFailure'), containers: [running('a'), ok('b')] },
    'Running',
  ],
  // id: onfailure-runs-missing
  ['OnFailure: one runs, one is missing', { pod: two('OnFailure'), containers: [running('a')] }, 'Pending'],
  [
    // id: onfailure-runs-made
    'OnFailure: one runs, one was made',
    { pod: two('OnFailure'), containers: [running('a'), created('b')] },
    'Pending',
  ],
  [
    // id: onfailure-runs-backoff
    'OnFailure: one runs, one is in a backoff',
    { pod: two('OnFailure'), containers: [running('a'), bad('b')], waiting: backoff },
    'Running',
  ],
]

const withPolicy = (a: string, b: string | undefined, restartPolicy: 'Always' | 'Never'): PodChanges => ({
  restartPolicy,
  containers: [{ name: 'a', restartPolicy: a }, b === undefined ? 'b' : { name: 'b', restartPolicy: b }],
})
const alone = (own: string, restartPolicy: 'Always' | 'Never'): PodChanges => ({
  restartPolicy,
  containers: [{ name: 'a', restartPolicy: own }],
})

const ownPolicyRows: readonly Row[] = [
  [
    // id: own-policy-never-under
    'own policy Never under Always: failed',
    { pod: alone('Never', 'Always'), containers: [bad('a')] },
    'Failed',
  ],
  [
    // id: own-policy-onfailure-under
    'own policy OnFailure under Always: failed',
    { pod: alone('OnFailure', 'Always'), containers: [bad('a')] },
    'Running',
  ],
  [
    // id: own-policy-always-under
    'own policy Always under Always: failed',
    { pod: alone('Always', 'Always'), containers: [bad('a')] },
    'Running',
  ],
  [
    // id: may-run-again-may
    'one may run again, one may not',
    { pod: withPolicy('Always', undefined, 'Never'), containers: [ok('a'), bad('b')] },
    'Running',
  ],
  [
    // id: none-may-run-again
    'none may run again, one has failed',
    { pod: withPolicy('Never', 'OnFailure', 'Always'), containers: [bad('a'), ok('b')] },
    'Failed',
  ],
  [
    // id: none-may-run-again-succeeded
    'none may run again, all have succeeded',
    { pod: withPolicy('Never', 'OnFailure', 'Always'), containers: [ok('a'), ok('b')] },
    'Succeeded',
  ],
  [
    'an exit code rule runs it again',
    {
      pod: {
        restartPolicy: 'Never',
        containers: [
          {
            name: 'a',
            restartPolicy: 'Never',
            restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }],
          },
        ],
      },
      containers: [bad('a')],
    },
    'Running',
  ],
]

const init = (restartPolicy: 'Always' | 'OnFailure' | 'Never', own?: string): PodChanges => ({
  restartPolicy,
  containers: ['a', 'b'],
  init: [own === undefined ? 'x' : { name: 'x', restartPolicy: own }],
})
const both = [running('a'), running('b')]

const initRows: readonly Row[] = [
  // id: init-always-nothing-made
  ['init, Always: nothing made', { pod: init('Always') }, 'Pending'],
  // id: init-always-runs
  ['init, Always: it runs', { pod: init('Always'), containers: [running('x')] }, 'Pending'],
  // id: init-always-failed
  ['init, Always: it failed', { pod: init('Always'), containers: [bad('x')] }, 'Pending'],
  [
    // id: init-always-failed-made
    'init, Always: it failed and is recreated',
    { pod: init('Always'), containers: [created('x', 1), bad('x')] },
    'Pending',
  ],
  // id: init-always-made
  ['init, Always: it was made', { pod: init('Always'), containers: [created('x')] }, 'Pending'],
  // id: init-always-succeeded
  ['init, Always: it succeeded', { pod: init('Always'), containers: [ok('x')] }, 'Pending'],
  [
    // id: init-always-succeeded-main
    'init, Always: it succeeded and the main containers run',
    { pod: init('Always'), containers: [ok('x'), ...both] },
    'Running',
  ],
  [
    'init, Always: its remains are gone and the main containers run',
    { pod: init('Always'), containers: both },
    'Running',
  ],
  // id: init-never-nothing-made
  ['init, Never: nothing made', { pod: init('Never') }, 'Pending'],
  // id: init-never-runs
  ['init, Never: it runs', { pod: init('Never'), containers: [running('x')] }, 'Pending'],
  // id: init-never-failed
  ['init, Never: it failed', { pod: init('Never'), containers: [bad('x')] }, 'Failed'],
  [
    // id: init-never-failed-runtime
    'init, Never: it failed and the runtime has forgotten it',
    { pod: init('Never'), sandboxes: [], history: { x: { ended: ended('x', 1) } } },
    'Failed',
  ],
  // id: init-never-made
  ['init, Never: it was made', { pod: init('Never'), containers: [created('x')] }, 'Pending'],
  [
    // id: init-never-succeeded-main
    'init, Never: it succeeded and the main containers run',
    { pod: init('Never'), containers: [ok('x'), ...both] },
    'Running',
  ],
  [
    // id: init-own-policy-never
    'init, own policy Never under Always: it failed',
    { pod: init('Always', 'Never'), containers: [bad('x')] },
    'Failed',
  ],
  [
    // id: init-own-policy-onfailure
    'init, own policy OnFailure under Never: it failed',
    { pod: init('Never', 'OnFailure'), containers: [bad('x')] },
    'Pending',
  ],
]

const side = (restartPolicy: 'Always' | 'Never'): PodChanges => ({
  restartPolicy,
  containers: ['a', 'b'],
  init: [sidecar('x', { startupProbe: probe })],
})
const startedUp = { 'startup x-0': 'success' } as const
const over = [ok('a'), ok('b')]
const newSandbox = { sandboxes: [observedSandbox({ attempt: 1 }), deadSandbox] }
const rerun = (name: string) => observedContainer(name, { sandboxId: 'sandbox-1', restartCount: 1 })

const sidecarRows: readonly Row[] = [
  // id: sidecar-nothing-made
  ['sidecar: nothing made', { pod: side('Always') }, 'Pending'],
  // id: sidecar-it-runs
  ['sidecar: it runs', { pod: side('Always'), containers: [running('x')] }, 'Pending'],
  // id: sidecar-it-has-ended
  ['sidecar: it has ended', { pod: side('Always'), containers: [ok('x')] }, 'Pending'],
  // id: sidecar-it-has-failed
  ['sidecar: it has failed', { pod: side('Never'), containers: [bad('x')] }, 'Pending'],
  // id: sidecar-it-was-made
  ['sidecar: it was made', { pod: side('Always'), containers: [created('x')] }, 'Pending'],
  [
    // id: sidecar-started-two-runs
    'sidecar: it has started, one of two runs',
    { pod: side('Always'), containers: [running('x'), running('a')], verdicts: startedUp },
    'Pending',
  ],
  [
    // id: sidecar-started-run
    'sidecar: it has started, all run',
    { pod: side('Always'), containers: [running('x'), ...both], verdicts: startedUp },
    'Running',
  ],
  [
    // id: sidecar-starts-again-run
    'sidecar: it starts again, all run',
    { pod: side('Always'), containers: [running('x'), ...both] },
    'Running',
  ],
  // id: sidecar-ended-run
  ['sidecar: it has ended, all run', { pod: side('Always'), containers: [ok('x'), ...both] }, 'Running'],
  [
    // id: sidecar-backoff-run
    'sidecar: it is in a backoff, all run',
    { pod: side('Always'), containers: [bad('x'), ...both], waiting: { x: backoff.a } },
    'Running',
  ],
  [
    // id: sidecar-runs-new-sandbox
    'sidecar: it runs in a new sandbox, the others have not begun',
    { pod: side('Always'), ...newSandbox, containers: [rerun('x'), bad('a'), bad('b')] },
    'Pending',
  ],
  [
    // id: sidecar-never-started-succeeded
    'sidecar, Never: it has started, all have succeeded',
    { pod: side('Never'), containers: [running('x'), ...over], verdicts: startedUp },
    'Running',
  ],
  [
    // id: sidecar-never-starts-again
    'sidecar, Never: it starts again, all have succeeded',
    { pod: side('Never'), containers: [running('x'), ...over] },
    'Running',
  ],
  [
    // id: sidecar-never-succeeded-too
    'sidecar, Never: all have succeeded, it too',
    { pod: side('Never'), containers: [ok('x'), ...over] },
    'Succeeded',
  ],
  [
    // id: sidecar-never-succeeded-failed
    'sidecar, Never: all have succeeded, it has failed',
    { pod: side('Never'), containers: [bad('x'), ...over] },
    'Succeeded',
  ],
  [
    // id: sidecar-never-succeeded-backoff
    'sidecar, Never: all have succeeded, it is in a backoff',
    { pod: side('Never'), containers: [bad('x'), ...over], waiting: { x: backoff.a } },
    'Succeeded',
  ],
]

const mixed: PodChanges = { containers: ['a'], init: ['x', sidecar('y')] }

const rerunRows: readonly Row[] = [
  [
    // id: new-sandbox-init-sidecar
    'new sandbox: init and sidecar run, the old main container seems to',
    { pod: mixed, ...newSandbox, containers: [rerun('x'), rerun('y'), running('a')] },
    'Pending',
  ],
  [
    // id: new-sandbox-init-sidecar-run
    'new sandbox: init and sidecar run, the old main container has ended',
    { pod: mixed, ...newSandbox, containers: [rerun('x'), rerun('y'), bad('a')] },
    'Pending',
  ],
  [
    'new sandbox: init has passed, the old main container is to run again',
    {
      pod: { containers: ['a'], init: ['x'] },
      ...newSandbox,
      containers: [exitedContainer('x', 0, { sandboxId: 'sandbox-1', restartCount: 1 }), bad('a')],
    },
    'Running',
  ],
  [
    // id: init-passed-sidecar-runs
    'init passed, sidecar runs, main container is to run again',
    { pod: mixed, containers: [ok('x'), running('y'), ok('a')] },
    'Running',
  ],
  [
    // id: init-passed-sidecar-main
    'init passed, sidecar and main container run',
    { pod: mixed, containers: [ok('x'), running('y'), running('a')] },
    'Running',
  ],
]

const withSidecar = (restartPolicy: PodChanges['restartPolicy']): PodChanges => ({
  ...two(restartPolicy),
  init: [sidecar('x')],
})
const endedBoth = { a: { ended: ended('a', 0) }, b: { ended: ended('b', 0) } }
const sidecarAgain = { sandboxId: 'sandbox-1', restartCount: 1 }

const overRows: readonly Row[] = [
  [
    'over: a newer sandbox has nothing but the sidecar, which has ended',
    {
      pod: withSidecar('OnFailure'),
      ...newSandbox,
      containers: [exitedContainer('x', 137, sidecarAgain), ok('x'), ok('a'), ok('b')],
    },
    'Succeeded',
  ],
  [
    'over: a newer sandbox has nothing but the sidecar, which still runs',
    { pod: withSidecar('OnFailure'), ...newSandbox, containers: [rerun('x'), ok('x'), ok('a'), ok('b')] },
    'Running',
  ],
  [
    'over: a newer sandbox has nothing but the init container, which still runs',
    {
      pod: { ...two('OnFailure'), init: ['x'] },
      ...newSandbox,
      containers: [rerun('x'), ok('x'), ok('a'), ok('b')],
    },
    'Running',
  ],
  [
    'over: what has ended was removed from its sandbox',
    { pod: withSidecar('OnFailure'), containers: [ok('x')], history: endedBoth },
    'Succeeded',
  ],
  [
    'over: all was removed from its sandbox, one had failed',
    { pod: withSidecar('Never'), history: { ...endedBoth, b: { ended: ended('b', 3) } } },
    'Failed',
  ],
  [
    'not over: one of them failed and runs again when its init containers have passed',
    {
      pod: { ...two('OnFailure'), init: ['x'] },
      ...newSandbox,
      containers: [rerun('x'), ok('x'), ok('a'), bad('b')],
    },
    'Pending',
  ],
  [
    'not over: all have ended well, one because it was stopped to be started again',
    {
      pod: withSidecar('OnFailure'),
      containers: [ok('x'), ok('a'), ok('b')],
      record: { restartsDue: ['b-0'] },
    },
    'Running',
  ],
]

describe('derivePhase', () => {
  it.each([...mainRows, ...ownPolicyRows, ...initRows, ...sidecarRows, ...rerunRows, ...overRows])(
    '%s',
    (_title, changes, phase) => {
      expect(derivePhase(statusFacts(changes))).toBe(phase)
    },
  )
})
