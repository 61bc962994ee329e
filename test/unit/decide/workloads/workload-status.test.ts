import { describe, expect, it } from 'vitest'
import { listOrEmpty } from '../../../../src/base/json.ts'
import type { JsonObject } from '../../../../src/base/json.ts'
import { WorkloadTargets } from '../../../../src/decide/workloads/replica-pods.ts'
import type { WorkloadPod } from '../../../../src/decide/workloads/replica-pods.ts'
import { asJobPod, newJobRecord } from '../../../../src/decide/workloads/run-job.ts'
import type { JobPod, JobRecord } from '../../../../src/decide/workloads/run-job.ts'
import { showWorkload } from '../../../../src/decide/workloads/workload-status.ts'
import type { WorkloadFacts } from '../../../../src/decide/workloads/workload-status.ts'
import { objectFromManifest } from '../../../../src/pod/objects/local-object.ts'

const nowMs = Date.UTC(2026, 0, 1)
const metadata = { name: 'web', namespace: 'default', uid: 'u' }
const template = (image: string) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'main', image }] },
})

function documentOf(kind: string, spec: JsonObject) {
  const apiVersion = kind === 'ConfigMap' ? 'v1' : kind.endsWith('Job') ? 'batch/v1' : 'apps/v1'
  const manifest = { apiVersion, kind, metadata: { name: 'web', namespace: 'default' }, spec }
  return { object: objectFromManifest(manifest), manifest, place: { path: 'web.yaml' } }
}

function show(kind: string, spec: JsonObject, facts: Partial<WorkloadFacts> = {}) {
  const nothing = { metadata, targets: [], pods: [], job: undefined, cronJob: undefined, activeJobs: [] }
  return showWorkload(documentOf(kind, spec), { ...nothing, nowMs, ...facts })
}

/** Of the newest template (`new`) or another one (`old`), as long ready as told; or not ready, or leaving. */
type Pod = readonly ['new' | 'old', 'unready' | 'leaving' | number]

/** The status of a workload of so many pods, with these pods there in the order of their names. */
function replicas(kind: string, count: number, pods: readonly Pod[], more: JsonObject = {}): unknown {
  const of = (image: string, length: number): JsonObject => ({
    selector: { matchLabels: { app: 'web' } },
    ...(kind === 'DaemonSet' ? {} : { replicas: length }),
    template: template(image),
    ...more,
  })
  const targets = new WorkloadTargets()
  const there = pods.map(([version, state], at): WorkloadPod => {
    const made = targets.podsOf(documentOf(kind, of(version === 'new' ? 'web:2' : 'web:1', pods.length)))
    const { pod, manifest } = made[at] ?? {}
    const name = pod?.metadata.name ?? `web-${at}`
    return typeof state === 'number'
      ? { name, manifest: manifest ?? {}, state: 'ready', readySinceMs: nowMs - state }
      : { name, manifest: manifest ?? {}, state }
  })
  const wanted = targets.podsOf(documentOf(kind, of('web:2', count)))
  return show(kind, of('web:2', count), { targets: wanted, pods: there })?.status
}

const conditions = (isAvailable: boolean, isDone: boolean) => [
  {
    type: 'Available',
    status: isAvailable ? 'True' : 'False',
    reason: isAvailable ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
    message: expect.stringContaining(isAvailable ? 'Deployment has' : 'Deployment does not have'),
  },
  {
    type: 'Progressing',
    status: 'True',
    reason: isDone ? 'NewReplicaSetAvailable' : 'ReplicaSetUpdated',
    message: expect.stringContaining(isDone ? 'All pods are' : 'being made'),
  },
]

