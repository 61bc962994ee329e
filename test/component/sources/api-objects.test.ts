import {
  cp,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import type { SourceSnapshot } from '../../../src/pod/objects/document.ts'
import { ApiObjects } from '../../../src/sources/written/api-objects.ts'
import type { DirectoryHint } from '../../../src/sources/watch-directory.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** A source over a directory of its own, whose hints the test gives. */
class ObjectsRig {
  readonly directory: string
  readonly objects: ApiObjects
  readonly snapshots: SourceSnapshot[] = []
  readonly clock = new ManualClock()
  /** How often a watch was started. */
  watches = 0
  readonly #stop = new AbortController()
  #onHint: (hint: DirectoryHint) => void = () => {}
  #running: Promise<void> = Promise.resolve()

  constructor(directory: string, recorded: Readonly<Record<string, string>> = {}) {
    this.directory = directory
    this.objects = new ApiObjects({
      directory,
      persistSecrets: false,
      clock: this.clock,
      logger: silentLogger,
      findRecorded: async (uid) => {
        const file = recorded[uid]
        const name = uid.replace('uid-', '')
        return file === undefined ? undefined : { namespace: 'default', name, path: join(directory, file) }
      },
      watch: (_, { onHint }) => {
        this.watches += 1
        this.#onHint = onHint
        return { close: async () => {} }
      },
    })
  }

  /** @param recorded by UID: from which file an earlier podd ran the pod */
  static async start(
    files: Readonly<Record<string, string>> = {},
    recorded: Readonly<Record<string, string>> = {},
  ): Promise<ObjectsRig> {
    const directory = join(await mkdtemp(join(tmpdir(), 'podd-objects-')), 'api')
    await mkdir(directory)
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
    return await ObjectsRig.startIn(directory, recorded)
  }

  static async startIn(
    directory: string,
    recorded: Readonly<Record<string, string>> = {},
  ): Promise<ObjectsRig> {
    const rig = new ObjectsRig(directory, recorded)
    rig.#running = rig.objects.run(async (snapshot) => void rig.snapshots.push(snapshot), rig.#stop.signal)
    await rig.settled()
    return rig
  }

  get newest(): SourceSnapshot | undefined {
    return this.snapshots.at(-1)
  }

  /** Which file gives which pod, and which file is a problem. */
  get followed(): readonly string[] {
    return (this.newest?.pods ?? []).map(({ pod, place, kept }) =>
      [pod.metadata.name, kept?.uid, place.path.slice(this.directory.length + 1)].join(' '),
    )
  }

  get refused(): readonly string[] {
    return (this.newest?.problems ?? []).map(({ place }) => place.path.slice(this.directory.length + 1))
  }

  /** Of all snapshots from this one on, how many pods each gave. */
  countsSince(first: number): readonly number[] {
    return [...new Set(this.snapshots.slice(first).map(({ pods }) => pods.length))]
  }

  /** Something happened to the file, or to the directory itself. */
  async hint(name?: string): Promise<void> {
    this.#onHint(name === undefined ? { kind: 'directory' } : { kind: 'written', name })
    await this.settled()
  }

  /** Somebody removed the file, and some time has passed. */
  async hintGone(name: string): Promise<void> {
    await this.hint(name)
    await this.pass(100)
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms)
    await this.settled()
  }

  put(manifest: JsonObject): Promise<void> {
    return this.objects.exclusively(async () => void (await this.objects.put(manifest)))
  }

  remove(name: string): Promise<void> {
    return this.objects.exclusively(() => this.objects.remove({ kind: 'Pod', namespace: 'default', name }))
  }

  /** Whatever was begun is done. */
  settled(): Promise<void> {
    return this.objects.exclusively(async () => {})
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
    await rm(join(this.directory, '..'), { recursive: true, force: true })
  }
}

