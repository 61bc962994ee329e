import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PodObject } from '../../src/api/objects.ts'
import { HostileRegistry } from '../support/hostile-registry.ts'
import type { Fault, ImageContent, RegistryCall } from '../support/hostile-registry.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

const mebibyte = 1024 * 1024
const stallSeconds = 10

let registry: HostileRegistry

beforeAll(async () => {
  registry = await HostileRegistry.start()
})
afterAll(() => registry.close())

function waitingOf(pod: PodObject): { readonly reason?: string; readonly message?: string } {
  return pod.status.containerStatuses?.[0]?.state.waiting ?? {}
}

function messageOf(pod: PodObject): string {
  return waitingOf(pod).message ?? ''
}

function drop(podd: PoddRig, name: string, image: string, imagePullPolicy = 'IfNotPresent'): void {
  podd.drop(name, shellPod(name, podd.shared, 'say up; stay', { container: { image, imagePullPolicy } }))
}

/** A fault for the newest layer of an image alone. */
function onBlob(digest: string | undefined, fault: Fault): (call: RegistryCall) => Fault | undefined {
  return ({ kind, reference }) => (kind === 'blob' && reference === digest ? fault : undefined)
}

/** What is let go one by one. */
class Gates {
  readonly #opened = new Map<string, { readonly until: Promise<void>; readonly open: () => void }>()

  of(name: string): { readonly until: Promise<void>; readonly open: () => void } {
    const known = this.#opened.get(name)
    if (known !== undefined) return known
    const { promise, resolve } = Promise.withResolvers<void>()
    const gate = { until: promise, open: () => resolve() }
    this.#opened.set(name, gate)
    return gate
  }
}

