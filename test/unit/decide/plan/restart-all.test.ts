import { describe, expect, it } from 'vitest'
import { computePodActions } from '../../../../src/decide/plan/compute-pod-actions.ts'
import { hasFinished } from '../../../../src/decide/plan/progress.ts'
import { deriveStatus } from '../../../../src/decide/status/derive-status.ts'
import type { PodFacts } from '../../../../src/decide/plan/pod-facts.ts'
import type { PodRecord } from '../../../../src/pod/state/pod-record.ts'
import {
  actionsOf,
  deadSandbox,
  ended,
  exitedContainer,
  nowMs,
  observedContainer,
  podFacts,
  sidecar,
  statusFacts,
} from '../../../support/pod-builders.ts'
import type { FactsChanges, PodChanges } from '../../../support/pod-builders.ts'

const rule = {
  restartPolicy: 'Never',
  restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [88] } }],
}
/** The container `a` restarts all when it ends with 88. */
const pod: PodChanges = { restartPolicy: 'Never', containers: [{ name: 'a', ...rule }, 'b'] }
const withInits: PodChanges = { ...pod, init: ['i', sidecar('s')] }
const beside = [observedContainer('b'), observedContainer('s'), exitedContainer('i', 0)]

const plan = (changes: FactsChanges): readonly string[] => actionsOf(computePodActions(podFacts(changes)))
const marked = (facts: PodFacts): readonly string[] =>
  [...(computePodActions(facts).restartAll ?? [])].toSorted()

describe('a container that ends as its rule for all containers has it', () => {
  // id: not-asked-nothing-happens
  it('is not asked for: nothing happens to the others', () => {
    expect(plan({ pod, containers: [exitedContainer('a', 87), observedContainer('b')] })).toEqual([])
    expect(marked(podFacts({ pod, containers: [exitedContainer('a', 87)] }))).toEqual([])
  })

  // id: run-stopped-before-anything
  it('has all that run stopped, before anything starts', () => {
    expect(plan({ pod, containers: [exitedContainer('a', 88), observedContainer('b')] })).toEqual([
      'stop b restart-all',
    ])
  })

  // id: init-containers-sidecars-begin
  it('has init containers and sidecars start again too', () => {
    const facts = podFacts({ pod: withInits, containers: [exitedContainer('a', 88), ...beside] })
    expect(actionsOf(computePodActions(facts))).toEqual(['stop s restart-all', 'stop b restart-all'])
    expect(marked(facts)).toEqual(['a-0', 'b-0', 'i-0', 's-0'])
  })

  it('is a sidecar: the same', () => {
    const watched = { ...pod, init: [sidecar('s', { restartPolicyRules: rule.restartPolicyRules })] }
    expect(
      plan({
        pod: watched,
        containers: [exitedContainer('s', 88), observedContainer('a'), observedContainer('b')],
      }),
    ).toEqual(['stop a restart-all', 'stop b restart-all'])
  })

  it('leaves ephemeral containers alone', () => {
    const containers = [exitedContainer('a', 88), observedContainer('b'), observedContainer('e')]
    expect(plan({ pod: { ...pod, ephemeral: ['e'] }, containers })).toEqual(['stop b restart-all'])
  })

  it('counts although the runtime has forgotten it', () => {
    const history = { a: { ended: ended('a', 88) } }
    expect(plan({ pod, history, containers: [observedContainer('b')] })).toEqual(['stop b restart-all'])
  })

  it('has the rest stopped by a podd that comes later', () => {
    const restartAll = new Set(['a-0', 'b-0'])
    const containers = [exitedContainer('a', 88), observedContainer('b')]
    expect(plan({ pod, restartAll, containers })).toEqual(['stop b restart-all'])
    const unknown = [exitedContainer('a', 88), observedContainer('b', { state: 'unknown' })]
    expect(plan({ pod, restartAll, containers: unknown })).toEqual(['stop b restart-all'])
  })

  it('does nothing to a pod whose main containers have all ended for good', () => {
    const watched = {
      ...pod,
      containers: ['b'],
      init: [sidecar('s', { restartPolicyRules: rule.restartPolicyRules })],
    }
    const containers = [exitedContainer('b', 0), exitedContainer('s', 88)]
    expect(hasFinished(podFacts({ pod: watched, containers }))).toBe(true)
    expect(plan({ pod: watched, containers, sandboxes: [deadSandbox] })).toEqual([])
  })
})