function pod(name: string, spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: `uid-${name}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { containers: [{ name: 'main', image: 'web:1' }], ...spec },
  }
}

const file = (name: string): string => `pod.default.${name}.json`

it('goes on with a pod that was valid once, and says what is wrong with it', async () => {
  const files = {
    [file('old')]: JSON.stringify(pod('old', { hostname: 'Not Valid' })),
    [file('torn')]: '{"kind": "Pod"',
  }
  await using rig = await ObjectsRig.start(files)
  expect(rig.newest?.ready).toBe(true)
  expect(rig.newest?.pods.map(({ kept }) => kept?.uid)).toEqual(['uid-old'])
  expect(rig.newest?.problems.map(({ place }) => place.path)).toEqual(
    [file('old'), file('torn')].map((name) => join(rig.directory, name)),
  )
  expect(rig.newest?.unreadable).toEqual([join(rig.directory, file('torn'))])
  await rm(join(rig.directory, file('torn')))
  await rig.hintGone(file('torn'))
  expect(rig.newest).toMatchObject({
    unreadable: [],
    problems: [{ place: { path: join(rig.directory, file('old')) } }],
  })
})

it('takes an edit that an update may make, refuses another, and takes a removal for a deletion', async () => {
  await using rig = await ObjectsRig.start()
  await rig.objects.exclusively(async () => void (await rig.objects.put(pod('web'))))
  const path = join(rig.directory, file('web'))
  const imageOf = (): string | undefined => rig.newest?.pods[0]?.pod.spec.containers[0]?.image
  await writeFile(path, JSON.stringify(pod('web', { containers: [{ name: 'main', image: 'web:2' }] })))
  await rig.hint(file('web'))
  expect([imageOf(), rig.newest?.problems]).toEqual(['web:2', []])
  await writeFile(path, JSON.stringify(pod('web', { hostNetwork: true })))
  await rig.hint(file('web'))
  expect([imageOf(), rig.newest?.problems.length]).toEqual(['web:2', 1])
  await rm(path)
  await rig.hintGone(file('web'))
  expect([rig.newest?.pods, rig.newest?.problems]).toEqual([[], []])
})

it('hears no echo of its own writes, and keeps Secrets off the disk where they may not be on it', async () => {
  await using rig = await ObjectsRig.start()
  await rig.objects.exclusively(async () => void (await rig.objects.put(pod('web'))))
  const before = rig.snapshots.length
  await rig.hint(file('web'))
  expect(rig.snapshots).toHaveLength(before)
  const metadata = { name: 's', namespace: 'default', uid: 'u' }
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, data: { a: 'MQ==' } }
  await rig.objects.exclusively(async () => void (await rig.objects.put(secret)))
  expect(rig.newest?.objects).toHaveLength(1)
  await rig.hint('secret.default.s.json')
  expect(rig.newest?.objects).toHaveLength(1)
  await using again = new ObjectsRig(rig.directory)
  expect(again.objects.list('Secret')).toEqual([])
})

it('leaves all pods as they are while the directory cannot be read', async () => {
  await using rig = await ObjectsRig.start()
  const blocked = new ObjectsRig(join(rig.directory, 'is-a-file'))
  await writeFile(blocked.directory, '')
  const stop = new AbortController()
  const snapshots: SourceSnapshot[] = []
  const running = blocked.objects.run(async (snapshot) => void snapshots.push(snapshot), stop.signal)
  await blocked.settled()
  expect(snapshots[0]).toMatchObject({ ready: false, pods: [], problems: [{ severity: 'error' }] })
  await expect(blocked.put(pod('web'))).rejects.toMatchObject({ code: 'OBJECT_NOT_KEPT' })
  // It is tried again without a hint.
  await rm(blocked.directory)
  await mkdir(blocked.directory)
  await writeFile(join(blocked.directory, file('db')), JSON.stringify(pod('db')))
  await blocked.pass(1_000)
  await blocked.hint('pod.default.none.json')
  await blocked.pass(1_000)
  expect(snapshots.at(-1)).toMatchObject({ ready: true, pods: [{}], problems: [] })
  expect(blocked.clock.pendingTimers).toBe(0)
  stop.abort()
  await running
})

function withUid(manifest: JsonObject, uid: string): string {
  return JSON.stringify({ ...manifest, metadata: { ...Object(manifest['metadata']), uid } })
}

describe('files of one object', () => {
  const web = JSON.stringify(pod('web'))

  it('that come while it runs change nothing, and are named', async () => {
    await using rig = await ObjectsRig.start({ [file('web')]: web })
    const [running] = rig.newest?.pods ?? []
    const [copy, changed, renamed] = ['a-copy.json', 'b-changed.json', file('aaa')]
    await writeFile(join(rig.directory, copy), web)
    await rig.hint(copy)
    await writeFile(join(rig.directory, changed), withUid(pod('web', { hostNetwork: true }), 'other'))
    await rig.hint(changed)
    await writeFile(join(rig.directory, renamed), withUid(pod('aaa'), 'uid-web'))
    await rig.hint(renamed)
    expect(rig.newest?.pods).toEqual([running])
    expect(rig.newest?.pods[0]).toBe(running)
    const path = join(rig.directory, file('web'))
    const stands = `pod default/web stands in ${path} too, which is followed; this one is not`
    const hint =
      'Remove one of the two files. To have both objects, give this one another metadata.name and metadata.uid.'
    const problem = (name: string, object: string, message: string) => ({
      severity: 'error',
      place: { path: join(rig.directory, name) },
      object,
      message,
      hint,
    })
    expect(rig.newest?.problems).toEqual([
      problem(copy, 'default/web', stands),
      problem(changed, 'default/web', stands),
      problem(
        renamed,
        'default/aaa',
        `pod default/aaa has the metadata.uid of pod default/web in ${path}, which is followed; this one is not`,
      ),
    ])
    expect(rig.newest?.unreadable).toEqual([])
    // What is written goes to the file that is followed.
    await rig.objects.exclusively(async () => void (await rig.objects.put(pod('web', { hostname: 'x' }))))
    await rm(join(rig.directory, copy))
    await rig.hintGone(copy)
    await rm(join(rig.directory, changed))
    await rig.hintGone(changed)
    await writeFile(join(rig.directory, renamed), JSON.stringify(pod('aaa')))
    await rig.hint(renamed)
    expect(rig.newest?.problems).toEqual([])
    expect(rig.followed).toEqual([`web uid-web ${file('web')}`, `aaa uid-aaa ${file('aaa')}`])
  })

  it.each([
    ['the one with the name that podd gives it', { 'a.json': web, [file('web')]: web }, {}, file('web')],
    ['else the first by name', { 'b.json': web, 'a.json': web, 'c.json': web }, {}, 'a.json'],
    [
      'before both the one that an earlier podd ran it from',
      { 'a.json': web, 'b.json': web, [file('web')]: web },
      { 'uid-web': 'b.json' },
      'b.json',
    ],
    [
      'of one name, too',
      { 'a.json': web, [file('web')]: withUid(pod('web'), 'restored') },
      { 'uid-web': 'a.json' },
      'a.json',
    ],
    [
      'else one of the same name',
      { [file('aaa')]: withUid(pod('aaa'), 'uid-web'), 'z.json': web },
      { 'uid-web': 'gone.json' },
      'z.json',
    ],
    [
      'of one UID, too',
      { [file('a')]: withUid(pod('a'), 'uid-web'), [file('web')]: web },
      { 'uid-web': file('web') },
      file('web'),
    ],
  ])('at a start: %s is followed', async (_title, files, recorded, expected) => {
    await using rig = await ObjectsRig.start(files, recorded)
    expect(rig.followed).toEqual([`web uid-web ${expected}`])
    expect(rig.refused).toEqual(
      Object.keys(files)
        .filter((name) => name !== expected)
        .sort(),
    )
  })

  it('take the place of one that is removed by hand at once, and not of one that is deleted over the API', async () => {
    const renamed = withUid(pod('aaa'), 'uid-web')
    const files = { 'b.json': web, 'c.json': web, [file('web')]: web }
    await using rig = await ObjectsRig.start({ ...files, [file('aaa')]: renamed }, { 'uid-web': file('web') })
    const before = rig.snapshots.length
    await rm(join(rig.directory, file('web')))
    await rig.hintGone(file('web'))
    expect(rig.snapshots).toHaveLength(before + 1)
    expect([rig.followed, rig.refused]).toEqual([['web uid-web b.json'], ['c.json', file('aaa')]])
    await rm(join(rig.directory, file('aaa')))
    await rig.hintGone(file('aaa'))

    const name = { kind: 'Pod', namespace: 'default', name: 'web' }
    await rig.objects.exclusively(() => rig.objects.remove(name))
    expect(rig.followed).toEqual([])
    expect(rig.newest?.problems).toMatchObject([
      {
        place: { path: join(rig.directory, 'c.json') },
        message:
          'pod default/web stood in another file too, and was deleted over the API; this one is not followed',
      },
    ])
    await rig.objects.exclusively(async () => void (await rig.objects.put(pod('other'))))
    await rm(join(rig.directory, file('other')))
    await rig.hintGone(file('other'))
    expect([rig.followed, rig.refused]).toEqual([[], ['c.json']])
    await rig.objects.exclusively(async () => void (await rig.objects.put(pod('web'))))
    expect([rig.followed, rig.refused]).toEqual([[`web uid-web ${file('web')}`], ['c.json']])
  })
})

describe('a write over the API leaves alone', () => {
  const web = JSON.stringify(pod('web'))
  const db = JSON.stringify(pod('db'))
  const other = 'pod.uid-web.json'
  const read = (rig: ObjectsRig, name: string): Promise<string> => readFile(join(rig.directory, name), 'utf8')

  it('the file of another object, and each can be deleted by itself', async () => {
    await using rig = await ObjectsRig.start({ [file('web')]: db })
    await rig.put(pod('web'))
    expect(rig.followed).toEqual([`db uid-db ${file('web')}`, `web uid-web ${other}`])
    expect(await read(rig, file('web'))).toBe(db)
    await rig.remove('db')
    expect(rig.followed).toEqual([`web uid-web ${other}`])
    expect(await readdir(rig.directory)).toEqual([other])
    await rig.put(pod('web', { hostname: 'x' }))
    expect([await readdir(rig.directory), rig.refused]).toEqual([[other], []])
  })

  it('one that cannot be parsed', async () => {
    await using rig = await ObjectsRig.start({ [file('web')]: '{"kind": "Pod"' })
    await rig.put(pod('web'))
    expect([rig.followed, rig.refused]).toEqual([[`web uid-web ${other}`], [file('web')]])
    expect(await read(rig, file('web'))).toBe('{"kind": "Pod"')
  })

  it('a duplicate, and one of which podd has not heard', async () => {
    const renamed = withUid(pod('web'), 'uid-db')
    await using rig = await ObjectsRig.start({ [file('db')]: db, [file('web')]: renamed })
    expect([rig.followed, rig.refused]).toEqual([[`db uid-db ${file('db')}`], [file('web')]])
    await rig.put(pod('web'))
    expect(await read(rig, file('web'))).toBe(renamed)
    expect(rig.followed).toEqual([`db uid-db ${file('db')}`, `web uid-web ${other}`])
    await writeFile(join(rig.directory, file('new')), 'notes')
    await rig.put(pod('new'))
    expect(await read(rig, file('new'))).toBe('notes')
    expect(rig.followed).toContain('new uid-new pod.uid-new.json')
  })

  it('two that have its names: it is refused', async () => {
    await using rig = await ObjectsRig.start({ [file('web')]: 'a', [other]: 'b' })
    await expect(rig.put(pod('web'))).rejects.toMatchObject({ code: 'OBJECT_NOT_KEPT' })
    expect([await read(rig, file('web')), await read(rig, other)]).toEqual(['a', 'b'])
  })

  it('the file in which another object has come to stand', async () => {
    await using rig = await ObjectsRig.start({ [file('db')]: db, [file('web')]: web })
    await rename(join(rig.directory, file('db')), join(rig.directory, file('web')))
    await rig.hint(file('web'))
    await rig.hintGone(file('db'))
    await rig.put(pod('web', { hostname: 'x' }))
    expect(await read(rig, file('web'))).toBe(db)
    expect(rig.followed).toEqual([`web uid-web ${other}`, `db uid-db ${file('web')}`])
    expect(rig.refused).toEqual([])
    await rename(join(rig.directory, other), join(rig.directory, file('web')))
    await rig.hint(file('web'))
    await rig.hintGone(other)
    await rig.remove('db')
    expect(rig.followed).toEqual([`web uid-web ${file('web')}`])
  })
})

describe('files that are replaced', () => {
  const web = JSON.stringify(pod('web'))

  it('as tar does it: what is removed and written again is the same pod throughout', async () => {
    await using rig = await ObjectsRig.start({ [file('web')]: web, 'b-copy.json': web, 'torn.json': '{' })
    const [running] = rig.newest?.pods ?? []
    const before = rig.snapshots.length
    for (const name of ['torn.json', file('web')]) {
      const path = join(rig.directory, name)
      const text = await readFile(path)
      await unlink(path)
      await rig.hint(name)
      await rig.pass(50)
      await writeFile(path, text)
      await rig.hint(name)
      await rig.pass(1000)
    }
    expect(rig.countsSince(before)).toEqual([1])
    expect(rig.snapshots.slice(before).every(({ unreadable }) => unreadable?.length === 1)).toBe(true)
    expect(rig.newest?.pods[0]).toBe(running)
    expect(rig.refused).toEqual(['b-copy.json', 'torn.json'])
    // With another text it is an edit.
    await unlink(join(rig.directory, file('web')))
    await rig.hint(file('web'))
    await writeFile(join(rig.directory, file('web')), JSON.stringify(pod('web', { hostNetwork: true })))
    await rig.pass(100)
    expect(rig.newest?.pods).toEqual([running])
    expect(rig.refused).toContain(file('web'))
  })

  it.each([
    ['the old name first', [file('web'), 'zz.json']],
    ['the new name first', ['zz.json', file('web')]],
    ['the old name only', [file('web')]],
    ['the directory only', [undefined]],
  ])('by a rename: it is the same pod, and no problem meanwhile; %s', async (_title, hints) => {
    await using rig = await ObjectsRig.start({ [file('web')]: web })
    const before = rig.snapshots.length
    await rename(join(rig.directory, file('web')), join(rig.directory, 'zz.json'))
    for (const name of hints) await rig.hint(name)
    await rig.pass(100)
    expect(rig.followed).toEqual(['web uid-web zz.json'])
    expect(rig.countsSince(before)).toEqual([1])
    expect(rig.snapshots.flatMap(({ problems }) => problems)).toEqual([])
    expect(rig.clock.pendingTimers).toBe(0)
  })

  it('a removed one ends its pod shortly after, a deletion over the API at once', async () => {
    await using rig = await ObjectsRig.start({ [file('web')]: web, [file('db')]: JSON.stringify(pod('db')) })
    await rm(join(rig.directory, file('web')))
    await rig.hint(file('web'))
    expect(rig.followed).toHaveLength(2)
    await rig.remove('db')
    expect(rig.followed).toEqual([`web uid-web ${file('web')}`])
    await rig.pass(100)
    expect(rig.followed).toEqual([])
    await rig.hint(file('db'))
    expect([rig.clock.pendingTimers, rig.refused]).toEqual([0, []])
  })

  it('one that is deleted or written over the API while it is missing is not missing any more', async () => {
    await using rig = await ObjectsRig.start({ [file('web')]: web, [file('db')]: JSON.stringify(pod('db')) })
    for (const name of [file('web'), file('db')]) {
      await rm(join(rig.directory, name))
      await rig.hint(name)
    }
    await rig.remove('web')
    await rig.put(pod('db', { hostname: 'x' }))
    await rig.pass(1000)
    expect(rig.followed).toEqual([`db uid-db ${file('db')}`])
    expect(await readdir(rig.directory)).toEqual([file('db')])
  })
})

describe('the directory', () => {
  it('is made again where it is removed with nothing in it, and watched', async () => {
    await using rig = await ObjectsRig.start()
    await rm(rig.directory, { recursive: true })
    await rig.hint()
    expect(await readdir(rig.directory)).toEqual([])
    expect((await stat(rig.directory)).mode & 0o777).toBe(0o700)
    expect([rig.refused, rig.watches]).toEqual([[], 2])
    await writeFile(join(rig.directory, file('web')), JSON.stringify(pod('web')))
    await rig.hint(file('web'))
    expect(rig.followed).toEqual([`web uid-web ${file('web')}`])
  })

  const web = JSON.stringify(pod('web'))
  const files = { [file('web')]: web, [file('db')]: JSON.stringify(pod('db')) }

  it('may be replaced by a backup: its pods go on, and those that are not in it end', async () => {
    await using rig = await ObjectsRig.start(files)
    const running = rig.newest?.pods.find(({ pod: { metadata } }) => metadata.name === 'web')
    const before = rig.snapshots.length
    await cp(rig.directory, `${rig.directory}.backup`, { recursive: true })
    await rm(join(`${rig.directory}.backup`, file('db')))
    await writeFile(join(`${rig.directory}.backup`, file('new')), JSON.stringify(pod('new')))
    await rename(rig.directory, `${rig.directory}.old`)
    await rig.hint()
    await rig.pass(60_000)
    expect(rig.newest).toMatchObject({
      ready: true,
      pods: [{}, {}],
      problems: [{ place: { path: rig.directory } }],
    })
    await expect(rig.put(pod('other'))).rejects.toMatchObject({ code: 'OBJECT_NOT_KEPT' })
    await expect(rig.remove('web')).rejects.toMatchObject({ code: 'OBJECT_NOT_KEPT' })
    await rename(`${rig.directory}.backup`, rig.directory)
    await rig.hint()
    expect(rig.refused).toEqual([])
    expect(rig.newest?.pods).toHaveLength(3)
    expect(rig.watches).toBe(2)
    await rig.pass(5_000)
    expect(rig.followed).toEqual([`web uid-web ${file('web')}`, `new uid-new ${file('new')}`])
    expect(rig.newest?.pods[0]).toBe(running)
    expect(rig.countsSince(before)).toEqual([2, 3])
  })

  it('may be replaced without a hint: the next write finds out', async () => {
    await using rig = await ObjectsRig.start(files)
    await rename(rig.directory, `${rig.directory}.old`)
    await expect(rig.put(pod('other'))).rejects.toMatchObject({ code: 'OBJECT_NOT_KEPT' })
    await mkdir(rig.directory)
    await rig.put(pod('other'))
    expect(rig.newest?.pods).toHaveLength(3)
    await rig.pass(5_000)
    expect(rig.followed).toEqual([`other uid-other ${file('other')}`])
  })

  it('may have entries that cannot be read: the others are followed, and these left as they are', async () => {
    await using rig = await ObjectsRig.start(files)
    const directory = `${rig.directory}.2`
    await cp(rig.directory, directory, { recursive: true })
    await mkdir(join(directory, 'a-directory.json'))
    await symlink('loop.json', join(directory, 'loop.json'))
    await symlink('nowhere', join(directory, 'dangling.json'))
    await rename(rig.directory, `${rig.directory}.old`)
    await rename(directory, rig.directory)
    await using again = await ObjectsRig.startIn(rig.directory)
    expect(again.followed).toEqual([`db uid-db ${file('db')}`, `web uid-web ${file('web')}`])
    const odd = ['a-directory.json', 'dangling.json', 'loop.json']
    expect([again.newest?.ready, again.refused]).toEqual([true, odd])
    expect(again.newest?.problems[0]?.message).toBe('is a directory: what is in it is not read')
    expect(again.newest?.unreadable).toEqual(odd.map((name) => join(rig.directory, name)))
    await again.put(pod('new'))
    expect(again.followed).toHaveLength(3)
    // What is followed stays.
    await rm(join(rig.directory, file('web')))
    await symlink('loop.json', join(rig.directory, file('web')))
    await again.hintGone(file('web'))
    expect(again.followed).toHaveLength(3)
    expect(again.refused).toEqual([...odd, file('web')])
  })
})
