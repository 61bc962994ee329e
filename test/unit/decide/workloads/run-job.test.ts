import { describe, expect, it } from 'vitest'
import { asJobPod, moveJobTimes, newJobRecord, stepJob } from '../../../../src/decide/workloads/run-job.ts'
import type { JobPod, JobRecord } from '../../../../src/decide/workloads/run-job.ts'
import { objectFromManifest } from '../../../../src/pod/objects/local-object.ts'
import type { JobSpec } from '../../../../src/pod/objects/workload-kinds.ts'

type Wanted = { readonly [Key in keyof JobSpec]?: JobSpec[Key] | undefined }

function spec(more: Wanted = {}): JobSpec {
  const manifest = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'j' },
    spec: { template: { spec: { containers: [] } } },
  }
  const job = objectFromManifest(manifest)
  if (job.kind !== 'Job') throw new Error('it is no Job')
  const wanted = Object.entries({ completions: 1, ...more }).filter(([, value]) => value !== undefined)
  return { ...job.spec, ...Object.fromEntries(wanted) }
}

type Outcome =
  | 'active'
  | 'succeeded'
  | 'failed'
  | { readonly exit: number }
  | { readonly restarts: number }
  | { readonly condition: string }
  /** Somebody deleted it, and this is how it was then. */
  | { readonly deleted: JobPod['state']; readonly condition?: string }

function pod(name: string, outcome: Outcome): JobPod {
  const base: JobPod = { name, state: 'active', isReady: false, restarts: 0, exitCodes: {}, conditions: {} }
  if (typeof outcome === 'string') return { ...base, state: outcome }
  if ('deleted' in outcome) {
    const conditions = outcome.condition === undefined ? {} : { [outcome.condition]: 'True' }
    return { ...base, state: outcome.deleted, isDeleted: true, conditions }
  }
  if ('exit' in outcome) return { ...base, state: 'failed', exitCodes: { main: outcome.exit } }
  if ('condition' in outcome) return { ...base, state: 'failed', conditions: { [outcome.condition]: 'True' } }
  return { ...base, restarts: outcome.restarts }
}

/** A Job whose pods end as they are told to, at the times (in seconds) at which it is looked at. */
class Run {
  #spec: JobSpec
  record: JobRecord = newJobRecord('r', 0)
  readonly pods = new Map<string, JobPod>()
  wakeAtMs: number | undefined

  constructor(wanted: JobSpec) {
    this.#spec = wanted
  }

