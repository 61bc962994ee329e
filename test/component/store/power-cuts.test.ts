import fs from 'node:fs'
import fsPromises from 'node:fs/promises'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import type { UnitRecord } from '../../../src/decide/updates/unit-revisions.ts'
import type { SourceDocument, SourceSnapshot } from '../../../src/pod/objects/document.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { createRevisionStore } from '../../../src/store/revisions.ts'
import type { RevisionStore } from '../../../src/store/revisions.ts'
import { PodRig, podManifest } from '../control/pod-rig.ts'

/** What a process does to a disk, as far as it matters what of that a power cut leaves. */
type DiskStep =
  | { readonly kind: 'make directory'; readonly path: string }
  | { readonly kind: 'create'; readonly path: string; readonly inode: number }
  | { readonly kind: 'write'; readonly inode: number; readonly bytes: Buffer }
  | { readonly kind: 'sync'; readonly inode: number }
  | { readonly kind: 'rename'; readonly from: string; readonly path: string }
  | { readonly kind: 'remove'; readonly path: string }
  | { readonly kind: 'sync directory'; readonly path: string }

/** Notes what the functions of `node:fs` that atomic writes consist of do below a directory. */
class DiskRecorder {
  readonly steps: DiskStep[] = []
  readonly #directory: string
  readonly #open = new Map<number, number | string>()
  #inodes = 0
  readonly #real = {
    fs: {
      open: fs.open,
      write: fs.write,
      fsync: fs.fsync,
      openSync: fs.openSync,
      closeSync: fs.closeSync,
    },
    promises: { rename: fsPromises.rename, unlink: fsPromises.unlink, mkdir: fsPromises.mkdir },
  }

  constructor(directory: string) {
    this.#directory = directory
  }

  #isMine(path: unknown): path is string {
    return typeof path === 'string' && `${path}/`.startsWith(`${this.#directory}/`)
  }

  begin(): void {
    const real = this.#real
    /** Calls it, and takes a note once it has been done. */
    const noted =
      (call: (...args: never[]) => unknown, note: (args: readonly unknown[], result: unknown) => void) =>
      (...args: readonly unknown[]): unknown => {
        const callback: unknown = args.at(-1)
        if (typeof callback !== 'function') return Reflect.apply(call, fs, args)
        const whenDone = (error: unknown, ...results: readonly unknown[]): void => {
          if (error === null) note(args, results[0])
          Reflect.apply(callback, undefined, [error, ...results])
        }
        return Reflect.apply(call, fs, [...args.slice(0, -1), whenDone])
      }
    Object.assign(fs, {
      open: noted(real.fs.open, ([path], file) => {
        if (!this.#isMine(path) || typeof file !== 'number') return
        this.#inodes += 1
        this.#open.set(file, this.#inodes)
        this.steps.push({ kind: 'create', path, inode: this.#inodes })
      }),
      write: noted(real.fs.write, ([file, bytes, at], written) => {
        const inode = this.#open.get(Number(file))
        if (typeof inode !== 'number' || !(bytes instanceof Uint8Array)) return
        const end = Number(at) + Number(written)
        this.steps.push({ kind: 'write', inode, bytes: Buffer.from(bytes.subarray(Number(at), end)) })
      }),
      fsync: noted(real.fs.fsync, ([file]) => {
        const opened = this.#open.get(Number(file))
        if (typeof opened === 'number') this.steps.push({ kind: 'sync', inode: opened })
        else if (opened !== undefined) this.steps.push({ kind: 'sync directory', path: opened })
      }),
      openSync: (...args: Parameters<typeof fs.openSync>) => {
        const file = real.fs.openSync(...args)
        if (this.#isMine(args[0])) this.#open.set(file, args[0])
        return file
      },
      closeSync: (file: number) => {
        this.#open.delete(file)
        real.fs.closeSync(file)
      },
    })
    Object.assign(fsPromises, {
      rename: async (from: string, path: string) => {
        await real.promises.rename(from, path)
        if (this.#isMine(path)) this.steps.push({ kind: 'rename', from, path })
      },
      unlink: async (path: string) => {
        await real.promises.unlink(path)
        if (this.#isMine(path)) this.steps.push({ kind: 'remove', path })
      },
      mkdir: async (...args: Parameters<typeof fsPromises.mkdir>) => {
        const made = await real.promises.mkdir(...args)
        if (this.#isMine(args[0])) this.steps.push({ kind: 'make directory', path: args[0] })
        return made
      },
    })
    syncBuiltinESMExports()
  }

  end(): void {
    Object.assign(fs, this.#real.fs)
    Object.assign(fsPromises, this.#real.promises)
    syncBuiltinESMExports()
  }
}

/** By their paths. */
type Files = ReadonlyMap<string, Buffer>

/**
 * What may be on the disk after a power cut behind these steps: of the changes of names in a directory any number of the first
 * ones, but all before its last sync; of what was written to a file since its last sync all, nothing, or a part.
 */
function listRemains(steps: readonly DiskStep[]): readonly Files[] {
  const names = steps.flatMap((step, at) =>
    'path' in step && step.kind !== 'sync directory' ? [{ step, at, directory: dirname(step.path) }] : [],
  )
  const directories = [...new Set(names.map(({ directory }) => directory))]
  const counts = directories.map((directory) => {
    const own = names.filter((each) => each.directory === directory)
    const syncedAt = steps.findLastIndex((step) => step.kind === 'sync directory' && step.path === directory)
    const least = own.filter(({ at }) => at < syncedAt).length
    return Array.from({ length: own.length - least + 1 }, (_, more) => ({ directory, count: least + more }))
  })
  const choices = counts.reduce<readonly (readonly { directory: string; count: number }[])[]>(
    (before, next) => before.flatMap((chosen) => next.map((each) => [...chosen, each])),
    [[]],
  )
  return choices.flatMap((chosen) =>
    (['all', 'nothing', 'a part'] as const).map((unsynced) => {
      const left = new Map(chosen.map(({ directory, count }) => [directory, count]))
      const inodes = new Map<string, number>()
      const made = new Set<string>()
      for (const { step, directory } of names) {
        const count = left.get(directory) ?? 0
        if (count === 0) continue
        left.set(directory, count - 1)
        if (step.kind === 'make directory') made.add(step.path)
        else if (step.kind === 'create') inodes.set(step.path, step.inode)
        else if (step.kind === 'rename') {
          const inode = inodes.get(step.from)
          inodes.delete(step.from)
          if (inode !== undefined) inodes.set(step.path, inode)
        } else inodes.delete(step.path)
      }
      const isThere = (path: string): boolean =>
        made.has(dirname(path)) || !names.some(({ step }) => step.path === dirname(path))
      return new Map(
        [...inodes].flatMap(([path, inode]) =>
          isThere(path) ? [[path, contentOf(steps, inode, unsynced)] as const] : [],
        ),
      )
    }),
  )
}

function contentOf(
  steps: readonly DiskStep[],
  inode: number,
  unsynced: 'all' | 'nothing' | 'a part',
): Buffer {
  const syncedAt = steps.findLastIndex((step) => step.kind === 'sync' && step.inode === inode)
  const writes = steps.map((step) => (step.kind === 'write' && step.inode === inode ? step.bytes : ''))
  const joined = (parts: readonly (Buffer | '')[]): Buffer =>
    Buffer.concat(parts.filter((part) => part !== ''))
  const rest = joined(writes.slice(syncedAt + 1))
  const length = unsynced === 'all' ? rest.length : unsynced === 'nothing' ? 0 : rest.length >> 1
  return Buffer.concat([joined(writes.slice(0, syncedAt + 1)), rest.subarray(0, length)])
}

/** A write of the gate, and what the directory gave then. */
interface GateWrite {
  readonly write: (store: RevisionStore) => Promise<unknown>
  readonly given: SourceSnapshot
}

const started: string[] = []

function newRig(): PodRig {
  const rig = new PodRig()
  started.length = 0
  rig.fake.script('main', ({ config }) => {
    const [program = ''] = config.command
    started.push(program)
    return program.startsWith('bad') ? { kind: 'exits', exitCode: 1, afterMs: 100 } : { kind: 'runs' }
  })
  return rig
}

/** What the directory gives: one file with a pod of this command. */
function snapshotOf(command: string | undefined, path = '/file/web.yaml'): SourceSnapshot {
  const manifest: JsonObject = podManifest('web', {
    containers: [{ name: 'main', image: 'app:1', command: [command ?? ''] }],
  })
  const pods =
    command === undefined
      ? []
      : [{ pod: podFromManifest(manifest), manifest, written: command, place: { path } }]
  return { source: 'file', location: '/file', ready: true, isAnswer: true, pods, objects: [], problems: [] }
}

const commandOf = ({ pods: [first] }: SourceSnapshot): string | undefined =>
  first?.pod.spec.containers[0]?.command[0]

/** Two bad updates that are gone back from, each followed by a good one; a file that is renamed and one that is removed. */
const life: readonly (readonly [command: string | undefined, path?: string])[] = [
  ['good-1'],
  ['bad-1'],
  ['good-2'],
  ['bad-2'],
  ['bad-2', '/file/site.yaml'],
  ['good-3', '/file/site.yaml'],
  [undefined],
]

async function recordLife(): Promise<readonly GateWrite[]> {
  const rig = newRig()
  const writes: GateWrite[] = []
  let given = snapshotOf(undefined)
  const { revisions } = rig
  const [save, move, remove] = [
    revisions.save.bind(revisions),
    revisions.move.bind(revisions),
    revisions.remove.bind(revisions),
  ]
  Object.assign(revisions, {
    save(record: UnitRecord, contents: ReadonlyMap<string, readonly SourceDocument[]>) {
      const [kept, all] = [structuredClone(record), new Map(contents)]
      writes.push({ write: (store) => store.save(kept, all), given })
      return save(record, contents)
    },
    move(before: UnitRecord, record: UnitRecord) {
      const [from, to] = [structuredClone(before), structuredClone(record)]
      writes.push({ write: (store) => store.move(from, to), given })
      return move(before, record)
    },
    remove(record: UnitRecord) {
      const gone = structuredClone(record)
      writes.push({ write: (store) => store.remove(gone), given })
      return remove(record)
    },
  })
  rig.boot()
  for (const [command, path] of life) {
    given = snapshotOf(command, path)
    rig.system.offerSnapshot(given)
    await rig.clock.advance(45_000)
  }
  await rig.kill()
  return writes
}

let directory: string
let writes: readonly GateWrite[]
let steps: readonly DiskStep[]
/** How many steps had been done when each write was. */
const ends: number[] = []
/** What the store has after each write; the first one before all. */
const states: string[] = []

interface Loaded {
  readonly records: readonly UnitRecord[]
  readonly contents: ReadonlyMap<string, ReadonlyMap<string, readonly SourceDocument[]>>
  readonly reports: readonly string[]
}

async function load(from: string): Promise<Loaded> {
  const reports: string[] = []
  const report = ({ message }: { readonly message: string }): void => void reports.push(message)
  const store = createRevisionStore(from, { persistSecrets: true, most: 10, report })
  const records = await store.load()
  const contents = new Map<string, ReadonlyMap<string, readonly SourceDocument[]>>()
  for (const record of records) {
    const kept = await store.contents(
      record,
      record.revisions.map(({ hash }) => hash),
    )
    contents.set(record.unit, new Map([...kept].map(([hash, { documents }]) => [hash, documents])))
  }
  return { records: records.toSorted((a, b) => (a.unit < b.unit ? -1 : 1)), contents, reports }
}

const nameOf = ({ records, contents }: Loaded): string =>
  JSON.stringify([records, records.map(({ unit }) => [...(contents.get(unit)?.keys() ?? [])].toSorted())])

/** What the store finds on a disk that has these files. */
async function loadFiles(files: Files): Promise<Loaded> {
  const place = await mkdtemp(join(directory, 'cut-'))
  for (const [path, content] of files) await writeFile(join(place, basename(path)), content)
  const loaded = await load(place)
  await rm(place, { recursive: true })
  return loaded
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-power-'))
  writes = await recordLife()
  const place = join(directory, 'state', 'revisions')
  await fsPromises.mkdir(dirname(place))
  const recorder = new DiskRecorder(join(directory, 'state'))
  const store = createRevisionStore(place, { persistSecrets: true, most: 10, report: () => {} })
  states.push(nameOf(await load(place)))
  for (const { write } of writes) {
    recorder.begin()
    await write(store).finally(() => recorder.end())
    ends.push(recorder.steps.length)
    states.push(nameOf(await load(place)))
  }
  steps = recorder.steps
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** The steps with nothing in the place of those of a kind. */
function without(kind: DiskStep['kind']): readonly DiskStep[] {
  return steps.map((step) => (step.kind === kind ? { kind: 'sync', inode: 0 } : step))
}

async function isAny(cuts: Iterable<Cut>, find: (cut: Cut) => Promise<boolean>): Promise<boolean> {
  for (const cut of cuts) if (await find(cut)) return true
  return false
}

/** What may be there after a power cut, with the number of writes that were done by then. */
interface Cut {
  readonly files: Files
  readonly done: number
}

function* listCuts(of: readonly DiskStep[]): Generator<Cut> {
  for (let at = 0; at <= of.length; at += 1) {
    const done = ends.filter((end) => end <= at).length
    for (const files of listRemains(of.slice(0, at))) yield { files, done }
  }
}

describe('the revisions on a disk whose power is cut behind any step of their writes', () => {
  it('are those before the write or those after it, and never lost once it is done', async () => {
    expect(steps.length).toBeGreaterThan(40)
    let count = 0
    const faults: string[] = []
    for (const { files, done } of listCuts(steps)) {
      count += 1
      const loaded = await loadFiles(files)
      expect(loaded.reports).toEqual([])
      // In a rename both names are there for a moment.
      if (loaded.records.length < 2 && !states.slice(done, done + 2).includes(nameOf(loaded)))
        faults.push(`after ${done} writes: ${nameOf(loaded)}`)
    }
    console.log(`${count} disks behind ${steps.length} steps of ${writes.length} writes`)
    expect(faults).toEqual([])
  })

  it('are found spoiled or lost by this test where files or directories are not synced', async () => {
    const isSpoiled = async ({ files }: Cut): Promise<boolean> => (await loadFiles(files)).reports.length > 0
    const isLost = async ({ files, done }: Cut): Promise<boolean> =>
      !states.slice(done, done + 2).includes(nameOf(await loadFiles(files)))
    expect(await isAny(listCuts(without('sync')), isSpoiled)).toBe(true)
    expect(await isAny(listCuts(without('sync directory')), isLost)).toBe(true)
  })

  it('bring each unit back to a revision that runs, and none that was recorded as failed is tried again', async () => {
    const seen = new Set<string>()
    const faults: string[] = []
    for (const { files, done } of listCuts(steps)) {
      const loaded = await loadFiles(files)
      // What the directory gave when the write in flight was made, or the one that was to come.
      const before = writes[done - 1]?.given
      for (const given of [before, writes[done]?.given]) {
        if (given === undefined) continue
        const name = JSON.stringify([nameOf(loaded), commandOf(given), given.pods[0]?.place])
        if (seen.has(name)) continue
        seen.add(name)
        const fault = await bootWith(loaded, given)
        if (fault !== undefined) faults.push(`${fault} with ${name}`)
      }
    }
    console.log(`${seen.size} starts of podd`)
    expect(seen.size).toBeGreaterThan(20)
    expect(faults).toEqual([])
  })
})

/** Boots a host with these records, whose directory gives this. Gives what is wrong then; undefined for nothing. */
async function bootWith({ records, contents }: Loaded, given: SourceSnapshot): Promise<string | undefined> {
  const rig = newRig()
  for (const record of records)
    rig.revisions.saved.set(record.unit, { record, contents: contents.get(record.unit) ?? new Map() })
  const wanted = commandOf(given)
  const isRefused = records.some(
    ({ pin, offered, revisions }) =>
      pin?.why === 'failed' && revisions.find(({ number }) => number === offered)?.written === wanted,
  )
  rig.boot()
  rig.system.offerSnapshot(given)
  await rig.clock.advance(90_000)
  const running = rig.fake.containersNamed('main').filter(({ state }) => state === 'CONTAINER_RUNNING')
  const commands = running.flatMap(({ config }) => config.command[0] ?? [])
  await rig.kill()
  if (isRefused && wanted !== undefined && started.includes(wanted)) return `${wanted} was tried again`
  const [command, ...more] = commands
  const isMeant =
    wanted?.startsWith('bad') === true ? command?.startsWith('good') === true : command === wanted
  return isMeant && more.length === 0 ? undefined : `[${commands.join(', ')}] runs`
}