describePodd(
  'pulls of images',
  {
    config: {
      serializeImagePulls: false,
      maxParallelImagePulls: 8,
      registryPullQPS: 0,
      imagePullProgressTimeout: `${stallSeconds}s`,
    },
  },
  (rig) => {
    it.concurrent('are one for all pods that wait for the same image', async () => {
      const podd = rig()
      const { name, layers } = registry.add('shared', { layerBytes: [mebibyte] })
      const gate = new Gates().of('shared')
      registry.misbehave('shared', onBlob(layers[1], { kind: 'held', until: gate.until }))
      const names = ['shared-a', 'shared-b', 'shared-c', 'shared-d']
      for (const pod of names) drop(podd, pod, name)
      for (const pod of names) await podd.untilEvent(pod, 'Pulling')
      gate.open()
      for (const pod of names) await podd.untilReady(pod)
      const downloads = registry.callsFor('shared').filter(({ reference }) => reference === layers[1])
      expect(downloads).toHaveLength(1)
      for (const pod of names)
        await podd.untilEvent(pod, 'Pulled', /^Successfully pulled image .* Image size: \d+ bytes\.$/u)
    })

    it.concurrent('that are slow are not given up, and tell how far they are', async () => {
      const podd = rig()
      // Twice as long as a pull may go without progress; containerd tells of each MiB.
      const bytes = 6 * mebibyte
      const { name, layers, digest } = registry.add('slow', { layerBytes: [bytes] })
      const bytesPerSecond = bytes / (2 * stallSeconds)
      registry.misbehave('slow', onBlob(layers[1], { kind: 'slow', bytesPerSecond }))
      drop(podd, 'slow', name)
      const seen = new Set<string>()
      await podd.untilPod('slow', 'its progress', (pod) => {
        if (messageOf(pod) !== '') seen.add(messageOf(pod))
        return [...seen].filter((message) => / of \d\.\d MiB$/u.test(message)).length > 2
      })
      const waiting = waitingOf(await podd.untilPod('slow', 'waiting', (pod) => messageOf(pod) !== ''))
      expect(waiting.reason).toBe('ContainerCreating')
      expect(waiting.message).toMatch(/^pulling image ".*\/slow:1": /u)
      expect(await podd.cliOk('describe', 'pod', 'slow')).toMatch(/pulling image ".*\/slow:1": /u)
      expect((await podd.cli('get', 'pods', 'slow')).stderr).toMatch(
        /default\/slow: pulling image ".*\/slow:1": /u,
      )
      const pod = await podd.untilReady('slow')
      expect((await podd.events('slow')).filter(({ reason }) => reason === 'Failed')).toEqual([])
      expect(containerOf(pod, 'main').imageID).toBe(`${registry.address}/slow@${digest}`)
    })

    it.concurrent.each<
      [string, string, (digest: string | undefined) => (call: RegistryCall) => Fault | undefined, RegExp]
    >([
      ['does not answer', 'hangs', () => () => ({ kind: 'hang' }), /looking for its manifest$/u],
      [
        'stops in the middle of a layer',
        'stops',
        (digest) => onBlob(digest, { kind: 'stop', afterBytes: mebibyte }),
        / \d\.\d MiB of \d\.\d MiB$/u,
      ],
    ])(
      'are given up when the registry %s, and tried again',
      async (_title, repository, faultOf, progress) => {
        const podd = rig()
        const { name, layers } = registry.add(repository, { layerBytes: [2 * mebibyte] })
        registry.misbehave(repository, faultOf(layers[1]))
        drop(podd, repository, name)
        const pod = await podd.untilPod(repository, 'its reason', (now) =>
          /^ErrImagePull$|BackOff/u.test(waitingOf(now).reason ?? ''),
        )
        expect(messageOf(pod)).toContain(
          `the pull made no progress for ${stallSeconds}s: pulling image "${name}": `,
        )
        expect(messageOf(pod)).toMatch(progress)
        await podd.untilEvent(repository, 'Failed', /made no progress/u)
        registry.misbehave(repository, undefined)
        await podd.untilReady(repository)
      },
    )

    it.concurrent.each<[string, string, Fault, RegExp]>([
      [
        'breaks in the middle of a layer',
        'breaks',
        { kind: 'cut', afterBytes: 100_000 },
        /EOF|reset|short read/u,
      ],
      ['sends other bytes', 'lies', { kind: 'corrupt' }, /unexpected commit digest|digest/u],
      [
        'is overloaded (503)',
        'overloaded',
        { kind: 'status', code: 503, retryAfterSeconds: 1 },
        /503 Service Unavailable/u,
      ],
      [
        'limits the rate (429)',
        'limited',
        { kind: 'status', code: 429, retryAfterSeconds: 1 },
        /429 Too Many Requests/u,
      ],
    ])('fail when the registry %s, and are tried again', async (_title, repository, fault, message) => {
      const podd = rig()
      const { name, layers } = registry.add(repository, { layerBytes: [mebibyte] })
      registry.misbehave(repository, onBlob(layers[1], fault))
      drop(podd, repository, name)
      await podd.untilEvent(repository, 'Failed', message)
      const pod = await podd.untilPod(
        repository,
        'ImagePullBackOff',
        (now) => waitingOf(now).reason === 'ImagePullBackOff',
      )
      expect(messageOf(pod)).toMatch(/^Back-off pulling image ".*": ErrImagePull: /u)
      expect(messageOf(pod)).toMatch(message)
      registry.misbehave(repository, undefined)
      await podd.untilReady(repository)
    })

    it.concurrent.each<[string, string, ImageContent, RegExp]>([
      ['of another platform', 'foreign', { onlyArchitecture: 's390x' }, /no match for platform in manifest/u],
      ['whose config is no config', 'garbled', { configText: 'not json' }, /invalid character/u],
    ])('fail clearly for an image %s', async (_title, repository, content, message) => {
      const podd = rig()
      const { name } = registry.add(repository, content)
      drop(podd, repository, name)
      const event = await podd.untilEvent(repository, 'Failed', message)
      expect(event.message).toContain(`Failed to pull image "${name}": `)
    })

    it.concurrent('by digest show that digest, also where a tag is beside it', async () => {
      const podd = rig()
      const { digest } = registry.add('pinned')
      const image = `${registry.address}/pinned:1@${digest}`
      drop(podd, 'pinned', image)
      const pod = await podd.untilReady('pinned')
      expect(containerOf(pod, 'main').image).toBe(image)
      expect(containerOf(pod, 'main').imageID).toBe(`${registry.address}/pinned@${digest}`)
    })

    // Kubernetes' own: test/e2e_node/image_pull_test.go.
    // id: image-pull-backs-off
    it.concurrent('Pull Image: Image pull retry backs off on error', async () => {
      const podd = rig()
      const { name } = registry.add('backs-off')
      registry.misbehave('backs-off', () => ({ kind: 'status', code: 404 }))
      drop(podd, 'backs-off', name, 'Always')
      const began = performance.now()
      await podd.until('three attempts', async () => attemptsOf(await podd.events('backs-off')) >= 3)
      // After 10 s and 20 s.
      expect(performance.now() - began).toBeGreaterThan(25_000)
      expect(attemptsOf(await podd.events('backs-off'))).toBe(3)
    })
  },
)

