import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSchedule } from '../../../../src/control/desired/batch-jobs.ts'
import { stepCronJob } from '../../../../src/decide/workloads/run-cron-job.ts'
import type { CronRecord, Schedule } from '../../../../src/decide/workloads/run-cron-job.ts'
import type { JobEnd } from '../../../../src/decide/workloads/run-job.ts'
import { objectFromManifest } from '../../../../src/pod/objects/local-object.ts'
import { scheduleProblem } from '../../../../src/pod/objects/workload-kinds.ts'
import type { CronJob } from '../../../../src/pod/objects/workload-kinds.ts'

function cronJob(spec: object): CronJob {
  const manifest = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'backup' },
    spec: {
      schedule: '*/10 * * * *',
      timeZone: 'Etc/UTC',
      jobTemplate: { spec: { template: { spec: { containers: [] } } } },
      ...spec,
    },
  }
  const object = objectFromManifest(manifest)
  if (object.kind !== 'CronJob') throw new Error('it is no CronJob')
  return object
}

/** A CronJob on a host whose clock is moved; its Jobs run for so long, and all succeed unless told. */
class Host {
  #job!: CronJob
  #schedule!: Schedule
  record: CronRecord
  readonly ends = new Map<string, JobEnd>()
  readonly started: string[] = []
  wakeAtMs: number | undefined
  jobSeconds = 30
  outcome: JobEnd['type'] = 'Complete'
  readonly #dueMs = new Map<string, number>()

  constructor(spec: object, createdAt: string) {
    this.change(spec)
    this.record = { createdAtMs: Date.parse(createdAt), jobs: [] }
  }

  /** Its manifest is another one from now on. */
  change(spec: object): this {
    this.#job = cronJob(spec)
    const { schedule, timeZone } = this.#job.spec
    this.#schedule = createSchedule(schedule, timeZone)
    return this
  }