  at(seconds: number, outcomes: Readonly<Record<string, Outcome>> = {}): this {
    for (const [name, outcome] of Object.entries(outcomes)) this.pods.set(name, pod(name, outcome))
    const step = stepJob('j', this.#spec, this.record, this.pods, seconds * 1000)
    this.record = step.record
    this.wakeAtMs = step.wakeAtMs
    return this
  }

  /** It is gone. */
  without(name: string): this {
    this.pods.delete(name)
    return this
  }

  /** Its manifest was changed. */
  with(wanted: JobSpec): this {
    this.#spec = wanted
    return this
  }

  get active(): readonly string[] {
    return Object.entries(this.record.pods).flatMap(([name, { outcome }]) =>
      outcome === undefined ? [name] : [],
    )
  }

  get end(): string | undefined {
    return this.record.finished && `${this.record.finished.type} ${this.record.finished.reason}`
  }
}

/** Its containers are started again in their pod. */
const onFailure = (more: Wanted): Wanted => {
  const { template } = spec()
  return { ...more, template: { ...template, spec: { ...template.spec, restartPolicy: 'OnFailure' } } }
}

const run = (more: Wanted = {}): Run => new Run(spec(more)).at(0)

/** Source: pkg/controller/job/job_controller.go (syncJob, manageJob), 1.36. */
describe('how many pods a Job has', () => {
  it.each<[what: string, more: Wanted, active: readonly string[]]>([
    ['one by default', {}, ['j-0']],
    ['as many as its parallelism', { completions: 5, parallelism: 2 }, ['j-0', 'j-1']],
    ['not more than completions that are wanted', { completions: 2, parallelism: 5 }, ['j-0', 'j-1']],
    ['those of a work queue', { completions: undefined, parallelism: 3 }, ['j-0', 'j-1', 'j-2']],
    ['none without parallelism', { parallelism: 0 }, []],
    ['none while it is suspended', { suspend: true }, []],
    [
      'one for each of the lowest indexes',
      { completionMode: 'Indexed', completions: 3, parallelism: 2 },
      ['j-0-0', 'j-1-1'],
    ],
  ])('%s', (_what, more, active) => {
    expect(run(more).active).toEqual(active)
  })

  it('goes on until enough have succeeded', () => {
    const job = run({ completions: 3, parallelism: 2 }).at(1, { 'j-0': 'succeeded' })
    expect([job.active, job.end]).toEqual([['j-1', 'j-2'], undefined])
    job.at(2, { 'j-1': 'succeeded', 'j-2': 'succeeded' })
    expect([job.active, job.end, job.record.succeeded]).toEqual([[], 'Complete CompletionsReached', 3])
  })

  it('of a work queue is that of those that run on, once one has succeeded', () => {
    const job = run({ completions: undefined, parallelism: 2 }).at(1, { 'j-0': 'succeeded' })
    expect([job.active, job.end]).toEqual([['j-1'], undefined])
    expect(job.at(2, { 'j-1': 'succeeded' }).end).toBe('Complete CompletionsReached')
  })

  it('is no more than may still be useful', () => {
    const job = run({ completions: 3, parallelism: 3 }).at(1, { 'j-0': 'succeeded' })
    expect(job.active).toEqual(['j-1', 'j-2'])
  })

  it('is less where its parallelism was lowered: those stay that were made first, and no other is waited for', () => {
    const job = run({ completions: 5, parallelism: 3 })
    job.with(spec({ completions: 5, parallelism: 2 })).at(1)
    expect(job.active).toEqual(['j-0', 'j-1'])
    job.with(spec({ completions: 5, parallelism: 1 })).at(2, { 'j-0': 'failed' })
    expect([job.active, job.wakeAtMs, job.record.failed]).toEqual([['j-1'], undefined, 1])
  })

  it('is none once it is suspended, and those that have ended are kept', () => {
    const job = run({ completions: 3, parallelism: 2 }).at(1, { 'j-0': 'succeeded' })
    job.with(spec({ completions: 3, parallelism: 2, suspend: true })).at(2)
    expect([job.active, Object.keys(job.record.pods), job.record.startedAtMs]).toEqual([
      [],
      ['j-0'],
      undefined,
    ])
  })

  it('does not count one that has ended and was removed', () => {
    const job = run({ completions: 3 }).at(1, { 'j-0': 'succeeded' })
    job.pods.delete('j-0')
    expect(Object.keys(job.at(2).record.pods)).toEqual(['j-1'])
  })

  it('with no completions wanted is none, and the Job is complete', () => {
    expect(run({ completions: 0 }).end).toBe('Complete CompletionsReached')
  })
})

/** Source: pkg/controller/job/backoff_utils.go and pastBackoffLimitOnFailure, 1.36. */
describe('after failures', () => {
  it('the next pod is made 10 s later, then 20 s, and at most 10 min', () => {
    const job = run({ backoffLimit: 20 })
    const waits: number[] = []
    let seconds = 0
    for (let made = 0; made < 9; made += 1) {
      job.at(seconds, { [`j-${made}`]: 'failed' })
      waits.push((job.wakeAtMs ?? 0) / 1000 - seconds)
      expect(job.active).toEqual([])
      seconds = (job.wakeAtMs ?? 0) / 1000
      job.at(seconds)
      expect(job.active).toEqual([`j-${made + 1}`])
    }
    expect(waits).toEqual([10, 20, 40, 80, 160, 320, 600, 600, 600])
  })

  it('a success begins the wait anew', () => {
    const job = run({ completions: 2, parallelism: 2 }).at(1, { 'j-0': 'failed' }).at(11)
    job.at(12, { 'j-1': 'succeeded' }).at(13, { 'j-2': 'failed' })
    expect(job.wakeAtMs).toBe(23_000)
  })

  it('makes the next ones at once where one has succeeded since', () => {
    const job = run({ completions: 3, parallelism: 2 }).at(1, { 'j-0': 'failed' })
    expect(job.at(2, { 'j-1': 'succeeded' }).active).toEqual(['j-2', 'j-3'])
  })

  it('looks again when the next pod may be made or its deadline has come, whichever is first', () => {
    const wakeAtMs = (activeDeadlineSeconds: number) =>
      run({ activeDeadlineSeconds }).at(1, { 'j-0': 'failed' }).wakeAtMs
    expect([wakeAtMs(30), wakeAtMs(5)]).toEqual([11_000, 5000])
  })

  it('with a backoffLimit of 0 the first container that starts again ends it', () => {
    const job = run(onFailure({ backoffLimit: 0 })).at(1, { 'j-0': { restarts: 0 } })
    expect(job.end).toBeUndefined()
    expect(job.at(2, { 'j-0': { restarts: 1 } }).end).toBe('Failed BackoffLimitExceeded')
  })

  it.each<[limit: number | undefined, failures: number, end: string | undefined]>([
    [0, 1, 'Failed BackoffLimitExceeded'],
    [2, 2, undefined],
    [2, 3, 'Failed BackoffLimitExceeded'],
    [undefined, 6, undefined],
    [undefined, 7, 'Failed BackoffLimitExceeded'],
  ])('with a backoffLimit of %s, %i of them end it with %s', (backoffLimit, failures, end) => {
    const job = run({ backoffLimit })
    for (let made = 0; made < failures; made += 1)
      job.at(made * 10_000, { [`j-${made}`]: 'failed' }).at(made * 10_000 + 5000)
    expect(job.end).toBe(end)
    expect(job.record).toMatchObject({ indexFailures: {}, failedIndexes: [] })
  })

  it('containers that start again in their pod count, too, and what runs is ended', () => {
    const job = run(onFailure({ backoffLimit: 2 })).at(1, { 'j-0': { restarts: 1 } })
    expect(job.end).toBeUndefined()
    job.at(2, { 'j-0': { restarts: 2 } })
    expect([job.end, job.active, job.record.failed]).toEqual(['Failed BackoffLimitExceeded', [], 1])
  })
})

describe('a Job that takes too long', () => {
  it('a sidecar that starts again in a pod whose containers may not is none of that', () => {
    expect(run({ backoffLimit: 0 }).at(1, { 'j-0': { restarts: 5 } }).end).toBeUndefined()
  })

  it('fails at its deadline, and its pods end', () => {
    const job = run({ activeDeadlineSeconds: 30 })
    expect(job.wakeAtMs).toBe(30_000)
    expect([job.at(29).end, job.at(30).end, job.active]).toEqual([undefined, 'Failed DeadlineExceeded', []])
  })

  it('begins again with its deadline after it was suspended', () => {
    const waits = new Run(spec({ activeDeadlineSeconds: 30, suspend: true })).at(0)
    expect([waits.record.startedAtMs, waits.wakeAtMs]).toEqual([undefined, undefined])
  })
})

describe('a Job that has ended', () => {
  it('has its pods removed after its ttl, and runs no more', () => {
    const job = run({ ttlSecondsAfterFinished: 60 }).at(10, { 'j-0': 'succeeded' })
    expect([Object.keys(job.record.pods), job.wakeAtMs]).toEqual([['j-0'], 70_000])
    job.at(70)
    expect([Object.keys(job.record.pods), job.active, job.record.isExpired]).toEqual([[], [], true])
    expect(job.at(1000).active).toEqual([])
  })

  it('keeps the newest twenty of its ended pods', () => {
    const job = run({ completions: 25, parallelism: 25 })
    job.at(1, Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`j-${at}`, 'succeeded'] as const)))
    expect(Object.keys(job.record.pods)).toHaveLength(20)
    expect([Object.keys(job.record.pods)[0], job.end]).toEqual(['j-5', 'Complete CompletionsReached'])
  })
})

