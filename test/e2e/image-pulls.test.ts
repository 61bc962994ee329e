import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { HostileRegistry } from '../support/hostile-registry.ts'
import type { Fault, ImageContent, RegistryCall } from '../support/hostile-registry.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { Gates, dropPulling, messageOf, onBlob, waitingOf } from '../support/pulling-pods.ts'

const mebibyte = 1024 * 1024
const stallSeconds = 6

let registry: HostileRegistry

beforeAll(async () => {
  registry = await HostileRegistry.start()
})
afterAll(() => registry.close())

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
      for (const pod of names) dropPulling(podd, pod, name)
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
      dropPulling(podd, 'slow', name)
      const seen = new Set<string>()
      await podd.untilPod('slow', 'its progress', (pod) => {
        if (messageOf(pod) !== '') seen.add(messageOf(pod))
        return [...seen].filter((message) => / of \d\.\d MiB$/u.test(message)).length > 2
      })
      const waiting = waitingOf(await podd.untilPod('slow', 'waiting', (pod) => messageOf(pod) !== ''))
      expect(waiting.reason).toBe('ContainerCreating')
      expect(waiting.message).toMatch(/^pulling image ".*\/slow:1": /u)
      expect(await podd.cliOk('describe', 'pod', 'slow')).toMatch(/pulling image ".*\/slow:1": /u)
      expect((await podd.cli('get', 'pods', 'slow')).stderr).toMatch(/slow: pulling image ".*\/slow:1": /u)
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
        dropPulling(podd, repository, name)
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
      dropPulling(podd, repository, name)
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
      dropPulling(podd, repository, name)
      const event = await podd.untilEvent(repository, 'Failed', message)
      expect(event.message).toContain(`Failed to pull image "${name}": `)
    })

    it.concurrent('by digest show that digest, also where a tag is beside it', async () => {
      const podd = rig()
      const { digest } = registry.add('pinned')
      const image = `${registry.address}/pinned:1@${digest}`
      dropPulling(podd, 'pinned', image)
      const pod = await podd.untilReady('pinned')
      expect(containerOf(pod, 'main').image).toBe(image)
      expect(containerOf(pod, 'main').imageID).toBe(`${registry.address}/pinned@${digest}`)
    })

    // Kubernetes' own: test/e2e_node/image_pull_test.go.
    // id: image-pull-backs-off
    it.concurrent('Pull Image: Image pull retry backs off on error', { tags: ['nightly'] }, async () => {
      const podd = rig()
      const { name } = registry.add('backs-off')
      registry.misbehave('backs-off', () => ({ kind: 'status', code: 404 }))
      dropPulling(podd, 'backs-off', name, 'Always')
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
      dropPulling(podd, 'no-room', name)
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
      dropPulling(podd, 'too-large', name)
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
