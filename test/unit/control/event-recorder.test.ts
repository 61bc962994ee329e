import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { RingEventRecorder } from '../../../src/control/serving/event-recorder.ts'
import { createShown } from '../../../src/control/serving/resource-store.ts'
import type { ShownResources } from '../../../src/control/serving/resource-store.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { HostShutdown } from '../../../src/host/shutdown.ts'
import type { PodEvent } from '../../../src/pod/state/pod-event.ts'
import { ManualClock } from '../../support/manual-clock.ts'

let rootDir: string
let clock: ManualClock
let recorder: RingEventRecorder
let bootId: string
let isHostStopping: boolean
let shutdown: HostShutdown
/** Of the newest recorder. */
let shown: ShownResources

function newRecorder(): RingEventRecorder {
  shown = createShown(clock.wallMs())
  return new RingEventRecorder({ rootDir, hostName: 'here', bootId }, shown, shutdown, clock, silentLogger)
}

/** The host is booted: another id, and a clock that may be set to anything. */
function reboot(wallMs: number): void {
  clock = new ManualClock(wallMs)
  clock.boot(20_000)
  bootId = `after ${bootId}`
  recorder = newRecorder()
}

beforeEach(async () => {
  rootDir = await mkdtemp(join(tmpdir(), 'podd-events-'))
  clock = new ManualClock()
  bootId = 'boot-1'
  isHostStopping = false
  shutdown = new HostShutdown(async () => isHostStopping, clock, silentLogger)
  recorder = newRecorder()
})
afterEach(async () => {
  await recorder.flush()
  await rm(rootDir, { recursive: true })
})

function event(message: string, changes: Partial<PodEvent> = {}): PodEvent {
  return {
    pod: { namespace: 'default', name: 'web-here', uid: 'u1' },
    container: 'main',
    type: 'Warning',
    reason: 'ResizeError',
    message,
    ...changes,
  }
}

const told = (): (readonly [string, number])[] =>
  shown.events.list().map(({ message, count }) => [message, count])

/** Files are written in real time, whatever the clock says. */
async function untilWritten(text: RegExp): Promise<void> {
  await expect.poll(written, { interval: 5 }).toMatch(text)
}

async function written(): Promise<string> {
  return readFile(join(rootDir, 'events.json'), 'utf8').catch(() => '')
}

