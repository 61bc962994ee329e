import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { SourceSnapshot } from '../../../src/pod/objects/document.ts'
import type { NodeEvent } from '../../../src/pod/state/pod-event.ts'
import { SourceTrials } from '../../../src/sources/source-trials.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { smallFile } from '../../../src/store/state-report.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { makeScratch, summarize } from './source-rig.ts'
import { slowness } from '../../support/slowness.ts'

const location = '/etc/pods'
const periodMs = 300_000

let scratch = ''
let crashReports: number[] = []
let removeScratch = async (): Promise<void> => undefined

beforeEach(async () => {
  const made = await makeScratch()
  crashReports = []
  scratch = made.path
  removeScratch = made.remove
})

afterEach(async () => removeScratch())

function snapshotOf(...images: readonly string[]): SourceSnapshot {
  const pods = images.map((image) => {
    const metadata = { name: image }
    const manifest = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: { containers: [{ name: 'main', image }] },
    }
    return { pod: podFromManifest(manifest), manifest, place: { path: `${location}/${image}.yaml` } }
  })
  return { source: 'file', location, ready: true, pods, objects: [], problems: [] }
}

/** One start of podd, with a source that gives `gives` and has the fingerprint of the same name. */
class Start {
  readonly clock = new ManualClock()
  readonly seen: ReturnType<typeof summarize>[] = []
  readonly events: NodeEvent[] = []
  readonly unreadable: string[] = []
  /** Whether each that was seen runs in place of what the source gives. */
  readonly standIns: boolean[] = []
  readonly #stop = new AbortController()
  readonly #trials: SourceTrials
  gives: string
  isRead = false
  give: (snapshot: SourceSnapshot) => void = () => undefined

  constructor(gives: string, { boot = 'boot-1', podd = '1.0' } = {}) {
    const reports = [...crashReports]
    this.gives = gives
    this.#trials = new SourceTrials({
      file: smallFile(join(scratch, 'trial.json')),
      copies: createLastGoodStore(join(scratch, 'worked')),
      sources: [
        {
          name: 'file',
          location,
          fingerprint: async () => (this.gives === 'away' ? undefined : `print of ${this.gives}`),
          source: {
            run: async (onSnapshot, signal) => {
              this.isRead = true
              this.give = onSnapshot
              onSnapshot(snapshotOf(this.gives))
              await new Promise((resolve) => signal.addEventListener('abort', resolve))
            },
          },
        },
      ],
      bootId: boot,
      reports,
      poddVersion: podd,
      periodMs,
      events: { recordNode: (event) => this.events.push(event) },
      report: ({ path }) => this.unreadable.push(path),
      clock: this.clock,
      logger: silentLogger,
    })
  }

  async begin(): Promise<this> {
    await this.#trials.begin()
    const onSnapshot = (snapshot: SourceSnapshot): void => {
      this.standIns.push(snapshot.standsIn === 'crashed')
      this.seen.push(summarize(snapshot))
    }
    void this.#trials.wrap({ name: 'file' }).run(onSnapshot, this.#stop.signal)
    await this.until(() => this.seen.length > 0)
    return this
  }

  /** The disk is real: what goes there takes turns of the event loop. */
  async until(holds: () => boolean): Promise<void> {
    const deadlineMs = systemClock.monotonicMs() + 10_000 * slowness
    while (!holds() && systemClock.monotonicMs() < deadlineMs) {
      await this.clock.settle()
      await systemClock.sleep(1)
    }
    expect(holds()).toBe(true)
  }

  async work(): Promise<void> {
    await this.clock.advance(periodMs)
    await this.until(() =>
      readFileSync(join(scratch, 'trial.json'), 'utf8').includes(`print of ${this.gives}`),
    )
  }

  async end(): Promise<void> {
    this.#stop.abort()
    await this.#trials.noteEnd()
  }

  get pods(): readonly string[] {
    return this.seen.at(-1)?.pods.map((pod) => pod.split('=')[1] ?? '') ?? []
  }
}

const start = (gives: string, options?: { boot?: string; podd?: string }): Promise<Start> =>
  new Start(gives, options).begin()

async function crash(gives: string, times: number, options?: { podd?: string }): Promise<void> {
  for (let left = times; left > 0; left -= 1) {
    expect((await start(gives, options)).pods).toEqual([gives])
    crashReports.push(crashReports.length)
  }
}

describe('a source on trial', () => {
  it('is replaced by the last set that worked after the third crash since it changed, with a problem and an event', async () => {
    const first = await start('good')
    await first.work()
    await first.end()
    await crash('bad', 3)
    const held = await start('bad')
    expect(held.pods).toEqual(['good'])
    expect([held.isRead, held.standIns]).toEqual([false, [true]])
    expect(held.seen[0]?.problems[0]).toMatch(/the last set that worked runs instead \(1 pods\)/u)
    expect(held.events.map(({ reason }) => reason)).toEqual(['SourceHeld'])
    await held.end()
    const again = await start('bad')
    expect(again.pods).toEqual(['good'])
    again.gives = 'away'
    await again.clock.advance(60_000)
    expect(again.pods).toEqual(['good'])
    again.gives = 'mended'
    await again.clock.advance(10_000)
    await again.until(() => again.pods[0] === 'mended')
    expect(again.events.map(({ reason }) => reason)).toEqual(['SourceHeld', 'SourceFollowed'])
    await again.work()
    await crash('bad', 1)
    expect((await start('mended')).pods).toEqual(['mended'])
  })

  it('is followed by another version of podd, which holds it again where that crashes too', async () => {
    const first = await start('good')
    await first.work()
    await first.end()
    await crash('bad', 3)
    const held = await start('bad')
    expect(held.pods).toEqual(['good'])
    await held.end()
    await crash('bad', 3, { podd: '1.1' })
    expect((await start('bad', { podd: '1.1' })).pods).toEqual(['good'])
  })

  it.each([
    ['podd ended by itself in between', async () => (await start('bad')).end()],
    ['the host lost its power in between', async () => void (await start('bad', { boot: 'boot-2' }))],
  ])('is followed where %s', async (_title, between) => {
    const first = await start('good')
    await first.work()
    await crash('bad', 1)
    await between()
    await crash('bad', 1)
    expect((await start('bad')).pods).toEqual(['bad'])
  })

  it('is followed however often podd is killed', async () => {
    const first = await start('good')
    await first.work()
    for (let kills = 0; kills < 5; kills += 1) expect((await start('late')).pods).toEqual(['late'])
    await crash('late', 2)
    expect((await start('late')).pods).toEqual(['late'])
    await crash('late', 1)
    expect((await start('late')).pods).toEqual(['good'])
  })

  it('is followed where nothing of it worked before, or where it has not changed', async () => {
    await crash('bad', 4)
    expect((await start('bad')).pods).toEqual(['bad'])
    await (await start('bad')).end()
    await (await start('bad')).work()
    await crash('bad', 4)
    expect((await start('bad')).pods).toEqual(['bad'])
  })

  it('is followed where the record of earlier starts is unreadable, which is reported', async () => {
    const first = await start('good')
    await first.work()
    await crash('bad', 3)
    writeFileSync(join(scratch, 'trial.json'), '{"version":1,"boot')
    const next = await start('bad')
    expect(next.pods).toEqual(['bad'])
    expect(next.unreadable).toEqual([join(scratch, 'trial.json.unreadable')])
    expect(readFileSync(join(scratch, 'trial.json.unreadable'), 'utf8')).toBe('{"version":1,"boot')
  })
})