/** Source: pkg/controller/deployment/sync.go (calculateStatus) and util/deployment_util.go (DeploymentComplete), 1.36. */
describe('the status of a Deployment', () => {
  it.each<[string, readonly Pod[], readonly number[], boolean, boolean]>([
    ['none is there', [], [0, 0, 0, 0, 2], false, false],
    [
      'all are of its template and ready',
      [
        ['new', 0],
        ['new', 9000],
      ],
      [2, 2, 2, 2, 0],
      true,
      true,
    ],
    [
      'one is of the template before',
      [
        ['old', 0],
        ['new', 0],
      ],
      [2, 2, 2, 1, 0],
      true,
      false,
    ],
    [
      'one is not ready',
      [
        ['new', 0],
        ['new', 'unready'],
      ],
      [2, 1, 1, 2, 1],
      false,
      false,
    ],
    [
      'none is ready',
      [
        ['new', 'unready'],
        ['new', 'unready'],
      ],
      [2, 0, 0, 2, 2],
      false,
      false,
    ],
    [
      'one is leaving',
      [
        ['new', 0],
        ['new', 'leaving'],
      ],
      [1, 1, 1, 1, 1],
      false,
      false,
    ],
    [
      'one too many is there',
      [
        ['new', 0],
        ['new', 0],
        ['old', 0],
      ],
      [3, 3, 3, 2, 0],
      true,
      false,
    ],
  ])('says how many pods there are, where %s', (_what, pods, counts, isAvailable, isDone) => {
    const [all, ready, available, updated, unavailable] = counts
    expect(replicas('Deployment', 2, pods)).toEqual({
      observedGeneration: 1,
      replicas: all,
      readyReplicas: ready,
      availableReplicas: available,
      updatedReplicas: updated,
      unavailableReplicas: unavailable,
      conditions: conditions(isAvailable, isDone),
    })
  })

  it('counts as available what is ready for as long as it says', () => {
    const minReadySeconds = { minReadySeconds: 3 }
    const pods = [
      ['new', 2999],
      ['new', 3000],
    ] as const
    expect(replicas('Deployment', 2, pods, minReadySeconds)).toMatchObject({
      readyReplicas: 2,
      availableReplicas: 1,
      unavailableReplicas: 1,
    })
    const { targets, spec } = newPods({ ...minReadySeconds, replicas: 1 })
    const pod = (readySinceMs?: number): WorkloadPod => ({
      name: 'web-0',
      manifest: targets[0]?.manifest ?? {},
      state: 'ready',
      readySinceMs,
    })
    const available = (given: WorkloadPod, change: JsonObject = {}) =>
      show('Deployment', { ...spec, ...change }, { targets, pods: [given] })?.status['availableReplicas']
    expect([available(pod()), available(pod(), { minReadySeconds: 0 })]).toEqual([0, 1])
  })

  /** Source: pkg/controller/deployment/util/deployment_util_test.go (TestMaxUnavailable), 1.36. */
  it.each<[string, number, JsonObject, number, boolean]>([
    ['the only one is missing', 1, {}, 1, false],
    ['the only one is missing, and nothing but a share is said', 1, { maxUnavailable: '50%' }, 1, false],
    ['the only one is missing, and may be', 1, { maxUnavailable: 1 }, 1, true],
    ['one of two is missing', 2, {}, 1, false],
    ['one of two is missing, and none may be added', 2, { maxUnavailable: '25%', maxSurge: 0 }, 1, true],
    ['one of four is missing', 4, {}, 1, true],
    ['two of four are missing', 4, {}, 2, false],
    ['all are missing, and may be', 2, { maxUnavailable: '100%' }, 2, true],
    ['more may be missing than are wanted', 2, { maxUnavailable: 5 }, 2, true],
    ['none may be missing, and one is', 4, { maxUnavailable: 0 }, 1, false],
  ])(
    'is available by its own strategy alone, where %s',
    (_what, wanted, rollingUpdate, missing, isAvailable) => {
      const pods = Array.from({ length: wanted }, (_, at): Pod => ['new', at < missing ? 'unready' : 0])
      expect(replicas('Deployment', wanted, pods, { strategy: { rollingUpdate } })).toMatchObject({
        conditions: [{ type: 'Available', status: isAvailable ? 'True' : 'False' }, {}],
      })
    },
  )

  it('is not available where one of its pods is missing and it says Recreate', () => {
    const pods = Array.from({ length: 8 }, (_, at): Pod => ['new', at < 1 ? 'unready' : 0])
    const strategy = { strategy: { type: 'Recreate' } }
    expect(replicas('Deployment', 8, pods, strategy)).toMatchObject({
      conditions: [{ type: 'Available', status: 'False' }, {}],
    })
  })

  it('says of a paused one that it is paused, and of one whose template failed why, unless its pods are available after all', () => {
    const progress = (change: JsonObject, pods: readonly WorkloadPod[]) => {
      const { spec, targets } = newPods({ replicas: 1, ...change })
      const { status } = show('Deployment', spec, { targets, pods, failure: 'web-0 crashes' }) ?? {}
      return listOrEmpty(status?.['conditions'])[1]
    }
    const pod: WorkloadPod = {
      name: 'web-0',
      manifest: newPods({ replicas: 1 }).targets[0]?.manifest ?? {},
      state: 'ready',
      readySinceMs: 0,
    }
    expect(progress({ paused: true }, [pod])).toMatchObject({ status: 'Unknown', reason: 'DeploymentPaused' })
    expect(progress({}, [pod])).toMatchObject({ status: 'True', reason: 'NewReplicaSetAvailable' })
    expect(progress({}, [{ ...pod, state: 'unready' }])).toMatchObject({
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
      message: 'web-0 crashes',
    })
  })

  it('says that it has enough where no more are missing than may', () => {
    const may = (maxUnavailable: number) =>
      replicas(
        'Deployment',
        4,
        [
          ['new', 0],
          ['new', 0],
          ['new', 'unready'],
          ['new', 'unready'],
        ],
        {
          strategy: { rollingUpdate: { maxUnavailable } },
        },
      )
    expect(may(2)).toMatchObject({ conditions: conditions(true, false) })
    expect(may(1)).toMatchObject({ conditions: conditions(false, false) })
  })
})

