import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { SourceDocument, SourceSnapshot } from '../../../src/pod/objects/document.ts'
import { isObjectDocument, isPodDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import type { NodeEvent } from '../../../src/pod/state/pod-event.ts'
import { SourceHolds } from '../../../src/sources/source-holds.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { smallFile } from '../../../src/store/state-report.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { SourceRun, makeScratch, summarize } from './source-rig.ts'

const location = '/etc/pods'
let scratch = ''
let removeScratch = async (): Promise<void> => undefined
const runs: SourceRun[] = []

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
})

afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.stop()))
  await removeScratch()
})

function pod(image: string): SourceDocument {
  const metadata = { name: 'web' }
  const manifest = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { containers: [{ name: 'main', image }] },
  }
  return { pod: podFromManifest(manifest), manifest, place: { path: `${location}/web.yaml` } }
}

function secret(name: string): SourceDocument {
  const manifest = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: { a: 'b' } }
  return { object: objectFromManifest(manifest), manifest, place: { path: `${location}/secret.yaml` } }
}

function snapshotOf(documents: readonly SourceDocument[], error?: string): SourceSnapshot {
  return {
    source: 'file',
    location,
    ready: true,
    pods: documents.filter((document) => isPodDocument(document)),
    objects: documents.filter((document) => isObjectDocument(document)),
    problems: error === undefined ? [] : [{ severity: 'error', place: { path: location }, message: error }],
  }
}

/** One start of podd, with a source that gives what it is told to. */
class Start {
  readonly clock = new ManualClock()
  readonly events: NodeEvent[] = []
  readonly unreadable: string[] = []
  readonly holds: SourceHolds
  readonly source: Parameters<SourceHolds['wrap']>[0]
  give: (snapshot: SourceSnapshot) => void = () => undefined

  constructor({ persistSecrets = true } = {}) {
    this.holds = new SourceHolds({
      file: smallFile(join(scratch, 'holds.json')),
      copies: createLastGoodStore(join(scratch, 'held'), { persistSecrets }),
      persistSecrets,
      report: ({ path }) => this.unreadable.push(path),
      events: { recordNode: (event) => this.events.push(event) },
      clock: this.clock,
      logger: silentLogger,
    })
    this.source = {
      name: 'file',
      location,
      source: {
        run: async (onSnapshot, signal) => {
          this.give = onSnapshot
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
        },
      },
    }
  }

  /** Resolves once the source itself runs. */
  async begin(): Promise<SourceRun> {
    await this.holds.begin()
    const running = new Promise<void>((resolve) => {
      const { source } = this.source
      const told: typeof source = {
        run: (onSnapshot, signal) => {
          const done = source.run(onSnapshot, signal)
          resolve()
          return done
        },
      }
      runs.push(new SourceRun(this.holds.wrap({ ...this.source, source: told })))
    })
    await running
    const run = runs.at(-1)
    if (run === undefined) throw new Error('nothing runs')
    return run
  }

  async stop(): Promise<void> {
    await runs.pop()?.stop()
  }
}

const podsOf = (run: SourceRun): readonly string[] => {
  const newest = run.last()
  return newest === undefined ? [] : summarize(newest).pods
}

describe('a held source', () => {
  it('keeps to what it gave, tells what waits and what is wrong, and applies it when it is resumed', async () => {
    const start = new Start()
    const run = await start.begin()
    start.give(snapshotOf([pod('one')]))
    expect(await start.holds.hold(start.source)).toBe(true)
    expect(await start.holds.hold(start.source)).toBe(false)
    start.give(snapshotOf([pod('two')]))
    expect(podsOf(run)).toEqual(['web=one'])
    start.give(snapshotOf([], 'the directory is gone'))
    expect(podsOf(run)).toEqual(['web=one'])
    expect(run.last()?.problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^held since .+: changes are not applied; pending: 1 removed$/u),
      'the directory is gone',
    ])
    expect(start.holds.state('file')).toMatchObject({
      heldSinceMs: start.clock.wallMs(),
      errorsSinceMs: start.clock.wallMs(),
      pending: { added: [], changed: [], removed: ['Pod default/web'] },
    })
    start.give(snapshotOf([pod('two')]))
    expect(start.holds.state('file').pending?.changed).toEqual(['Pod default/web'])
    expect(await start.holds.resume(start.source)).toBe(true)
    expect(podsOf(run)).toEqual(['web=two'])
    expect(run.last()?.problems).toEqual([])
    expect(await start.holds.resume(start.source)).toBe(false)
    expect(start.events.map(({ reason }) => reason)).toEqual(['SourceFrozen', 'SourceResumed'])
  })

  it('is held after a restart too, before it is read, and without anything to read', async () => {
    const first = new Start()
    await first.begin()
    first.give(snapshotOf([pod('one')]))
    await first.holds.hold(first.source)
    await first.stop()
    const second = new Start()
    const run = await second.begin()
    expect(podsOf(run)).toEqual(['web=one'])
    expect(run.last()?.ready).toBe(true)
    expect(second.holds.state('file')).toMatchObject({ pending: undefined })
    second.give(snapshotOf([pod('two')]))
    expect(podsOf(run)).toEqual(['web=one'])
    await second.holds.resume(second.source)
    await second.stop()
    const third = new Start()
    const followed = await third.begin()
    third.give(snapshotOf([pod('two')]))
    expect(podsOf(followed)).toEqual(['web=two'])
  })

  it('ends no pod and starts none where it had given nothing when it was held', async () => {
    const first = new Start()
    const run = await first.begin()
    await first.holds.hold(first.source)
    first.give(snapshotOf([pod('one')]))
    expect(run.last()).toMatchObject({ ready: false, pods: [] })
    await first.stop()
    const second = new Start()
    expect((await second.begin()).last()).toMatchObject({ ready: false, pods: [] })
  })

  it('ends no pod and starts none where what it gave is lost', async () => {
    const first = new Start()
    await first.begin()
    first.give(snapshotOf([pod('one')]))
    await first.holds.hold(first.source)
    await first.stop()
    await rm(join(scratch, 'held'), { recursive: true })
    const second = new Start()
    const run = await second.begin()
    second.give(snapshotOf([pod('two')]))
    expect(run.last()).toMatchObject({ ready: false, pods: [] })
  })

  it('takes the Secrets that it gives first after a restart where none are kept on disk', async () => {
    const first = new Start({ persistSecrets: false })
    await first.begin()
    first.give(snapshotOf([pod('one'), secret('token')]))
    await first.holds.hold(first.source)
    await first.stop()
    const second = new Start({ persistSecrets: false })
    const run = await second.begin()
    expect(run.last()?.objects).toEqual([])
    second.give(snapshotOf([pod('two'), secret('token')]))
    expect(podsOf(run)).toEqual(['web=one'])
    expect(run.last()?.objects).toHaveLength(1)
    expect(second.holds.state('file').pending?.changed).toEqual(['Pod default/web'])
    second.give(snapshotOf([pod('two')]))
    expect(run.last()?.objects).toHaveLength(1)
  })

  it('is followed where the record of holds cannot be read, which is reported', async () => {
    await writeFile(join(scratch, 'holds.json'), '{"version": 1')
    const start = new Start()
    const run = await start.begin()
    start.give(snapshotOf([pod('one')]))
    expect(podsOf(run)).toEqual(['web=one'])
    expect(start.unreadable).toEqual([`${join(scratch, 'holds.json')}.unreadable`])
  })
})