  /** podd looks at this time. */
  look(at: string | number): this {
    const nowMs = typeof at === 'number' ? at : Date.parse(at)
    for (const [name, dueMs] of this.#dueMs)
      if (nowMs >= dueMs && !this.ends.has(name))
        this.ends.set(name, { type: this.outcome, reason: '', message: '', atMs: dueMs })
    const step = stepCronJob(
      this.#job,
      this.record,
      this.#schedule,
      (name) => this.ends.get(name),
      () => ({}),
      nowMs,
    )
    const known = new Set(this.record.jobs.map(({ name }) => name))
    for (const { name, scheduledMs } of step.record.jobs) {
      if (known.has(name)) continue
      this.#dueMs.set(name, nowMs + this.jobSeconds * 1000)
      this.started.push(new Date(scheduledMs).toISOString().slice(0, 16))
    }
    this.record = step.record
    this.wakeAtMs = step.wakeAtMs
    return this
  }

  /** podd runs from one time to another, and looks when it is woken. */
  run(from: string, to: string): this {
    this.look(from)
    const endMs = Date.parse(to)
    while (this.wakeAtMs !== undefined && this.wakeAtMs <= endMs) this.look(this.wakeAtMs)
    return this
  }

  get active(): readonly string[] {
    return this.record.jobs.flatMap(({ name }) => (this.ends.has(name) ? [] : [name]))
  }
}

/** Source: pkg/controller/cronjob (syncCronJob; mostRecentScheduleTime in utils.go) and its tests, 1.36. */
describe('a CronJob', () => {
  it('starts a Job at each time, named after the minutes since the epoch', () => {
    const host = new Host({}, '2026-01-01T00:05:00Z').run('2026-01-01T00:05:00Z', '2026-01-01T00:35:00Z')
    expect(host.started).toEqual(['2026-01-01T00:10', '2026-01-01T00:20', '2026-01-01T00:30'])
    expect(host.record.jobs.at(-1)?.name).toBe(`backup-${Date.parse('2026-01-01T00:30:00Z') / 60_000}`)
  })

  it.each<[what: string, spec: object, at: string, started: readonly string[]]>([
    ['nothing before its first time', {}, '2026-01-01T00:09:59Z', []],
    ['what is due', {}, '2026-01-01T00:10:00Z', ['2026-01-01T00:10']],
    ['what is due, although late', {}, '2026-01-01T00:19:59Z', ['2026-01-01T00:10']],
    ['only the newest of several that were missed', {}, '2026-01-01T01:05:00Z', ['2026-01-01T01:00']],
    ['only the newest after a month', {}, '2026-02-01T00:05:00Z', ['2026-02-01T00:00']],
    [
      'what is late, within its deadline',
      { startingDeadlineSeconds: 120 },
      '2026-01-01T00:11:59Z',
      ['2026-01-01T00:10'],
    ],
    ['nothing past its deadline', { startingDeadlineSeconds: 120 }, '2026-01-01T00:12:01Z', []],
    ['nothing while it is suspended', { suspend: true }, '2026-01-01T00:10:00Z', []],
  ])('that was made at 00:05 and is looked at next starts %s', (_what, spec, at, started) => {
    expect(new Host(spec, '2026-01-01T00:05:00Z').look(at).started).toEqual(started)
  })

  it('starts no Job that is there under its name, whatever its record says of the last one', () => {
    const host = new Host({}, '2026-01-01T00:05:00Z')
    const scheduledMs = Date.parse('2026-01-01T00:10:00Z')
    const known = { name: `backup-${scheduledMs / 60_000}`, scheduledMs, manifest: {} }
    const other = { ...known, name: 'backup-by-hand' }
    host.record = { ...host.record, jobs: [known, other] }
    expect(host.look('2026-01-01T00:10:00Z').started).toEqual([])
    expect(host.look('2026-01-01T00:20:00Z').started).toEqual(['2026-01-01T00:20'])
  })

  it('starts the newest time that was missed when it is no longer suspended', () => {
    const record = new Host({ suspend: true }, '2026-01-01T00:05:00Z').look('2026-01-01T00:31:00Z').record
    const host = new Host({}, '2026-01-01T00:05:00Z')
    host.record = record
    expect(host.look('2026-01-01T00:31:00Z').started).toEqual(['2026-01-01T00:30'])
  })

  it.each<[policy: string, started: readonly string[], active: number]>([
    ['Allow', ['2026-01-01T00:10', '2026-01-01T00:20', '2026-01-01T00:30'], 3],
    // At 00:35 the first one has ended: the newest time that has passed since counts.
    ['Forbid', ['2026-01-01T00:10', '2026-01-01T00:30'], 1],
    ['Replace', ['2026-01-01T00:10', '2026-01-01T00:20', '2026-01-01T00:30'], 1],
  ])('with Jobs that take longer than its period, and %s', (concurrencyPolicy, started, active) => {
    const host = new Host({ concurrencyPolicy }, '2026-01-01T00:05:00Z')
    host.jobSeconds = 25 * 60
    host.run('2026-01-01T00:05:00Z', '2026-01-01T00:34:00Z').look('2026-01-01T00:34:59Z')
    if (concurrencyPolicy === 'Forbid') host.look('2026-01-01T00:35:00Z')
    expect([host.started, host.active.length]).toEqual([started, active])
  })

  it('keeps the newest of its ended Jobs', () => {
    const host = new Host({}, '2026-01-01T00:05:00Z')
    host.run('2026-01-01T00:05:00Z', '2026-01-01T01:05:00Z').look('2026-01-01T01:05:00Z')
    expect(host.record.jobs).toHaveLength(3)
    expect(host.record.lastSuccessMs).toBe(Date.parse('2026-01-01T01:00:30Z'))
    const failing = new Host({ failedJobsHistoryLimit: 0 }, '2026-01-01T00:05:00Z')
    failing.outcome = 'Failed'
    failing.run('2026-01-01T00:05:00Z', '2026-01-01T01:05:00Z').look('2026-01-01T01:05:00Z')
    expect(failing.record.jobs).toHaveLength(0)
  })

  it('starts nothing twice where the clock is set back, and goes on when its last time has come again', () => {
    const host = new Host({}, '2026-01-01T00:05:00Z').run('2026-01-01T00:05:00Z', '2026-01-01T02:05:00Z')
    const before = host.started.length
    host.run('2026-01-01T01:05:00Z', '2026-01-01T02:05:00Z')
    expect(host.started).toHaveLength(before)
    host.run('2026-01-01T02:05:00Z', '2026-01-01T02:15:00Z')
    expect(host.started.slice(before)).toEqual(['2026-01-01T02:10'])
  })
})

/** Source: kubernetes/kubernetes#63371, where a cluster starts such a Job. */
describe('a CronJob whose schedule is changed', () => {
  const daily = { schedule: '0 2 * * *' }
  const host = () =>
    new Host(daily, '2026-01-01T00:00:00Z').run('2026-01-01T00:00:00Z', '2026-01-02T15:00:00Z')

  it.each<[what: string, spec: object]>([
    ['schedule', { schedule: '0 9 * * *' }],
    ['time zone', { ...daily, timeZone: 'America/New_York' }],
  ])('starts nothing for a time that its new %s would have had before', (_, spec) => {
    const changed = host().change(spec).look('2026-01-02T15:00:00Z')
    expect(changed.started).toEqual(['2026-01-01T02:00', '2026-01-02T02:00'])
    changed.run('2026-01-02T15:00:00Z', '2026-01-03T10:00:00Z')
    expect(changed.started.slice(2)).toHaveLength(1)
  })

  it('starts a Job for a time that was missed otherwise', () => {
    const same = host()
      .change({ ...daily, concurrencyPolicy: 'Forbid' })
      .look('2026-01-03T15:00:00Z')
    expect(same.started.at(-1)).toBe('2026-01-03T02:00')
  })
})

describe('a CronJob on a host without a battery for its clock', () => {
  it('goes on from now on where the clock was years ahead when it was made or started a Job', () => {
    const host = new Host({}, '2036-01-01T00:05:00Z').look('2026-01-01T00:05:00Z')
    expect(host.started).toEqual([])
    expect(host.run('2026-01-01T00:05:00Z', '2026-01-01T00:35:00Z').started).toHaveLength(3)
    const ran = new Host({}, '2036-01-01T00:05:00Z').run('2036-01-01T00:05:00Z', '2036-01-01T00:25:00Z')
    ran.run('2026-01-01T00:25:00Z', '2026-01-01T00:45:00Z')
    expect(ran.started.slice(2)).toEqual(['2026-01-01T00:30', '2026-01-01T00:40'])
  })

  it('goes on while the clock is years behind, and starts nothing twice once it is right again', () => {
    const host = new Host({ schedule: '0 2,14 * * *' }, '2026-01-01T00:00:00Z')
    host.run('2026-01-01T00:00:00Z', '2026-01-03T15:00:00Z')
    const before = host.started.length
    host
      .run('1970-01-01T00:00:30Z', '1970-01-01T03:00:00Z')
      .run('1970-01-01T00:00:30Z', '1970-01-01T15:00:00Z')
    expect(host.started.slice(before)).toEqual(['1970-01-01T02:00', '1970-01-01T14:00'])
    host.run('2026-01-03T15:30:00Z', '2026-01-04T03:00:00Z')
    expect(host.started.slice(before + 2)).toEqual(['2026-01-04T02:00'])
  })
})

describe('a year of a CronJob', () => {
  const year = (
    schedule: string,
    timeZone: string,
    from = '2026-01-01T00:00:00Z',
    to = '2026-12-31T23:59:59Z',
  ) => new Host({ schedule, timeZone }, from).run(from, to).started

  it('has each day once, over the changes to and from summer time', () => {
    const started = year('30 2 * * *', 'Europe/Berlin')
    expect(started).toHaveLength(365)
    expect(new Set(started.map((at) => at.slice(0, 10))).size).toBe(365)
    // 02:30 there isn't on this day: it counts as soon as it has passed.
    expect(started).toContain('2026-03-29T01:00')
    // It comes twice on this day.
    expect(started.filter((at) => at.startsWith('2026-10-25'))).toHaveLength(1)
    expect([started[0], started.at(-1)]).toEqual(['2026-01-01T01:30', '2026-12-31T01:30'])
  })

  it('has each hour once, also those that the clock shows twice', () => {
    const started = year('0 * * * *', 'America/New_York')
    expect(started).toHaveLength(365 * 24 - 1)
    expect(new Set(started).size).toBe(started.length)
  })

  it('has the leap day only where there is one', () => {
    expect(year('0 0 29 2 *', 'Etc/UTC')).toEqual([])
    expect(year('0 0 29 2 *', 'Etc/UTC', '2028-01-01T00:00:00Z', '2028-12-31T00:00:00Z')).toEqual([
      '2028-02-29T00:00',
    ])
  })

  it('has one Job for a month in which the host was off, and none of what was missed before', () => {
    const host = new Host({ schedule: '0 4 * * *' }, '2026-01-01T00:00:00Z')
    host
      .run('2026-01-01T00:00:00Z', '2026-03-01T12:00:00Z')
      .run('2026-04-01T12:00:00Z', '2026-12-31T23:00:00Z')
    expect(host.started.filter((at) => at.startsWith('2026-03'))).toEqual(['2026-03-01T04:00'])
    expect(host.started.find((at) => at.startsWith('2026-04'))).toBe('2026-04-01T04:00')
    expect(host.started).toHaveLength(365 - 31 + 1)
  })

  it('has the day of the month or the day of the week, where both are given', () => {
    expect(year('0 0 13 * 5', 'Etc/UTC', '2026-01-01T00:00:00Z', '2026-01-31T00:00:00Z')).toEqual(
      ['02', '09', '13', '16', '23', '30'].map((day) => `2026-01-${day}T00:00`),
    )
  })
})

/** Source: robfig/cron v3 (parser.go), as `pkg/apis/batch/validation` uses it, 1.36. */
describe('a schedule', () => {
  it.each([
    ['*/90 * * * *', ['01-01T00:00', '01-01T01:00', '01-01T02:00']],
    ['50/90 6 * * *', ['01-01T06:50', '01-02T06:50', '01-03T06:50']],
    ['0 */48 * * *', ['01-01T00:00', '01-02T00:00', '01-03T00:00']],
    ['0 0 */40 * *', ['01-01T00:00', '02-01T00:00', '03-01T00:00']],
    ['0 0 1-2 3-5/20 *', ['03-01T00:00', '03-02T00:00', '03-01T00:00']],
    ['0 0 * * */9', ['01-04T00:00', '01-11T00:00', '01-18T00:00']],
    ['0 0 10,? * 5', ['01-02T00:00', '01-09T00:00', '01-16T00:00']],
    ['0 0 */1 * fri', ['01-02T00:00', '01-09T00:00', '01-16T00:00']],
    ['0 0 */20 * fri', ['01-01T00:00', '01-02T00:00', '01-09T00:00']],
  ])(
    'has the times that Kubernetes gives it, also where a step is larger than its field: %s',
    (schedule, times) => {
      const made = createSchedule(schedule, 'Etc/UTC')
      let atMs = Date.parse('2025-12-31T23:59:59Z')
      const found = times.map(() => {
        atMs = made.next(atMs) ?? 0
        return new Date(atMs).toISOString().slice(5, 16)
      })
      expect(scheduleProblem(schedule)).toBeUndefined()
      expect(found).toEqual(times)
    },
  )

  it('that is taken has times that can be computed, whatever its fields', () => {
    const field = (min: number, max: number, names: readonly string[]) => {
      const value = fc.oneof(
        fc.integer({ min, max }).map(String),
        ...(names.length > 0 ? [fc.constantFrom(...names)] : []),
      )
      const range = fc.oneof(
        fc.constantFrom('*', '?'),
        value,
        fc.tuple(value, value).map((ends) => ends.join('-')),
      )
      const part = fc
        .tuple(range, fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined }))
        .map(([text, step]) => (step === undefined ? text : `${text}/${step}`))
      return fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(','))
    }
    const schedules = fc
      .tuple(
        field(0, 59, []),
        field(0, 23, []),
        field(1, 31, []),
        field(1, 12, ['jan', 'Dec']),
        field(0, 6, ['SUN', 'sat']),
      )
      .map((fields) => fields.join(' '))
    fc.assert(
      fc.property(schedules, (schedule) => {
        fc.pre(scheduleProblem(schedule) === undefined)
        const { next, last } = createSchedule(schedule, 'Etc/UTC')
        const atMs = next(Date.parse('2026-01-01T00:00:00Z'))
        expect(atMs === undefined ? undefined : last(atMs)).toBe(atMs)
      }),
    )
  })

  it.each([
    '* * * * *',
    '*/5 0-6,22 1,15 JAN-mar Mon-Fri',
    '5/15 ? ? * 0',
    '@hourly',
    '@daily',
    ' 0  0 1 1 * ',
  ])('is good: %s', (schedule) => {
    expect(scheduleProblem(schedule)).toBeUndefined()
    expect(createSchedule(schedule, 'Etc/UTC').next(0)).toBeGreaterThan(0)
  })

  it.each([
    ['* * * *', 'expected exactly 5 fields, found 4'],
    ['* * * * * *', 'expected exactly 5 fields, found 6'],
    ['60 * * * *', '"60" is no minute (0 to 59)'],
    ['* * 0 * *', '"0" is no day of the month (1 to 31)'],
    ['* * * * 7', '"7" is no day of the week (0 to 6)'],
    ['5-1 * * * *', '"5-1" is no minute (0 to 59)'],
    ['*/0 * * * *', '"*/0" is no minute (0 to 59)'],
    ['* * L * *', '"L" is no day of the month (1 to 31)'],
    ['* * * foo *', '"foo" is no month (1 to 12)'],
    ['@every 5m', 'podd takes no @every: write the minutes or hours, such as "*/5 * * * *"'],
    ['@reboot', 'unrecognized descriptor: @reboot'],
    ['TZ=UTC 0 0 * * *', 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'],
  ])('is bad: %s', (schedule, problem) => {
    expect(scheduleProblem(schedule)).toBe(problem)
  })
})