/** Source: pkg/controller/job/indexed_job_utils.go, 1.36. */
describe('an Indexed Job', () => {
  const indexed = { completionMode: 'Indexed', completions: 2, parallelism: 2 } as const

  it('runs each index until it has succeeded once', () => {
    const job = run(indexed).at(1, { 'j-0-0': 'succeeded', 'j-1-1': 'failed' }).at(11)
    expect(job.active).toEqual(['j-1-2'])
    expect(job.at(12, { 'j-1-2': 'succeeded' }).end).toBe('Complete CompletionsReached')
    expect(job.record.completedIndexes).toEqual([0, 1])
  })

  it('goes on with the others where one index has failed for good, and fails in the end', () => {
    const job = run({ ...indexed, backoffLimitPerIndex: 0, backoffLimit: undefined }).at(1, {
      'j-0-0': 'failed',
    })
    expect([job.end, job.record.failedIndexes]).toEqual([undefined, [0]])
    expect(job.at(20, { 'j-1-1': 'succeeded' }).end).toBe('Failed FailedIndexes')
  })

  it('runs the next index in place of one that has succeeded, beside those that run', () => {
    const job = run({ ...indexed, completions: 4 }).at(1, { 'j-0-0': 'succeeded' })
    expect(job.active).toEqual(['j-1-1', 'j-2-2'])
  })

  it('gives up an index that has failed more often than each may', () => {
    const job = run({ ...indexed, backoffLimitPerIndex: 1 })
      .at(1, { 'j-0-0': 'failed' })
      .at(11)
    expect([job.record.failedIndexes, job.active]).toEqual([[], ['j-1-1', 'j-0-2']])
    job.at(12, { 'j-0-2': 'failed' })
    expect(job.record).toMatchObject({ failedIndexes: [0], indexFailures: { 0: 2 } })
  })

  /** Source: pkg/controller/job/job_controller.go (manageJob, getPodCreationInfoForIndependentIndexes), 1.36. */
  it('with a limit of its own each index waits for itself alone, 10 s, then 20 s', () => {
    const job = run({ ...indexed, completions: 3, parallelism: 2, backoffLimitPerIndex: 3 })
    job.at(1, { 'j-0-0': 'failed' })
    expect([job.active, job.wakeAtMs]).toEqual([['j-1-1'], 11_000])
    expect(job.at(2, { 'j-1-1': 'succeeded' }).active).toEqual(['j-2-2'])
    expect(job.at(11).active).toEqual(['j-2-2', 'j-0-3'])
    job.at(12, { 'j-0-3': 'failed' })
    expect([job.active, job.wakeAtMs]).toEqual([['j-2-2'], 32_000])
  })

  it('an index waits from now on where the clock was set back since it failed', () => {
    const job = run({ ...indexed, completions: 2, parallelism: 1, backoffLimitPerIndex: 3 })
    job.at(1000, { 'j-0-0': 'failed' }).at(5)
    expect(job.wakeAtMs).toBe(15_000)
    expect(job.at(15).active).toEqual(['j-0-1'])
  })

  it('keeps no times of failures of each index where none has a limit of its own', () => {
    expect(run(indexed).at(1, { 'j-0-0': 'failed' }).record).not.toHaveProperty('indexFailedAtMs')
  })

  it('waits for no index alone once its manifest has no limit for each', () => {
    const wanted = { ...indexed, completions: 3 }
    const job = run({ ...wanted, backoffLimitPerIndex: 5 }).at(1, { 'j-0-0': 'failed' })
    job.with(spec(wanted)).at(2, { 'j-1-1': 'succeeded' })
    expect(job.active.map((name) => name.slice(0, 3))).toEqual(['j-0', 'j-2'])
  })

  it('waits for nothing but the pods that run where each other index is over', () => {
    const job = run({ ...indexed, completions: 3, parallelism: 3, backoffLimitPerIndex: 0 })
    job.at(1, { 'j-0-0': 'succeeded' }).at(2, { 'j-1-1': 'failed' })
    expect([job.active, job.wakeAtMs]).toEqual([['j-2-2'], undefined])
  })

  it.each([
    [0, 1, 'Failed MaxFailedIndexesExceeded'],
    [1, 1, undefined],
    [1, 2, 'Failed MaxFailedIndexesExceeded'],
  ])('of which %i indexes may fail, and %i have, ends with %s', (maxFailedIndexes, failures, end) => {
    const job = run({ ...indexed, completions: 5, backoffLimitPerIndex: 0, maxFailedIndexes })
    for (let index = 0; index < failures; index += 1) job.at(1, { [`j-${index}-${index}`]: 'failed' })
    expect(job.end).toBe(end)
    expect(job.active.length > 0).toBe(end === undefined)
  })
})

