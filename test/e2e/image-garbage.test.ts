import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { GarbageReport, ImageVerdict } from '../../src/api/images.ts'
import type { ImageEntry } from '../../src/api/routes.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { usedPercent } from '../../src/decide/node/plan-image-garbage.ts'
import { sandboxImageName, formatOciArchive } from '../../src/images/sandbox-image.ts'
import { shellImage } from '../support/oci-image.ts'
import { shell } from '../support/podd-program.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

const mib = 1024 * 1024
/** What an image brings that nothing compresses: once as it was imported, and once unpacked. */
const ballastBytes = 16 * mib

const imageOf = (name: string): string => `localhost/garbage/${name}:1`

/** Imports an image with a shell and ballast of its own. */
async function importImage(podd: PoddRig, name: string, ...flags: readonly string[]): Promise<void> {
  const base = shellImage(imageOf(name))
  const ballast = { kind: 'file', path: 'ballast', mode: 0o644, data: randomBytes(ballastBytes) } as const
  const archive = join(podd.directory, `${name}.tar`)
  writeFileSync(archive, formatOciArchive({ ...base, entries: [...base.entries, ballast] }))
  await podd.cliOk('images', 'import', archive, ...flags)
  rmSync(archive)
}

function disk(podd: PoddRig) {
  const { blocks, bavail, bsize } = statfsSync(podd.rootDir)
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize }
}

/** Fills the disk with something else to so many percent. */
function fillTo(podd: PoddRig, percent: number): void {
  rmSync(join(podd.rootDir, 'filler'), { force: true })
  const { capacityBytes, availableBytes } = disk(podd)
  const file = openSync(join(podd.rootDir, 'filler'), 'w')
  const chunk = Buffer.alloc(mib)
  let leftBytes = availableBytes - (capacityBytes * (100 - percent)) / 100
  for (; leftBytes > 0; leftBytes -= mib) writeSync(file, chunk)
  closeSync(file)
}

async function names(podd: PoddRig): Promise<readonly string[]> {
  const images = await podd.get<readonly ImageEntry[]>('/podd/v1/images')
  return images
    .flatMap(({ tags }) => tags)
    .filter((tag) => tag.startsWith('localhost/garbage/'))
    .map((tag) => tag.slice('localhost/garbage/'.length, -':1'.length))
    .toSorted()
}

async function collect(podd: PoddRig, ...flags: readonly string[]): Promise<GarbageReport> {
  return JSON.parse(await podd.cliOk('gc', '-o', 'json', ...flags))
}

function verdictOf(verdicts: readonly ImageVerdict[], image: string): string | undefined {
  const found = verdicts.find((each) => each.names.includes(image))
  return found === undefined ? undefined : `${found.reason}: ${found.message}`
}

/** Has a pod run from an image until it has been seen, and end. */
async function use(podd: PoddRig, name: string): Promise<void> {
  podd.drop(name, shellPod(name, podd.shared, 'stay', { container: { image: imageOf(name) } }))
  await podd.untilReady(name)
  await collect(podd, '--dry-run')
  podd.removeManifest(name)
  await podd.untilGone(name)
}

async function nodeEvent(podd: PoddRig, reason: string, message: RegExp): Promise<void> {
  const event = await podd.untilEvent('box', reason, message)
  expect(event.involvedObject).toEqual({ kind: 'Node', namespace: '', name: 'box', uid: 'box' })
}

// Whatever was seen before may go: how long podd has known an image by then differs with the machine.
const config = { imageMinimumGCAge: '1ms' }