function newPods(change: JsonObject) {
  const spec = { selector: { matchLabels: { app: 'web' } }, template: template('web:2'), ...change }
  return { spec, targets: new WorkloadTargets().podsOf(documentOf('Deployment', spec)) }
}

it('the status of a workload counts no pod as updated while its pods are made by an earlier template than the newest', () => {
  const { spec, targets } = newPods({ replicas: 1 })
  const [target] = targets
  const pods: readonly WorkloadPod[] = [
    { name: 'web-0', manifest: target?.manifest ?? {}, state: 'ready', readySinceMs: 0 },
  ]
  const status = (image: string) =>
    showWorkload(
      { ...documentOf('Deployment', spec), newest: { spec: { template: template(image) } } },
      { metadata, targets, pods, job: undefined, cronJob: undefined, activeJobs: [], nowMs },
    )?.status
  expect(status('web:3')).toMatchObject({
    updatedReplicas: 0,
    conditions: [{}, { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }],
  })
  expect(status('web:2')).toMatchObject({
    updatedReplicas: 1,
    conditions: [{}, { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable' }],
  })
})

/** Source: pkg/controller/daemon/daemon_controller.go (updateDaemonSetStatus), 1.36. */
it.each<[string, Pod, readonly number[]]>([
  ['is ready', ['new', 0], [1, 1, 1, 1, 0]],
  ['is not ready', ['new', 'unready'], [1, 0, 1, 0, 1]],
  ['is of the template before', ['old', 0], [1, 1, 0, 1, 0]],
  ['is leaving', ['new', 'leaving'], [0, 0, 0, 0, 1]],
])('the status of a DaemonSet counts its pod, where that %s', (_what, pod, counts) => {
  const [scheduled, ready, updated, available, unavailable] = counts
  expect(replicas('DaemonSet', 1, [pod])).toEqual({
    observedGeneration: 1,
    currentNumberScheduled: scheduled,
    desiredNumberScheduled: 1,
    numberMisscheduled: 0,
    numberReady: ready,
    updatedNumberScheduled: updated,
    numberAvailable: available,
    numberUnavailable: unavailable,
  })
})

/** Source: pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet, completeRollingUpdate), 1.36. */
it.each<[string, readonly Pod[], number, number, boolean]>([
  [
    'all are of it',
    [
      ['new', 0],
      ['new', 0],
    ],
    2,
    2,
    true,
  ],
  [
    'one is of the one before',
    [
      ['old', 0],
      ['new', 0],
    ],
    1,
    1,
    false,
  ],
  [
    'all are of the one before',
    [
      ['old', 0],
      ['old', 0],
    ],
    2,
    0,
    false,
  ],
])(
  'the status of a StatefulSet tells of its newest template, where %s',
  (_what, pods, current, updated, isNew) => {
    const status = replicas('StatefulSet', 2, pods)
    expect(status).toMatchObject({
      replicas: 2,
      readyReplicas: 2,
      availableReplicas: 2,
      updatedReplicas: updated,
      currentReplicas: current,
      updateRevision: expect.stringMatching(/^web-[0-9a-f]{10}$/u),
    })
    const { currentRevision, updateRevision } = status as Record<string, unknown>
    expect(currentRevision === updateRevision).toBe(isNew)
  },
)

describe('the status of a Job', () => {
  const record = (change: Partial<JobRecord>): JobRecord => ({ ...newJobRecord('r', nowMs), ...change })
  const pod = (name: string, isReady: boolean): readonly [string, JobPod] => [
    name,
    { name, state: 'active', isReady, restarts: 0, exitCodes: {}, conditions: {} },
  ]
  const status = (change: Partial<JobRecord>) =>
    show(
      'Job',
      { template: template('job:1') },
      {
        job: {
          record: record(change),
          pods: new Map([pod('web-0', true), pod('web-1', false), pod('web-2', true)]),
        },
      },
    )?.status

  it('is empty before podd has seen it', () => {
    expect(show('Job', { template: template('job:1') })?.status).toEqual({})
  })

  it('counts what runs, and leaves out what there is none of', () => {
    expect(status({})).toEqual({ ready: 0 })
    expect(
      status({
        startedAtMs: nowMs,
        pods: { 'web-0': {}, 'web-1': {}, 'web-2': {}, 'web-3': {}, 'web-4': {} },
      }),
    ).toEqual({
      active: 5,
      ready: 2,
      startTime: '2026-01-01T00:00:00Z',
    })
    expect(status({ pods: { 'web-0': { outcome: 'failed' } }, succeeded: 1, failed: 2 })).toEqual({
      ready: 0,
      succeeded: 1,
      failed: 2,
    })
    expect(status({ completedIndexes: [10, 2], failedIndexes: [11, 3] })).toMatchObject({
      completedIndexes: '2,10',
      failedIndexes: '3,11',
    })
  })

  it.each([
    ['Complete', 'SuccessCriteriaMet', { completionTime: '2026-01-01T00:00:01Z' }],
    ['Failed', 'FailureTarget', {}],
  ] as const)('tells how it has ended: %s, after %s', (type, before, more) => {
    const finished = { type, reason: 'Why', message: 'because', atMs: nowMs + 1000 }
    const atTime = '2026-01-01T00:00:01Z'
    expect(status({ finished })).toEqual({
      ready: 0,
      ...more,
      conditions: [before, type].map((each) => ({
        type: each,
        status: 'True',
        reason: 'Why',
        message: 'because',
        lastProbeTime: atTime,
        lastTransitionTime: atTime,
      })),
    })
  })

  it('tells that it is suspended, until it has ended', () => {
    const conditionsOf = (change: Partial<JobRecord>) =>
      show(
        'Job',
        { template: template('job:1'), suspend: true },
        { job: { record: record(change), pods: new Map() } },
      )?.status
    expect(conditionsOf({})).toMatchObject({ conditions: [{ type: 'Suspended', reason: 'JobSuspended' }] })
    const finished = { type: 'Complete', reason: 'Why', message: 'because', atMs: nowMs } as const
    expect(conditionsOf({ finished })).toMatchObject({
      conditions: [{ type: 'SuccessCriteriaMet' }, { type: 'Complete' }],
    })
  })

  it.each<[readonly number[], string]>([
    [[3], '3'],
    [[1, 0], '0,1'],
    [[4, 2, 0, 3], '0,2-4'],
    [[7, 8, 9, 11, 12], '7-9,11,12'],
  ])('writes its indexes %j as %s', (completedIndexes, text) => {
    expect(status({ completedIndexes })).toMatchObject({ completedIndexes: text })
  })
})

it('the status of a CronJob tells when it has started a Job, and which run', () => {
  const spec = { schedule: '* * * * *', jobTemplate: { spec: { template: template('job:1') } } }
  expect(show('CronJob', spec)?.status).toEqual({})
  const cronJob = { createdAtMs: 0, jobs: [], lastScheduledMs: nowMs, lastSuccessMs: nowMs + 1000 }
  expect(show('CronJob', spec, { cronJob, activeJobs: ['web-1'] })?.status).toEqual({
    active: [{ apiVersion: 'batch/v1', kind: 'Job', namespace: 'default', name: 'web-1' }],
    lastScheduleTime: '2026-01-01T00:00:00Z',
    lastSuccessfulTime: '2026-01-01T00:00:01Z',
  })
})

/** Source: pkg/apis/apps/v1/defaults.go and pkg/apis/batch/v1/defaults.go, 1.36. */
describe('a workload that is shown', () => {
  const selector = { matchLabels: { app: 'web' } }
  const own = { selector, template: template('web:1') }

  it.each<[string, JsonObject, object]>([
    [
      'Deployment',
      { ...own, replicas: 2 },
      {
        replicas: 2,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
      },
    ],
    [
      'Deployment',
      { ...own, strategy: { type: 'Recreate' } },
      { replicas: 1, strategy: { type: 'Recreate' } },
    ],
    ['StatefulSet', own, { replicas: 1, podManagementPolicy: 'OrderedReady' }],
    ['DaemonSet', own, { updateStrategy: { rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } } }],
    [
      'Job',
      { template: template('job:1') },
      { parallelism: 1, completions: 1, backoffLimit: 6, completionMode: 'NonIndexed', suspend: false },
    ],
    ['Job', { template: template('job:1'), completions: 3 }, { parallelism: 1, completions: 3 }],
    [
      'CronJob',
      { schedule: '* * * * *', jobTemplate: { spec: { template: template('job:1') } } },
      { schedule: '* * * * *', concurrencyPolicy: 'Allow', suspend: false, successfulJobsHistoryLimit: 3 },
    ],
  ])('has the defaults of Kubernetes where its manifest says nothing: %s %j', (kind, spec, shown) => {
    expect(show(kind, spec)?.spec).toMatchObject({ ...spec, ...shown })
  })

  it('has the selector of a Job’s pods, by which clients find them, and where one is given that', () => {
    const own = { matchLabels: { 'batch.kubernetes.io/job-name': 'web' } }
    const given = { matchLabels: { app: 'web' } }
    const job = { template: template('job:1') }
    expect(show('Job', job)?.spec['selector']).toEqual(own)
    expect(asJobPod({}, 'web', undefined)).toMatchObject({ metadata: { labels: own.matchLabels } })
    expect(show('Job', { ...job, selector: given, manualSelector: true })?.spec['selector']).toEqual(given)
  })

  it('has no number of completions where a Job is the work queue of several pods', () => {
    expect(show('Job', { template: template('job:1'), parallelism: 2 })?.spec).not.toHaveProperty(
      'completions',
    )
  })

  it('has nothing of a CronJob that its manifest does not say and that has no default', () => {
    const spec = { schedule: '* * * * *', jobTemplate: { spec: { template: template('job:1') } } }
    expect(show('CronJob', spec)?.spec).not.toHaveProperty('timeZone')
    expect(show('CronJob', spec)?.spec['jobTemplate']).toEqual(spec.jobTemplate)
  })

  it('has the generation that its object has, and the first one without', () => {
    const generation = (given: object) =>
      show('Deployment', own, { metadata: { ...metadata, ...given } })?.metadata.generation
    expect([generation({}), generation({ generation: 4 })]).toEqual([1, 4])
  })

  it('is none for a document of another kind', () => {
    expect(show('ConfigMap', {})).toBeUndefined()
  })
})

describe('the spec of a workload', () => {
  it('that was written over the API is shown as it was written, with what has no effect', () => {
    const spec = { selector: { matchLabels: { app: 'web' } }, replicas: 2, template: template('web:1') }
    const written = {
      ...spec,
      template: { ...spec.template, spec: { ...spec.template.spec, serviceAccountName: 'web' } },
    }
    const kept = { uid: 'u', createdAtMs: 0, metadata: {}, spec: written }
    const nothing = { metadata, targets: [], pods: [], job: undefined, cronJob: undefined, activeJobs: [] }
    const document = { ...documentOf('Deployment', spec), kept }
    expect(showWorkload(document, { ...nothing, nowMs })?.spec).toMatchObject(written)
    const newest = { ...document.manifest, spec: { ...spec, replicas: 3 } }
    expect(showWorkload({ ...document, newest }, { ...nothing, nowMs })?.spec).toMatchObject({ replicas: 3 })
  })
})