/** Source: pkg/controller/job/pod_failure_policy.go (matchPodFailurePolicy), 1.36. */
describe('a pod failure policy', () => {
  const onExit = (
    action: 'FailJob' | 'Ignore' | 'Count' | 'FailIndex',
    values: readonly number[],
    operator: 'In' | 'NotIn' = 'In',
    containerName?: string,
  ) => ({
    action,
    onExitCodes: { operator, values, ...(containerName !== undefined && { containerName }) },
    onPodConditions: [],
  })
  const onDisruption = {
    action: 'Ignore',
    onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }],
  } as const

  it.each<
    [
      what: string,
      rules: NonNullable<JobSpec['podFailurePolicy']>['rules'],
      outcome: Outcome,
      end: string | undefined,
      failed: number,
    ]
  >([
    ['fails the Job', [onExit('FailJob', [42])], { exit: 42 }, 'Failed PodFailurePolicy', 1],
    ['lets other codes count', [onExit('FailJob', [42])], { exit: 1 }, undefined, 1],
    [
      'takes all codes but some',
      [onExit('FailJob', [1], 'NotIn')],
      { exit: 2 },
      'Failed PodFailurePolicy',
      1,
    ],
    ['ignores a disruption', [onDisruption], { condition: 'DisruptionTarget' }, undefined, 0],
    [
      'goes by its first rule that matches',
      [onExit('Count', [42]), onExit('FailJob', [42])],
      { exit: 42 },
      undefined,
      1,
    ],
    ['asks one container alone', [onExit('FailJob', [42], 'In', 'other')], { exit: 42 }, undefined, 1],
  ])('%s', (_what, rules, outcome, end, failed) => {
    const job = run({ podFailurePolicy: { rules } }).at(1, { 'j-0': outcome })
    expect([job.end, job.record.failed]).toEqual([end, failed])
  })

  it('gives up one index alone', () => {
    const job = run({
      completionMode: 'Indexed',
      completions: 2,
      parallelism: 2,
      backoffLimitPerIndex: 5,
      podFailurePolicy: { rules: [onExit('FailIndex', [42])] },
    }).at(1, { 'j-0-0': { exit: 42 } })
    expect([job.record.failedIndexes, job.active]).toEqual([[0], ['j-1-1']])
  })

  it('makes another pod at once where a failure was ignored', () => {
    const job = run({ podFailurePolicy: { rules: [onDisruption] } }).at(1, {
      'j-0': { condition: 'DisruptionTarget' },
    })
    expect(job.active).toEqual(['j-1'])
  })
})

