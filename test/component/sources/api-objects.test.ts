import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
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

  constructor(directory: string) {
    this.directory = directory
    this.objects = new ApiObjects({
      directory,
      persistSecrets: false,
      logger: silentLogger,
      watch: (_, { onHint }) => {
        this.#onHint = onHint
        return { close: async () => {} }
      },
    })
  }

  static async start(files: Readonly<Record<string, string>> = {}): Promise<ObjectsRig> {
    const directory = join(await mkdtemp(join(tmpdir(), 'podd-objects-')), 'api')
    await mkdir(directory)
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
    const rig = new ObjectsRig(directory)
    rig.#running = rig.objects.run(async (snapshot) => void rig.snapshots.push(snapshot), rig.#stop.signal)
    await rig.settled()
    return rig
  }

  get newest(): SourceSnapshot | undefined {
    return this.snapshots.at(-1)
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