describe('the recorder of events', () => {
  it('keeps the revision that was reached, so that the next podd gives greater ones', async () => {
    clock = new ManualClock()
    recorder = newRecorder()
    recorder.record(event('a'))
    const before = shown.revisions.latest
    await recorder.flush()
    clock = new ManualClock(0)
    const next = newRecorder()
    await next.load()
    expect(shown.revisions.latest).toBeGreaterThan(before)
    expect(Number(shown.events.list()[0]?.metadata.resourceVersion)).toBeGreaterThan(before)
  })

  it('says of which kind an object is that is no pod, also after a restart of podd', async () => {
    const pod = { namespace: 'default', name: 'backup', uid: 'j1' }
    recorder.record({ pod, kind: 'Job', type: 'Normal', reason: 'Completed', message: 'Job completed' })
    await recorder.flush()
    const next = newRecorder()
    await next.load()
    expect(shown.events.list().map(({ involvedObject }) => involvedObject)).toEqual([
      { apiVersion: 'batch/v1', kind: 'Job', ...pod },
    ])
  })

  it('keeps what happened to the node apart from what happened to pods', async () => {
    recorder.record(event('a'))
    recorder.recordNode({ type: 'Warning', reason: 'ImageGCFailed', message: 'a' })
    recorder.recordNode({ type: 'Warning', reason: 'ImageGCFailed', message: 'a' })
    await recorder.flush()
    const next = newRecorder()
    await next.load()
    expect(shown.events.list().map(({ involvedObject, count }) => ({ involvedObject, count }))).toMatchObject(
      [
        { involvedObject: { kind: 'Pod', name: 'web-here' }, count: 1 },
        { involvedObject: { kind: 'Node', name: 'here', uid: 'here', namespace: '' }, count: 2 },
      ],
    )
    expect(shown.events.list()[1]).toMatchObject({
      metadata: { namespace: 'default' },
      reason: 'ImageGCFailed',
    })
  })

  it('counts one event that comes again, and lists it where it came last', () => {
    recorder.record(event('no room'))
    recorder.record(event('other'))
    clock.suspend(5000)
    recorder.record(event('no room'))
    expect(told()).toEqual([
      ['other', 1],
      ['no room', 2],
    ])
    expect(shown.events.list()[1]).toMatchObject({
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:00:05Z',
    })
  })

  it('names each of them, also those of one moment', () => {
    for (const message of ['no room', 'other', 'no room']) recorder.record(event(message))
    const names = shown.events.list().map(({ metadata }) => metadata.name)
    expect(new Set(names).size).toBe(2)
    expect(names.every((name) => /^web-here\.[0-9a-f]+$/u.test(name))).toBe(true)
  })

  it('tells events that differ in their message alone as one, from the eleventh in ten minutes on', () => {
    for (let index = 1; index <= 14; index += 1) recorder.record(event(`${index} bytes in use`))
    expect(told()).toHaveLength(11)
    expect(told().at(-1)).toEqual(['(combined from similar events): 14 bytes in use', 4])
    // What is told already is counted where it stands, and what isn't alike is told by itself.
    recorder.record(event('3 bytes in use'))
    recorder.record(event('15 bytes in use', { container: 'side' }))
    recorder.record(event('15 bytes in use', { reason: 'Failed' }))
    expect(
      told()
        .slice(-3)
        .map(([message, count]) => `${message}: ${count}`),
    ).toEqual(['3 bytes in use: 2', '15 bytes in use: 1', '15 bytes in use: 1'])
  })

  it('goes on telling them as one while they come, over a restart too, and begins anew after a pause', async () => {
    for (let index = 1; index <= 12; index += 1) recorder.record(event(`${index} bytes in use`))
    await recorder.flush()
    recorder = newRecorder()
    await recorder.load()
    for (let minutes = 1; minutes <= 30; minutes += 1) {
      clock.setWall(clock.wallMs() + 60_000)
      recorder.record(event(`${100 + minutes} bytes in use`))
    }
    expect(told()).toHaveLength(11)
    expect(told().at(-1)).toEqual(['(combined from similar events): 130 bytes in use', 32])
    clock.suspend(600_000)
    recorder.record(event('131 bytes in use'))
    expect(told().at(-1)).toEqual(['131 bytes in use', 1])
  })

  it('takes what has just happened for recent, whatever the clock was set to meanwhile', () => {
    clock.setWall(clock.wallMs() + 86_400_000)
    for (let index = 1; index <= 12; index += 1) recorder.record(event(`${index} bytes in use`))
    clock.setWall(clock.wallMs() - 86_400_000)
    recorder.record(event('13 bytes in use'))
    expect(told().at(-1)).toEqual(['(combined from similar events): 13 bytes in use', 3])
  })

  it('keeps the newest thousand', () => {
    for (let index = 0; index < 1003; index += 1)
      recorder.record(event('started', { pod: { namespace: 'default', name: 'web', uid: `u${index}` } }))
    expect(shown.events.list()).toHaveLength(1000)
    expect(shown.events.list()[0]?.involvedObject.uid).toBe('u3')
  })

  it('writes what is new after two seconds, and a raised count within a minute', async () => {
    recorder.record(event('no room'))
    await clock.advance(1999)
    expect(await written()).toBe('')
    await clock.advance(1)
    await untilWritten(/"count":1\b/)

    for (let second = 0; second < 59; second += 1) {
      recorder.record(event('no room'))
      await clock.advance(1000)
    }
    expect(JSON.parse(await written())).toMatchObject({ events: [{ count: 1 }] })
    await clock.advance(1000)
    await untilWritten(/"count":60/)

    recorder.record(event('no room'))
    recorder.record(event('another'))
    await clock.advance(2000)
    await untilWritten(/another/)
  })

  it('starts without the earlier events where their file cannot be read', async () => {
    await writeFile(join(rootDir, 'events.json'), '[{"event":{"pod":')
    await recorder.load()
    expect(shown.events.list().map(({ reason }) => reason)).toEqual(['StateUnreadable'])
    recorder.record(event('no room'))
    await recorder.flush()
    expect(JSON.parse(await written())).toMatchObject({ version: 2, events: [{ count: 1 }, { count: 1 }] })
  })

  it('puts the events of a newer podd aside', async () => {
    const newer = '{"version":1000,"events":{"of":"another form"}}'
    await writeFile(join(rootDir, 'events.json'), newer)
    await recorder.load()
    expect(shown.events.list().map(({ reason }) => reason)).toEqual(['StateUnreadable'])
    expect(await readFile(join(rootDir, 'events.json.unreadable'), 'utf8')).toBe(newer)
  })

  it('takes up what the first version wrote', async () => {
    await copyFile('test/fixtures/events/v1/events.json', join(rootDir, 'events.json'))
    await recorder.load()
    expect(told()).toEqual([['Started container main', 2]])
  })
})