/** Source: isPodFailed in pkg/controller/job/job_controller.go, 1.36. */
describe('a pod of a Job that somebody deletes', () => {
  it('has failed, and is replaced once it has ended and the backoff is over', () => {
    const job = run().at(1, { 'j-0': { deleted: 'active' } })
    expect(job.record).toMatchObject({ failed: 1, succeeded: 0, made: 1 })
    expect(job.at(30).active).toEqual([])
    expect(job.without('j-0').at(31).active).toEqual(['j-1'])
    expect(job.record.pods).toEqual({ 'j-1': {} })
    expect(job.record.failed).toBe(1)
  })

  it('has its index again after it has ended', () => {
    const job = run({ completionMode: 'Indexed', completions: 1 }).at(1, { 'j-0-0': { deleted: 'active' } })
    expect(job.at(30).active).toEqual([])
    expect(job.without('j-0-0').at(31).active).toEqual(['j-0-1'])
  })

  it('keeps its index until it has ended, also where many newer pods have ended', () => {
    const job = run({ completionMode: 'Indexed', completions: 30, parallelism: 2, backoffLimit: 9 })
    for (let index = 1; index <= 25; index += 1) job.at(index, { [`j-${index}-${index}`]: 'succeeded' })
    expect(job.active).toEqual(['j-0-0', 'j-26-26'])
    expect(job.at(30, { 'j-0-0': { deleted: 'active' } }).active).toEqual(['j-26-26'])
    expect(job.at(60).active).toEqual(['j-26-26'])
    expect(job.without('j-0-0').at(61).active).toEqual(['j-26-26', 'j-0-27'])
  })

  it('costs no pod that runs where the parallelism is lowered meanwhile', () => {
    const deleted = { deleted: 'active' } as const
    const job = run({ completions: 9, parallelism: 3 }).at(1, { 'j-0': deleted, 'j-1': deleted })
    expect(job.with(spec({ completions: 9, parallelism: 2 })).at(2).active).toEqual(['j-2'])
    expect(job.at(30).active).toEqual(['j-2'])
    expect(job.without('j-0').without('j-1').at(31).active).toEqual(['j-2', 'j-3'])
  })

  it('has succeeded where it had by then, and has not failed again where it had', () => {
    expect(run().at(1, { 'j-0': { deleted: 'succeeded' } }).end).toBe('Complete CompletionsReached')
    const failed = run()
      .at(1, { 'j-0': 'failed' })
      .at(2, { 'j-0': { deleted: 'failed' } })
    expect(failed.record).toMatchObject({ failed: 1, pods: {} })
  })

  it('is not counted where a rule leaves out what is evicted', () => {
    const rules = [
      {
        action: 'Ignore' as const,
        onPodConditions: [{ type: 'DisruptionTarget', status: '' }],
      },
    ]
    const evicted = { deleted: 'active', condition: 'DisruptionTarget' } as const
    const job = run({ podFailurePolicy: { rules } }).at(1, { 'j-0': evicted })
    expect(job.record.failed).toBe(0)
    expect(job.without('j-0').at(2).active).toEqual(['j-1'])
  })
})

