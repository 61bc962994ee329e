import { beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { PodRig, podManifest } from './pod-rig.ts'

const period = 300_000
const signal = new AbortController().signal
const withImage = (image: string, more: JsonObject = {}): JsonObject => ({
  containers: [{ name: 'main', image, ...more }],
})

let rig: PodRig

/** The images that are there, without their registry. */
function present(): readonly string[] {
  return [...rig.fake.world.images.values()]
    .flatMap(({ tags }) => tags)
    .map((tag) => tag.replace('docker.io/library/', ''))
    .toSorted()
}

async function verdicts(): Promise<Readonly<Record<string, string>>> {
  const { removed, kept } = (await rig.system.node.imageGarbage?.preview(
    { kind: 'unused', young: true },
    signal,
  )) ?? { removed: [], kept: [] }
  return Object.fromEntries(
    [...removed, ...kept].map(({ image, reason, message }) => [
      (image.names[0] ?? image.id).replace('docker.io/library/', ''),
      reason === 'in-use' ? message : reason,
    ]),
  )
}

const job = () => rig.system.node.jobs.reports().find(({ name }) => name === 'collect-images')

beforeEach(() => {
  // app:1, app:2 and side:1 of 1 MB each.
  rig = new PodRig({ imageDiskBytes: 100_000_000 })
  rig.availableBytes = 90_000_000
})

describe('an image that is to be removed', () => {
  const remove = (name: string, force = false) => rig.system.node.imageGarbage?.remove(name, force, signal)

  it('goes with all its names, and others stay', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    await expect(remove('side:1')).resolves.toMatchObject({ names: ['docker.io/library/side:1'] })
    expect(present()).toEqual(['app:1', 'app:2'])
    await expect(remove('side:1')).rejects.toMatchObject({ code: 'IMAGE_NOT_FOUND' })
  })

  it('stays where a pod uses it, unless it is forced', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    await expect(remove('app:1')).rejects.toMatchObject({
      code: 'IMAGE_IN_USE',
      message: expect.stringMatching(/^docker\.io\/library\/app:1 is used by .*pod default\/web/u),
    })
    expect(present()).toContain('app:1')
    await remove('app:1', true)
    expect(present()).not.toContain('app:1')
  })

  it.each([false, true])('stays where sandboxes are made of it (force: %s)', async (force) => {
    rig.fake.addImage('localhost/podd-pause:1', { pinned: true })
    rig.sandboxImage = 'localhost/podd-pause:1'
    await rig.start()
    await expect(remove('localhost/podd-pause:1', force)).rejects.toMatchObject({
      code: 'IMAGE_IN_USE',
      message: 'localhost/podd-pause:1 is the image of the sandboxes of pods',
    })
    await expect(remove('side:1', force)).resolves.toMatchObject({ names: ['docker.io/library/side:1'] })
  })

  it('stays where it is pinned, and its users are known by its id', async () => {
    rig.fake.addImage('side:2', { pinned: true })
    await rig.start()
    await rig.apply(podManifest('web'))
    await expect(remove('side:2')).rejects.toMatchObject({ code: 'IMAGE_PINNED' })
    const users = await rig.system.node.imageGarbage?.listUsers(signal)
    expect([...(users?.values() ?? [])].flat()).toContain('pod default/web')
  })
})