describe('when an event happened', () => {
  const synchronizedMs = Date.UTC(2026, 4, 1)
  const times = (): readonly (readonly [string, string, string])[] =>
    shown.events
      .list()
      .map(({ message, firstTimestamp, lastTimestamp }) => [message, firstTimestamp, lastTimestamp])

  it('is told by the time that the clock learns after the boot, in this podd and in the next', async () => {
    reboot(0)
    recorder.record(event('a'))
    await clock.advance(60_000)
    recorder.record(event('b'))
    expect(times()[0]?.[2]).toBe('1970-01-01T00:00:00Z')
    const { name } = shown.events.list()[0]?.metadata ?? {}
    clock.setWall(synchronizedMs)
    recorder.reviewTimes()
    const corrected = [
      ['a', '2026-04-30T23:59:00Z', '2026-04-30T23:59:00Z'],
      ['b', '2026-05-01T00:00:00Z', '2026-05-01T00:00:00Z'],
    ]
    expect(times()).toEqual(corrected)
    expect(shown.events.list()[0]?.metadata.name).toBe(name)
    await recorder.flush()
    reboot(synchronizedMs + 3_600_000)
    await recorder.load()
    expect(times()).toEqual(corrected)
  })

  it('is never in the future, where the clock was set back in the same podd', async () => {
    recorder.record(event('a'))
    await clock.advance(30_000)
    clock.setWall(clock.wallMs() - 86_400_000)
    recorder.record(event('b'))
    expect(times()).toEqual([
      ['a', '2025-12-31T00:00:00Z', '2025-12-31T00:00:00Z'],
      ['b', '2025-12-31T00:00:30Z', '2025-12-31T00:00:30Z'],
    ])
  })

  it('is before the boot, where that is all that is known', async () => {
    recorder.record(event('a'))
    await recorder.flush()
    // The clock was ahead until the host was booted.
    reboot(Date.UTC(2025, 11, 31))
    await recorder.load()
    expect(times()).toEqual([['a', '2025-12-30T23:59:40Z', '2025-12-30T23:59:40Z']])
    recorder.record(event('a'))
    expect(times()).toEqual([['a', '2025-12-30T23:59:40Z', '2025-12-31T00:00:00Z']])
    clock.setWall(Date.UTC(2026, 0, 2))
    recorder.reviewTimes()
    expect(times()).toEqual([['a', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z']])
  })

  it('is before podd began, where an older one did not say in which boot', async () => {
    const old = { event: event('a'), firstAtMs: clock.wallMs(), lastAtMs: clock.wallMs() + 5000, count: 2 }
    await writeFile(join(rootDir, 'events.json'), JSON.stringify({ version: 2, events: [old] }))
    await recorder.load()
    await clock.advance(60_000)
    expect(times()).toEqual([['a', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z']])
  })

  it('is when an older podd saw it last, which kept the moment of a newer one as it was', async () => {
    recorder.record(event('a'))
    await recorder.flush()
    await clock.advance(3_600_000)
    const path = join(rootDir, 'events.json')
    const file = JSON.parse(await readFile(path, 'utf8')) as { events: { lastAtMs: number; count: number }[] }
    const raised = file.events.map((kept) => ({ ...kept, lastAtMs: clock.wallMs(), count: kept.count + 1 }))
    await writeFile(path, JSON.stringify({ ...file, events: raised }))
    await clock.advance(60_000)
    recorder = newRecorder()
    await recorder.load()
    expect(times()).toEqual([['a', '2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z']])
  })
})

describe('what goes wrong while the host is going down', () => {
  const types = (): readonly (readonly [string, string])[] =>
    shown.events.list().map(({ type, message }) => [type, message])

  it('is no warning, nor is what went wrong just before that was known', async () => {
    recorder.record(event('long before'))
    await clock.advance(60_000)
    recorder.recordNode({ type: 'Normal', reason: 'Fine', message: 'fine' })
    isHostStopping = true
    recorder.record(event('killed', { reason: 'Unhealthy' }))
    recorder.record(event('long before'))
    await clock.settle()
    recorder.record(event('not started'))
    recorder.record(event('not started'))
    expect(types()).toEqual([
      ['Normal', 'fine'],
      ['Warning', 'long before'],
      ['Normal', 'killed (the host was going down)'],
      ['Normal', 'not started (the host was going down)'],
    ])
    expect(told().at(-1)).toEqual(['not started (the host was going down)', 2])
    await recorder.flush()
    reboot(clock.wallMs() + 60_000)
    await recorder.load()
    expect(types().filter(([type]) => type === 'Warning')).toEqual([['Warning', 'long before']])
  })

  it.each(['FailedMount', 'DaemonMemoryLimit', 'ContainerdExited'])(
    'is a warning as before, a %s just before that was known: a shutdown causes none, and may have come of it',
    async (reason) => {
      recorder.record(event('broken disk', { reason }))
      await clock.advance(5000)
      isHostStopping = true
      await shutdown.look()
      expect(types()).toEqual([['Warning', 'broken disk']])
    },
  )

  it('was a warning after all, what went wrong before a shutdown that is called off', async () => {
    isHostStopping = true
    recorder.record(event('killed', { reason: 'Unhealthy' }))
    await clock.settle()
    recorder.record(event('killed', { reason: 'Unhealthy' }))
    recorder.record(event('not started', { reason: 'FailedSync' }))
    isHostStopping = false
    await clock.advance(5000)
    expect(types().toSorted(([, one], [, other]) => one.localeCompare(other))).toEqual([
      ['Warning', 'killed'],
      ['Normal', 'not started (the host was going down)'],
    ])
    expect(told().find(([message]) => message === 'killed')).toEqual(['killed', 2])
  })

  it('is a warning again once the shutdown is called off', async () => {
    isHostStopping = true
    await shutdown.look()
    isHostStopping = false
    await clock.advance(5000)
    recorder.record(event('broken'))
    await clock.settle()
    expect(types()).toEqual([['Warning', 'broken']])
  })
})