function attemptsOf(events: Awaited<ReturnType<PoddRig['events']>>): number {
  return events.filter(({ reason }) => reason === 'Pulling').reduce((sum, { count }) => sum + (count ?? 1), 0)
}

/** Pods a, b, … with an image each whose layer waits at a gate; dropped one after the other. */
async function dropGated(podd: PoddRig, count: number, gates: Gates): Promise<readonly string[]> {
  const names = Array.from({ length: count }, (_, index) => `image-${'abcdefgh'[index] ?? index}`)
  for (const name of names) {
    const { name: image, layers } = registry.add(name, { layerBytes: [100_000] })
    registry.misbehave(name, onBlob(layers[1], { kind: 'held', until: gates.of(name).until }))
    drop(podd, name, image, 'Always')
    await podd.untilEvent(name, 'Pulling')
  }
  return names
}

/** The repositories that were asked for, in order. */
function asked(names: readonly string[]): readonly string[] {
  return [...new Set(registry.calls.map(({ repository }) => repository))].filter((name) =>
    names.includes(name),
  )
}

describePodd(
  'pulls of images, two at a time',
  { config: { serializeImagePulls: false, maxParallelImagePulls: 2 } },
  (rig) => {
    // Kubernetes' own: test/e2e_node/image_pull_test.go, there with 5.
    // id: parallel-image-pulls
    it('Pull Image: parallel image pull with MaxParallelImagePulls, pulls at once no more images than the limit, in order', async () => {
      const podd = rig()
      registry.calls.length = 0
      const gates = new Gates()
      const names = await dropGated(podd, 6, gates)
      await podd.until('two pulls', () => asked(names).length === 2)
      const third = await podd.untilPod('image-c', 'its turn is awaited', (pod) => messageOf(pod) !== '')
      expect(messageOf(third)).toMatch(
        /^waiting to pull image ".*\/image-c:1": other images are pulled before it$/u,
      )
      for (const [index, name] of names.entries()) {
        await podd.until('the next pull', () => asked(names).length === Math.min(index + 2, names.length))
        // One that may not be there for a moment shows that no further one begins.
        await new Promise((resolve) => setTimeout(resolve, 300))
        expect(asked(names)).toEqual(names.slice(0, index + 2))
        gates.of(name).open()
        await podd.untilReady(name)
      }
    })
  },
)