describe('images', () => {
  it('stay while the disk has room', async () => {
    await rig.start()
    await rig.clock.advance(3 * period)
    expect(present()).toEqual(['app:1', 'app:2', 'side:1'])
    expect(job()).toMatchObject({ periodMs: period, runs: 4 })
  })

  it('go every five minutes when it is too full, once they are two minutes old', async () => {
    rig.availableBytes = 12_000_000
    await rig.start()
    await rig.apply(podManifest('web'))
    // Seen for the first time when podd starts.
    expect(job()).toMatchObject({ runs: 1 })
    expect(present()).toHaveLength(3)
    await rig.clock.advance(period)
    expect(present()).toEqual(['app:1'])
    expect(rig.nodeEvents.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([
      expect.stringMatching(/^FreeDiskSpaceFailed: .* \(88% of 95\.4 MiB used\)\. .*\(freed 0 bytes\)/u),
      expect.stringMatching(/^ImagesRemoved: .* 1\.9 MiB: docker.io\/library\/(app:2|side:1), /u),
      expect.stringMatching(/^FreeDiskSpaceFailed: .*\(freed 2000000 bytes\)/u),
      expect.stringMatching(/^ImageGCFailed: Insufficient free disk space/u),
    ])
    expect(job()?.error).toContain('Insufficient free disk space')
    rig.availableBytes = 90_000_000
    await rig.clock.advance(period)
    expect(job()?.error).toBeUndefined()
  })

  it('go no further than the low threshold', async () => {
    rig.availableBytes = 15_000_000
    for (const name of ['b:1', 'c:1', 'd:1', 'e:1']) rig.fake.addImage(name, { sizeBytes: 3_000_000 })
    await rig.start()
    await rig.clock.advance(period)
    expect(rig.availableBytes).toBeGreaterThanOrEqual(20_000_000)
    expect(rig.availableBytes).toBeLessThan(23_000_000)
    expect(rig.nodeEvents.map(({ reason }) => reason).slice(1)).toEqual(['ImagesRemoved'])
  })

  it('are kept for a container that has them, and when they are pinned', async () => {
    rig.fake.addImage('pinned:1', { pinned: true })
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    expect(await verdicts()).toEqual({
      'app:1': 'used by pod default/web',
      'app:2': 'unused',
      'side:1': 'unused',
      'pinned:1': 'pinned',
    })
  })

  it('are kept for a pod that waits, and for one that was refused', async () => {
    rig = new PodRig({ imageDiskBytes: 100_000_000, settings: { maxPods: 2 } })
    await rig.start()
    await rig.apply(podManifest('web'), podManifest('web-2'))
    await rig.apply(podManifest('refused', withImage('side:1')))
    await rig.apply(
      podManifest('waits', {
        initContainers: [{ name: 'prepare', image: 'app:2' }],
        ...withImage('gone:1'),
      }),
    )
    await rig.clock.advance(1000)
    expect(await verdicts()).toMatchObject({
      'app:2': 'used by pod default/waits',
      'side:1': 'used by pod default/refused',
    })
  })

  it('are kept for a pod and for the one that is to replace it', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    await rig.apply(
      podManifest('web', {
        initContainers: [{ name: 'prepare', image: 'gone:1' }],
        containers: [{ name: 'main', image: 'app:2' }],
      }),
    )
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(await verdicts()).toMatchObject({
      'app:1': 'used by pod default/web',
      'app:2': 'used by pod default/web',
      'side:1': 'unused',
    })
  })

  it('are kept for a container to go back to while its new image cannot be had', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    await rig.apply(podManifest('web', withImage('gone:1')))
    await rig.clock.advance(1000)
    // Also when the runtime has lost what ran.
    await rig.kill()
    for (const sandbox of rig.fake.world.sandboxes.values()) rig.fake.world.stopSandbox(sandbox)
    await rig.start()
    expect(await verdicts()).toMatchObject({ 'app:1': 'used by pod default/web' })
  })

  it('are only looked at before every source was read', async () => {
    rig.availableBytes = 0
    rig.boot()
    await rig.settle()
    await rig.clock.advance(3 * period)
    expect(present()).toHaveLength(3)
    expect(job()).toMatchObject({ runs: 3 })
    await expect(
      rig.system.node.imageGarbage?.collect({ kind: 'unused', young: true }, signal),
    ).rejects.toMatchObject({ code: 'IMAGES_NOT_KNOWN' })
    rig.system.offerSnapshot(rig.snapshot('file'))
    await rig.settle()
    // By now they are old enough.
    expect(present()).toEqual([])
  })

  it('are never collected where no source says what is to run', async () => {
    rig = new PodRig({ imageDiskBytes: 100_000_000, sources: [] })
    rig.availableBytes = 0
    await rig.start()
    await rig.clock.advance(3 * period)
    expect(present()).toHaveLength(3)
  })

  it('that cannot be removed keep no other from it, and are tried again', async () => {
    rig.availableBytes = 1_000_000
    await rig.start()
    const [stuck] = [...rig.fake.world.images.values()]
    rig.fake.fault(
      'RemoveImage',
      { kind: 'fails', message: 'read-only file system' },
      { when: (request) => request.image.image === stuck?.id },
    )
    await rig.clock.advance(period)
    expect(present()).toHaveLength(1)
    expect(job()?.error).toContain('read-only file system')
    await rig.clock.advance(period)
    expect(present()).toEqual([])
  })
})