describe('a pod all of whose containers were stopped to be restarted', () => {
  const restartAll = new Set(['a-0', 'b-0', 's-0', 'i-0'])
  const dead = [
    exitedContainer('a', 88),
    exitedContainer('b', 137),
    exitedContainer('s', 137),
    exitedContainer('i', 0),
  ]

  // id: begins-first-init-container
  it('begins with its first init container, in the same sandbox', () => {
    expect(plan({ pod: withInits, restartAll, containers: dead })).toEqual(['start i#1'])
  })

  it('begins at once where nothing was left to stop', () => {
    expect(plan({ pod: withInits, containers: dead })).toEqual(['start i#1'])
  })

  // id: goes-on-sidecars-then
  it('goes on with its sidecars and then with its main containers, under any policy', () => {
    const afterInit = [exitedContainer('i', 0, { restartCount: 1 }), ...dead]
    expect(plan({ pod: withInits, restartAll, containers: afterInit })).toEqual(['start s#1', 'remove i-0'])
    const afterSidecar = [observedContainer('s', { restartCount: 1 }), ...afterInit]
    const started = ['start a#1', 'start b#1', 'remove i-0']
    expect(plan({ pod: withInits, restartAll, containers: afterSidecar })).toEqual(started)
  })

  it('starts what was made and never started in its turn', () => {
    const containers = [
      exitedContainer('a', 88),
      observedContainer('b', { state: 'created' }),
      ...dead.slice(2),
    ]
    expect(plan({ pod: withInits, restartAll, containers })).toEqual(['start i#1'])
  })

  it('does so in a new sandbox too', () => {
    expect(plan({ pod: withInits, restartAll, containers: dead, sandboxes: [deadSandbox] })).toEqual([
      'stop-pod',
      'sandbox 1',
      'start i#1',
    ])
  })

  it('has the one that asked for it wait out its backoff, and no other', () => {
    const backoff = {
      key: 'busybox:1 {"claims":[],"limits":{},"requests":{}}',
      delayMs: 40_000,
      updatedAtMs: nowMs - 60_000,
    }
    const late = { finishedAtMs: nowMs - 1000 }
    const facts = podFacts({
      pod,
      restartAll,
      history: { a: { backoff }, b: { backoff } },
      containers: [exitedContainer('a', 88, late), exitedContainer('b', 137, late)],
    })
    const keyed = { ...backoff, key: keyOf(facts) }
    const plan = computePodActions({ ...facts, history: { a: { backoff: keyed }, b: { backoff: keyed } } })
    expect(actionsOf(plan)).toEqual(['start b#1'])
    expect(plan.waiting.get('a')?.reason).toBe('CrashLoopBackOff')
    expect(plan.wakeAtMs).toBe(nowMs + 39_000)
    const [start] = plan.actions
    expect(start).toMatchObject({ backoff: keyed })
  })

  it('has failed when an init container fails then and may not run again', () => {
    const containers = [exitedContainer('i', 1, { restartCount: 1 }), ...dead]
    const facts = podFacts({ pod: withInits, restartAll, containers })
    expect(hasFinished(facts)).toBe(true)
    expect(actionsOf(computePodActions(facts))).toEqual(['stop-pod', 'remove i-0'])
  })
})

/** The key that the backoff of this pod's containers goes by. */
function keyOf(facts: PodFacts): string {
  const plan = computePodActions({ ...facts, restartAll: new Set(), history: {} })
  const start = plan.actions.find((action) => action.kind === 'start-container')
  return start?.backoff?.key ?? ''
}

describe('the status of a pod whose containers are all restarted', () => {
  const status = (containers: readonly ReturnType<typeof observedContainer>[], record: Partial<PodRecord>) =>
    deriveStatus(statusFacts({ pod: withInits, containers, record })).status
  const restarting = (found: ReturnType<typeof status>) =>
    found.conditions.find(({ type }) => type === 'AllContainersRestarting')
  const restartAll = ['a-0', 'b-0', 's-0', 'i-0']
  const stopped = [
    exitedContainer('a', 88),
    exitedContainer('b', 137),
    exitedContainer('s', 137),
    exitedContainer('i', 0),
  ]

  // id: condition-false-before-asked
  it('has the condition False before it was asked for', () => {
    const found = status([observedContainer('a'), ...beside], {})
    expect(restarting(found)).toMatchObject({ status: 'False' })
    expect(found.phase).toBe('Running')
  })

  it('has no such condition without such a rule', () => {
    const facts = statusFacts({ containers: [observedContainer('a')] })
    expect(deriveStatus(facts).status.conditions.map(({ type }) => type)).not.toContain(
      'AllContainersRestarting',
    )
  })

  // id: condition-true-some-stopped
  it('has the condition True while some are to be stopped, and is Running', () => {
    const found = status([exitedContainer('a', 88), ...beside], { restartAll })
    expect(restarting(found)).toMatchObject({
      status: 'True',
      reason: 'RestartAllContainersStarted',
      message: 'container exited with restart policy rule',
    })
    expect(found.phase).toBe('Running')
    expect(found.containerStatuses?.[0]?.state.terminated?.exitCode).toBe(88)
  })

  // id: pending-not-initialized-init
  it('is Pending and not initialized while its init containers run again, and keeps the ends and counts', () => {
    const found = status(stopped, { restartAll })
    expect(restarting(found)).toMatchObject({ status: 'False' })
    expect(found.phase).toBe('Pending')
    expect(found.conditions).toContainEqual(expect.objectContaining({ type: 'Initialized', status: 'False' }))
    expect(found.containerStatuses?.[0]).toMatchObject({
      restartCount: 0,
      state: { waiting: { reason: 'PodInitializing' } },
      lastState: { terminated: { exitCode: 88 } },
    })
    expect(found.initContainerStatuses?.[0]).toMatchObject({
      ready: false,
      state: { waiting: { reason: 'PodInitializing' } },
    })
  })

  // id: running-along-without-init
  it('is Running all along without init containers', () => {
    const record = { restartAll: ['a-0', 'b-0'] }
    const containers = [exitedContainer('a', 88), exitedContainer('b', 137)]
    expect(deriveStatus(statusFacts({ pod, containers, record })).status.phase).toBe('Running')
  })

  // id: running-before-taken-down
  it('is Running before it is taken down', () => {
    const containers = [exitedContainer('a', 88)]
    const single = { restartPolicy: 'Never', containers: [{ name: 'a', ...rule }] } as const
    expect(deriveStatus(statusFacts({ pod: single, containers })).status.phase).toBe('Running')
  })

  // id: condition-false-reason-once
  it('has the condition False with the reason once the pod is over', () => {
    const over = status([exitedContainer('a', 0), exitedContainer('b', 0), exitedContainer('i', 0)], {})
    expect(over.phase).toBe('Succeeded')
    expect(restarting(over)).toMatchObject({ status: 'False', reason: 'PodCompleted' })
    const failed = status([exitedContainer('a', 1), exitedContainer('b', 0), exitedContainer('i', 0)], {})
    expect(restarting(failed)).toMatchObject({ status: 'False', reason: 'PodFailed' })
  })
})