describe('images that nobody needs', () => {
  describePodd('a small disk', { config, rootDisk: { sizeMiB: 512, ext4: true } }, (rig) => {
    it('go when it is too full, the least recently used first, down to the low threshold', async () => {
      const podd = rig()
      for (const name of ['never', 'older', 'newer', 'used', 'waited'])
        await importImage(podd, name, '--no-pin')
      await importImage(podd, 'pinned')
      podd.drop('used', shellPod('used', podd.shared, 'stay', { container: { image: imageOf('used') } }))
      podd.drop(
        'waited',
        shellPod('waited', podd.shared, 'stay', {
          container: {
            image: imageOf('waited'),
            env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'absent', key: 'a' } } }],
          },
        }),
      )
      await podd.untilReady('used')
      await podd.untilPod('waited', 'waiting', ({ status }) => status.phase === 'Pending')
      await use(podd, 'older')
      await use(podd, 'newer')
      const all = ['never', 'newer', 'older', 'pinned', 'used', 'waited']
      expect(await names(podd)).toEqual(all)

      // Where there is room, all stay.
      await podd.restartDaemon()
      await podd.until('a look at the images', async () => jobOf(await podd.status()).runs > 0)
      expect(await names(podd)).toEqual(all)

      for (const [gone, rest] of [
        ['never', all.filter((name) => name !== 'never')],
        ['older', all.filter((name) => name !== 'never' && name !== 'older')],
      ] as const) {
        fillTo(podd, 86)
        // It looks when it starts; how recently each was used it knows from before.
        await podd.restartDaemon()
        await nodeEvent(podd, 'ImagesRemoved', new RegExp(`: ${imageOf(gone)}$`, 'u'))
        expect(await names(podd)).toEqual(rest)
      }
      expect(usedPercent(disk(podd))).toBeLessThanOrEqual(80)
      await podd.untilReady('used')
    })

    it('are told of with what they need to go, and why the others stay', async () => {
      const podd = rig()
      const { images, dryRun } = await collect(podd, '--dry-run')
      expect(dryRun).toBe(true)
      expect(images.removed.flatMap((image) => image.names)).toContain(imageOf('newer'))
      expect(verdictOf(images.kept, imageOf('used'))).toBe('in-use: used by pod default/used')
      expect(verdictOf(images.kept, imageOf('waited'))).toBe('in-use: used by pod default/waited')
      expect(verdictOf(images.kept, imageOf('pinned'))).toBe('pinned: pinned')
      expect(verdictOf(images.kept, shell)).toBe('pinned: pinned')
      expect(verdictOf(images.kept, sandboxImageName)).toBe('in-use: used by the sandboxes of pods')
      expect(await names(podd)).toContain('newer')
      const table = await podd.cliOk('images')
      expect(table).toMatch(/^localhost\/garbage\/pinned +1 .* yes$/mu)
      expect(table).toMatch(/^localhost\/garbage\/newer +1 .* no$/mu)
    })

    it('that cannot make enough room leave an event, and go all the same', async () => {
      const podd = rig()
      fillTo(podd, 97)
      await podd.restartDaemon()
      await nodeEvent(
        podd,
        'FreeDiskSpaceFailed',
        /^Insufficient free disk space .*\(9[78]% of 4\d\d\.\d MiB used\)/u,
      )
      expect(await names(podd)).toEqual(['pinned', 'used', 'waited'])
      expect(jobOf(await podd.status()).error).toContain('Insufficient free disk space')
      rmSync(join(podd.rootDir, 'filler'))
    })

    it('go on demand, once nothing pins them, and give back all the room they took', async () => {
      const podd = rig()
      const before = disk(podd).availableBytes
      await importImage(podd, 'extra', '--no-pin')
      const taken = before - disk(podd).availableBytes
      expect(taken).toBeGreaterThan(2 * ballastBytes)
      // It may be there for less than a second.
      const report = await collect(podd, '--all')
      expect(report.images.removed.flatMap((image) => image.names)).toContain(imageOf('extra'))
      expect(report.images.freedBytes).toBeGreaterThan(0.95 * taken)
      expect(before - disk(podd).availableBytes).toBeLessThan(0.05 * taken)
      expect(await names(podd)).toEqual(['pinned', 'used', 'waited'])
      await podd.cliOk('images', 'unpin', imageOf('pinned'))
      podd.removeManifest('waited')
      await podd.untilGone('waited')
      await collect(podd, '--all')
      expect(await names(podd)).toEqual(['used'])
      await podd.cliOk('images', 'pin', imageOf('used'))
      podd.removeManifest('used')
      await podd.untilGone('used')
      await collect(podd, '--all')
      expect(await names(podd)).toEqual(['used'])
    })
  })
})

// Kubernetes' own: test/e2e_node/image_gc_test.go. podd looks when it starts, and every five minutes as the kubelet.
const aged = { ...config, imageMaximumGCAge: '8s', imageGCHighThresholdPercent: 100 }

describePodd('ImageGarbageCollect: when ImageMaximumGCAge is set', { config: aged }, (rig) => {
  const untilLooked = (podd: PoddRig): Promise<unknown> =>
    podd.until('a look at the images', async () => jobOf(await podd.status()).runs > 0)

  it('should not GC unused images prematurely', async () => {
    const podd = rig()
    await importImage(podd, 'innocent', '--no-pin')
    await use(podd, 'innocent')
    // What it is unused for is counted from what was seen, and not from the restart.
    await podd.restartDaemon()
    await untilLooked(podd)
    expect(await names(podd)).toEqual(['innocent'])
  })

  it('should GC unused images', async () => {
    const podd = rig()
    await sleep(9000)
    // How long images are unused is written when another one comes, and once an hour.
    await importImage(podd, 'younger', '--no-pin')
    await collect(podd, '--dry-run')
    await podd.restartDaemon()
    await untilLooked(podd)
    expect(await names(podd)).toEqual(['younger'])
    expect(await imageTags(podd)).toContain(shell)
  })

  it(
    'is repeated after podd and containerd were killed in the middle of it, and leaves nothing',
    { tags: ['nightly'] },
    async () => {
      const podd = rig()
      await importImage(podd, 'first', '--no-pin')
      await collect(podd, '--all')
      const before = contentOf(podd)
      for (const name of ['a', 'b', 'c']) await importImage(podd, name, '--no-pin')
      const collecting = podd.cli('gc', '--all')
      await podd.until('the first removal', async () => (await names(podd)).length < 3)
      process.kill(podd.containerdPid, 'SIGKILL')
      await podd.stopDaemon('SIGKILL')
      await collecting
      await podd.startDaemon()
      await collect(podd, '--all')
      expect(await names(podd)).toEqual([])
      // What a killed containerd has forgotten and not deleted yet, it deletes with the next image.
      await importImage(podd, 'last', '--no-pin')
      await collect(podd, '--all')
      await podd.until('containerd to give back all of it', () => contentOf(podd) <= before)
    },
  )
})

async function imageTags(podd: PoddRig): Promise<readonly string[]> {
  return (await podd.get<readonly ImageEntry[]>('/podd/v1/images')).flatMap(({ tags }) => tags)
}

/** How many blobs and snapshots containerd holds. */
function contentOf(podd: PoddRig): number {
  const { rootDir } = containerdPlaces(podd.rootDir, podd.runDir)
  const count = (directory: string): number => {
    const path = join(rootDir, directory)
    return existsSync(path) ? readdirSync(path).length : 0
  }
  return (
    count('io.containerd.content.v1.content/blobs/sha256') +
    count('io.containerd.snapshotter.v1.overlayfs/snapshots') +
    count('io.containerd.snapshotter.v1.native/snapshots')
  )
}

function jobOf({ jobs }: Awaited<ReturnType<PoddRig['status']>>) {
  const job = jobs.find(({ name }) => name === 'collect-images')
  if (job === undefined) throw new Error('there is no such job')
  return job
}