describePodd('pulls of images, one at a time', {}, (rig) => {
  // Kubernetes' own: test/e2e_node/image_pull_test.go.
  // id: serial-image-pulls
  it('Pull Image: serialize image pull should be waiting more', async () => {
    const podd = rig()
    registry.calls.length = 0
    const gates = new Gates()
    const names = await dropGated(podd, 2, gates)
    await podd.until('the first pull', () => asked(names).length === 1)
    await new Promise((resolve) => setTimeout(resolve, 3000))
    expect(asked(names)).toEqual(['image-a'])
    for (const name of names) gates.of(name).open()
    for (const name of names) await podd.untilReady(name)
    expect(asked(names)).toEqual(names)
    const [first, second] = await Promise.all(
      names.map(async (name) => (await podd.untilEvent(name, 'Pulled', /including waiting/u)).message),
    )
    const waited = (message = ''): readonly number[] =>
      [...message.matchAll(/(?:([\d.]+)m)?([\d.]+)(ms|s)\b/gu)].map(
        ([, minutes = '0', amount = '0', unit]) =>
          Number(minutes) * 60 + Number(amount) / (unit === 'ms' ? 1000 : 1),
      )
    const [pulled = 0, inAll = 0] = waited(second)
    expect(inAll).toBeGreaterThan(3)
    expect(inAll).toBeGreaterThan(1.5 * pulled)
    expect(first).toMatch(
      /^Successfully pulled image ".*" in .* \(.* including waiting\)\. Image size: \d+ bytes\.$/u,
    )
  })

  it('leave nothing that could be exported once containerd has deleted the layers, which podd says', async () => {
    const podd = rig()
    const kept = registry.add('kept', { layerBytes: [mebibyte] })
    const removed = registry.add('removed', { layerBytes: [mebibyte] })
    for (const { name } of [kept, removed]) await podd.cliOk('images', 'pull', name)
    // containerd deletes what nothing refers to when an image is removed.
    await podd.cliOk('images', 'rm', removed.name)
    const file = join(podd.directory, 'pulled.tar')
    const refused = await podd.cli('images', 'export', kept.name, '-o', file)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(/cannot export .*\/kept:1: containerd has only 1 of its \d blobs/u)
    expect(refused.stderr).toContain('skopeo copy')
    expect(existsSync(file)).toBe(false)
  })
})

const diskMiB = 300

describePodd(
  'pulls of images, on a small disk',
  {
    rootDisk: { sizeMiB: diskMiB },
    // Else the pressure on the disk keeps pods from starting before their images are pulled.
    config: { evictionHard: { 'memory.available': '1Mi' } },
  },
  (rig) => {
    /** Leaves so much of the disk free. */
    function fill(podd: PoddRig, freeBytes: number): () => void {
      const path = join(podd.rootDir, 'filling')
      const { bavail, bsize } = statfsSync(podd.rootDir)
      writeFileSync(path, Buffer.alloc(bavail * bsize - freeBytes))
      return () => rmSync(path)
    }

    it('do not begin without room, and begin when there is some', async () => {
      const podd = rig()
      const { name } = registry.add('no-room', { layerBytes: [mebibyte] })
      const empty = fill(podd, 8 * mebibyte)
      drop(podd, 'no-room', name)
      const event = await podd.untilEvent('no-room', 'Failed', /not enough free space/u)
      // A twentieth of the disk.
      expect(event.message).toMatch(
        /: not enough free space for the image in .*: \d\.\d MiB \(\d+ bytes\) free, 15\.0 MiB \(15728640 bytes\) needed$/u,
      )
      expect(registry.callsFor('no-room')).toEqual([])
      empty()
      await podd.untilReady('no-room')
      podd.removeManifest('no-room')
      await podd.untilGone('no-room')
    })

    it('are given up before they fill the disk', async () => {
      const podd = rig()
      const { name, layers } = registry.add('too-large', { layerBytes: [40 * mebibyte] })
      registry.misbehave('too-large', onBlob(layers[1], { kind: 'slow', bytesPerSecond: 2 * mebibyte }))
      const empty = fill(podd, 30 * mebibyte)
      drop(podd, 'too-large', name)
      const event = await podd.untilEvent('too-large', 'Failed', /not enough free space/u)
      expect(event.message).toMatch(/ free, \d\d\.\d MiB \(\d+ bytes\) needed$/u)
      const { bavail, bsize } = statfsSync(podd.rootDir)
      expect(bavail * bsize).toBeGreaterThan(8 * mebibyte)
      empty()
      registry.misbehave('too-large', undefined)
      await podd.untilReady('too-large')
    })
  },
)