describe('a rule of a pod failure policy about a condition', () => {
  it.each([
    ['', 'True', true],
    ['', 'False', false],
    ['False', 'False', true],
    ['False', 'True', false],
    ['Unknown', 'Unknown', true],
  ])('of status "%s" and a pod where it is %s: applies %s', (status, is, applies) => {
    const rules = [{ action: 'Ignore' as const, onPodConditions: [{ type: 'Some', status }] }]
    const job = run({ podFailurePolicy: { rules } })
    job.pods.set('j-0', { ...pod('j-0', 'failed'), conditions: { Some: is } })
    expect(job.at(1).record.failed).toBe(applies ? 0 : 1)
  })
})

/** Source: pkg/controller/job/indexed_job_utils.go (addCompletionIndexEnvVariable) and job_controller.go, 1.36. */
describe('the pod of a Job', () => {
  const index = 'batch.kubernetes.io/job-completion-index'
  const given = {
    metadata: { name: 'p', labels: { app: 'x' }, annotations: { note: 'n' } },
    spec: {
      initContainers: [{ name: 'i' }],
      containers: [
        { name: 'a', env: [{ name: 'OWN', value: '1' }] },
        { name: 'b', env: [{ name: 'JOB_COMPLETION_INDEX', value: '7' }, { name: 'OWN' }] },
      ],
    },
  }
  const labels = { app: 'x', 'batch.kubernetes.io/job-name': 'j', 'job-name': 'j' }

  it('has its name among its labels, and is else as its template says', () => {
    expect(asJobPod(given, 'j', undefined)).toEqual({ ...given, metadata: { ...given.metadata, labels } })
  })

  it('has its index as label, annotation and variable, and in its hostname', () => {
    const variable = {
      name: 'JOB_COMPLETION_INDEX',
      valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${index}']` } },
    }
    const [a, b] = given.spec.containers
    expect(asJobPod(given, 'j', 3)).toEqual({
      metadata: {
        name: 'p',
        labels: { ...labels, [index]: '3' },
        annotations: { note: 'n', [index]: '3' },
      },
      spec: {
        hostname: 'j-3',
        initContainers: [{ name: 'i', env: [variable] }],
        containers: [{ ...a, env: [...(a?.env ?? []), variable] }, b],
      },
    })
  })

  it('keeps the hostname of its template, and needs no init containers', () => {
    const made = asJobPod({ spec: { hostname: 'own', containers: [{ name: 'a' }] } }, 'j', 0)
    expect(made['spec']).toMatchObject({ hostname: 'own', containers: [{ name: 'a' }] })
    expect(made['spec']).not.toHaveProperty('initContainers')
  })
})

describe('a Job whose host has its clock set', () => {
  const hourMs = 3_600_000
  const move = (atMs: number): number => atMs + hourMs

  it('forward waits for the rest of its backoff', () => {
    const job = run().at(5, { 'j-0': 'failed' })
    job.record = moveJobTimes(job.record, move)
    expect(job.at(3614).active).toEqual([])
    expect(job.at(3615).active).toEqual(['j-1'])
  })

  it('forward waits for the rest of the backoff of each index', () => {
    const job = run({ completionMode: 'Indexed', completions: 1, backoffLimitPerIndex: 2 }).at(5, {
      'j-0-0': 'failed',
    })
    job.record = moveJobTimes(job.record, move)
    expect(job.at(3614).active).toEqual([])
    expect(job.at(3615).active).toEqual(['j-0-1'])
  })
})

describe('a Job whose host has its clock set back', () => {
  it('is tried again after its backoff, not when the old time comes again', () => {
    const job = run().at(5000, { 'j-0': 'failed' }).at(100)
    expect([job.active, job.wakeAtMs]).toEqual([[], 110_000])
    expect(job.at(109).active).toEqual([])
    expect(job.at(110).active).toEqual(['j-1'])
  })

  it('does not fail by its deadline once the clock, which was behind for a time, is right again', () => {
    const job = new Run(spec({ activeDeadlineSeconds: 60 })).at(5000).at(100)
    expect(job.at(5059).end).toBeUndefined()
    expect(job.at(5060).end).toBe('Failed DeadlineExceeded')
  })
})
