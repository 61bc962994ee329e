import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { mayRunAgain } from '../../../src/server/routes/pod-logs.ts'
import type { PodObjectChanges } from '../../support/pod-objects.ts'
import { containerStatus, podObject, terminated } from '../../support/pod-objects.ts'

const ended = (exitCode: number): NonNullable<PodObjectChanges['status']> => ({
  containerStatuses: [containerStatus('main', { state: terminated(exitCode) })],
})
const policy = (restartPolicy: string, container: JsonObject = {}): JsonObject => ({
  restartPolicy,
  containers: [{ name: 'main', image: 'busybox:1', ...container }],
})

const rulesFor = (operator: string, action: string): JsonObject => ({
  restartPolicy: 'Never',
  restartPolicyRules: [{ action, exitCodes: { operator, values: [42] } }],
})

describe('mayRunAgain', () => {
  it.each<[what: string, changes: PodObjectChanges, may: boolean]>([
    ['one that runs', {}, true],
    [
      'one that waits',
      { status: { containerStatuses: [containerStatus('main', { state: { waiting: {} } })] } },
      true,
    ],
    ['one that was not observed yet', { status: { containerStatuses: [] } }, true],
    ['an end under Always', { spec: policy('Always'), status: ended(0) }, true],
    ['an end where nothing is said', { status: ended(0) }, true],
    ['a failure under OnFailure', { spec: policy('OnFailure'), status: ended(1) }, true],
    ['a success under OnFailure', { spec: policy('OnFailure'), status: ended(0) }, false],
    ['an end under Never', { spec: policy('Never'), status: ended(1) }, false],
    [
      "a container's own policy",
      { spec: policy('Never', { restartPolicy: 'Always' }), status: ended(1) },
      true,
    ],
    [
      'an end of an ephemeral container',
      {
        spec: {
          ...policy('Always'),
          containers: [],
          ephemeralContainers: [{ name: 'main', image: 'busybox:1' }],
        },
        status: {
          containerStatuses: [],
          ephemeralContainerStatuses: [containerStatus('main', { state: terminated(1) })],
        },
      },
      false,
    ],
    [
      'an end that a rule is about',
      { spec: policy('Never', rulesFor('In', 'Restart')), status: ended(42) },
      true,
    ],
    [
      'an end that no rule is about',
      { spec: policy('Never', rulesFor('In', 'Restart')), status: ended(1) },
      false,
    ],
    [
      'an end that a rule leaves out',
      { spec: policy('Never', rulesFor('NotIn', 'Restart')), status: ended(42) },
      false,
    ],
    [
      'an end where all may be restarted',
      { spec: policy('Never', rulesFor('In', 'RestartAllContainers')), status: ended(1) },
      true,
    ],
    ['an end in a pod that is over', { status: { phase: 'Failed', ...ended(1) } }, false],
    ['a wait in a pod that is over', { status: { phase: 'Failed', containerStatuses: [] } }, false],
    [
      'an end in a pod that is ending',
      { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' }, status: ended(0) },
      false,
    ],
    [
      'one that still runs in a pod that is ending',
      { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
      true,
    ],
  ])('judges %s', (_, changes, may) => {
    expect(mayRunAgain(podObject(changes), 'main')).toBe(may)
  })

  it.each([
    [0, 'Always', false],
    [1, 'Always', true],
    [1, 'OnFailure', true],
    [1, 'Never', false],
  ])('takes an init container that ended with %i under %s for what it is', (exitCode, restartPolicy, may) => {
    const pod = podObject({
      spec: {
        restartPolicy,
        containers: [{ name: 'main', image: 'busybox:1' }],
        initContainers: [{ name: 'init', image: 'busybox:1' }],
      },
      status: { initContainerStatuses: [containerStatus('init', { state: terminated(exitCode) })] },
    })
    expect(mayRunAgain(pod, 'init')).toBe(may)
  })
})
