import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import type { SourceSnapshot } from '../../../src/pod/objects/document.ts'
import { ApiObjects } from '../../../src/sources/written/api-objects.ts'
import type { DirectoryHint } from '../../../src/sources/watch-directory.ts'

/** A source over a directory of its own, whose hints the test gives. */
class ObjectsRig {
  readonly directory: string
  readonly objects: ApiObjects
  readonly snapshots: SourceSnapshot[] = []
  readonly #stop = new AbortController()
  #onHint: (hint: DirectoryHint) => void = () => {}
  #running: Promise<void> = Promise.resolve()

  constructor(directory: string, recorded: Readonly<Record<string, string>> = {}) {
    this.directory = directory
    this.objects = new ApiObjects({
      directory,
      persistSecrets: false,
      logger: silentLogger,
      findRecorded: async (uid) => {
        const file = recorded[uid]
        const name = uid.replace('uid-', '')
        return file === undefined ? undefined : { namespace: 'default', name, path: join(directory, file) }
      },
      watch: (_, { onHint }) => {
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

  hint(name: string): Promise<void> {
    this.#onHint({ kind: 'written', name })
    return this.settled()
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
  await rig.hint(file('torn'))
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
  await rig.hint(file('web'))
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
    await rig.hint(copy)
    await rm(join(rig.directory, changed))
    await rig.hint(changed)
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
    await rig.hint(file('web'))
    expect(rig.snapshots).toHaveLength(before + 1)
    expect([rig.followed, rig.refused]).toEqual([['web uid-web b.json'], ['c.json', file('aaa')]])
    await rm(join(rig.directory, file('aaa')))
    await rig.hint(file('aaa'))

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
    await rig.hint(file('other'))
    expect([rig.followed, rig.refused]).toEqual([[], ['c.json']])
    await rig.objects.exclusively(async () => void (await rig.objects.put(pod('web'))))
    expect([rig.followed, rig.refused]).toEqual([[`web uid-web ${file('web')}`], ['c.json']])
  })

  it('that podd writes over are no problem any more', async () => {
    await using rig = await ObjectsRig.start({ [file('web')]: '{"kind": "Pod"' })
    expect(rig.refused).toEqual([file('web')])
    await rig.objects.exclusively(async () => void (await rig.objects.put(pod('web'))))
    expect([rig.followed, rig.refused]).toEqual([[`web uid-web ${file('web')}`], []])
  })
})
