import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { mayRunAgain, readLogQuery } from '../../../src/server/routes/pod-logs.ts'
import { containerStatus, podObject, terminated } from '../../support/pod-objects.ts'
import type { PodObjectChanges } from '../../support/pod-objects.ts'

const nowMs = Date.UTC(2026, 0, 31, 9, 30)
const read = (text: string) => readLogQuery(new URLSearchParams(text), 'web', nowMs)

describe('readLogQuery', () => {
  it.each([
    ['', undefined],
    ['sinceSeconds=5', nowMs - 5000],
    ['sinceTime=2026-01-31T09:30:00Z', nowMs],
    ['sinceTime=2026-01-31T09:30:00.123456789Z', nowMs + 123],
    ['sinceTime=2026-01-31T10:30:00%2B01:00', nowMs],
    ['sinceTime=2099-01-01T00:00:00Z', Date.UTC(2099, 0, 1)],
  ])('reads from when %j wants the log', (text, sinceMs) => {
    expect(read(text).sinceMs).toBe(sinceMs)
  })

  it.each([
    'sinceTime=2026-01-31',
    'sinceTime=2026-01-31T09:30:00',
    'sinceTime=2026-01-31T09:30Z',
    'sinceTime=2026-13-31T09:30:00Z',
    'sinceTime=yesterday',
    'sinceSeconds=x',
    'tailLines=1.5',
    'limitBytes=',
  ])('refuses %j as one that cannot be read', (text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: expect.stringMatching(/BadRequest/u) }))
  })

  it.each([
    ['sinceSeconds=0', 'sinceSeconds: Invalid value: 0: must be greater than 0'],
    ['limitBytes=0', 'limitBytes: Invalid value: 0: must be greater than 0'],
    ['tailLines=-1', 'tailLines: Invalid value: -1: must be greater than or equal to 0'],
    [
      'sinceSeconds=1&sinceTime=2026-01-31T09:30:00Z',
      'Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
    ],
    ['stream=Both', 'stream: Unsupported value: "Both": supported values: "All", "Stderr", "Stdout"'],
    [
      'stream=Stdout&tailLines=1',
      'Forbidden: `tailLines` and specific `stream` are mutually exclusive for now',
    ],
  ])('refuses %j as invalid', (text, message) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ message: `PodLogOptions "web" is invalid: ${message}` }),
    )
  })

  it('leaves out what asks for nothing here', () => {
    expect(read('insecureSkipTLSVerifyBackend=true&pretty=true')).toEqual(read(''))
  })
})

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
