import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { DaemonStatus, ImageEntry } from '../../src/api/routes.ts'
import { formatOciArchive } from '../../src/images/sandbox-image.ts'
import { shellImage } from '../support/oci-image.ts'
import { hangShim } from '../support/hang-shim.ts'
import { conditionOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

async function pressure(podd: PoddRig): Promise<readonly string[]> {
  return (await podd.get<DaemonStatus>('/podd/v1/status')).pressure?.conditions ?? ['not watched']
}

async function nodeReasons(podd: PoddRig): Promise<readonly string[]> {
  return (await podd.events('box')).map(({ reason }) => reason)
}

async function uidOf(podd: PoddRig, name: string): Promise<string | undefined> {
  return (await podd.findPod(name))?.metadata.uid
}

const onDisk = { volumes: [{ name: 'data', emptyDir: {} }], mounts: [{ name: 'data', mountPath: '/data' }] }
const inMemory = {
  volumes: [{ name: 'data', emptyDir: { medium: 'Memory' } }],
  mounts: [{ name: 'data', mountPath: '/data' }],
}

async function imageNames(podd: PoddRig): Promise<readonly string[]> {
  return (await podd.get<readonly ImageEntry[]>('/podd/v1/images')).flatMap(({ tags }) => tags)
}

/** Imports an image that nobody needs, with so much that nothing compresses, and unpins it. */
async function importBallast(podd: PoddRig, name: string, mebibytes: number): Promise<void> {
  const base = shellImage(name)
  const data = randomBytes(mebibytes * 1024 * 1024)
  const archive = join(podd.shared, 'ballast.tar')
  writeFileSync(
    archive,
    formatOciArchive({
      ...base,
      entries: [...base.entries, { kind: 'file', path: 'ballast', mode: 0o644, data }],
    }),
  )
  await podd.cliOk('images', 'import', archive)
  await podd.cliOk('images', 'unpin', name)
  rmSync(archive)
}

/** Writes so much once: a pod that comes back finds the mark and is modest. */
function fillOnce(name: string, mebibytes: number): string {
  return `say start
if [ ! -e /shared/${name}-once ]; then
  touch /shared/${name}-once
  dd if=/dev/urandom of=/data/file bs=1M count=${mebibytes} 2>/dev/null
  say full
fi
stay`
}

// Kubernetes' own: test/e2e_node/eviction_test.go, LocalStorageEviction, LocalStorageSoftEviction, PriorityLocalStorageEvictionOrdering.
describePodd(
  'eviction for the disk',
  {
    rootDisk: { sizeMiB: 400 },
    config: {
      evictionHard: { 'nodefs.available': '100Mi' },
      evictionPressureTransitionPeriod: '3s',
      imageGCHighThresholdPercent: 100,
      imageMinimumGCAge: '1s',
    },
  },
  (rig) => {
    it(
      // id: reclaims-images-first
      'removes unused images first, and evicts no pod where that is enough',
      { tags: ['nightly'] },
      async () => {
        const podd = rig()
        podd.drop('calm', shellPod('calm', podd.shared, 'say start; stay', onDisk))
        await podd.untilReady('calm')
        await importBallast(podd, 'localhost/eviction/unused:1', 150)
        // Its blobs and its layers: more than what is left above the threshold.
        await podd.until(
          'the removal of the image',
          async () => !(await imageNames(podd)).includes('localhost/eviction/unused:1'),
        )
        expect(await nodeReasons(podd)).toContain('EvictionThresholdMet')
        await podd.until('the end of the pressure', async () => (await pressure(podd)).length === 0)
        expect(podd.lines('calm')).toHaveLength(1)
        podd.removeManifest('calm')
        await podd.untilGone('calm')
      },
    )

    // id: spares-critical-on-disk
    it('evicts the pod that fills the disk and no other, and starts it again when the pressure has gone', async () => {
      const podd = rig()
      podd.drop('quiet', shellPod('quiet', podd.shared, 'say start; stay', onDisk))
      podd.drop(
        'vital',
        shellPod(
          'vital',
          podd.shared,
          'dd if=/dev/urandom of=/data/file bs=1M count=40 2>/dev/null; say full; stay',
          {
            ...onDisk,
            spec: { priorityClassName: 'system-node-critical' },
          },
        ),
      )
      await podd.untilReady('quiet')
      await podd.untilWords('vital', 1)
      const before = { quiet: await uidOf(podd, 'quiet'), vital: await uidOf(podd, 'vital') }
      podd.drop('hog', shellPod('hog', podd.shared, fillOnce('hog', 260), onDisk))
      const failed = await podd.untilPhase('hog', 'Failed')
      expect(failed.status.reason).toBe('Evicted')
      expect(failed.status.message).toMatch(
        /^The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: \d+Ki\. /u,
      )
      expect(conditionOf(failed, 'DisruptionTarget')).toBe('True')
      await podd.untilEvent('hog', 'Evicted', /The node was low on resource: ephemeral-storage/u)
      expect(await nodeReasons(podd)).toEqual(
        expect.arrayContaining(['NodeHasDiskPressure', 'EvictionThresholdMet']),
      )
      await podd.until('the end of the pressure', async () => (await pressure(podd)).length === 0)
      const again = await podd.untilReady('hog')
      expect(again.metadata.uid).not.toBe(failed.metadata.uid)
      expect(await nodeReasons(podd)).toContain('NodeHasNoDiskPressure')
      expect({ quiet: await uidOf(podd, 'quiet'), vital: await uidOf(podd, 'vital') }).toEqual(before)
      expect(podd.lines('quiet')).toHaveLength(1)
      for (const name of ['hog', 'quiet', 'vital']) {
        podd.removeManifest(name)
        await podd.untilGone(name)
      }
    })

    it('has a pod wait while the disk is short, and starts it when there is room', async () => {
      const podd = rig()
      await podd.until('the end of the pressure', async () => (await pressure(podd)).length === 0)
      // Of nobody: nothing that podd may end or remove frees it.
      const ballast = join(podd.rootDir, 'ballast')
      const { bavail, bsize } = statfsSync(podd.rootDir)
      writeFileSync(ballast, Buffer.alloc(bavail * bsize - 60 * 1024 * 1024))
      await podd.until('the pressure', async () => (await pressure(podd)).includes('DiskPressure'))
      podd.drop('late', shellPod('late', podd.shared, 'say start; stay', onDisk))
      podd.drop(
        'vital',
        shellPod('vital', podd.shared, 'say start; stay', {
          spec: { priorityClassName: 'system-node-critical' },
        }),
      )
      const waiting = await podd.untilPod(
        'late',
        'its wait',
        ({ status }) => status.reason === 'NodeUnderPressure',
      )
      expect(waiting.status).toMatchObject({
        phase: 'Pending',
        message: 'The node had condition: [DiskPressure]. ',
      })
      await podd.untilReady('vital')
      expect(podd.lines('late')).toEqual([])
      rmSync(ballast)
      await podd.untilReady('late')
    })
  },
)

// Kubernetes' own: test/e2e_node/eviction_test.go, MemoryAllocatableEviction.
describePodd(
  'eviction for memory',
  {
    config: {
      evictionHard: { 'allocatableMemory.available': '60Mi' },
      evictionPressureTransitionPeriod: '3s',
    },
  },
  (rig) => {
    // id: evicts-over-memory-request
    it('evicts the pod that is over its request, and starts it again', async () => {
      const podd = rig()
      podd.drop('quiet', shellPod('quiet', podd.shared, 'say start; stay'))
      await podd.untilReady('quiet')
      limitMemory(podd.cgroupRoot, 256)
      podd.drop('hog', shellPod('hog', podd.shared, fillOnce('hog', 215), inMemory))
      const failed = await podd.untilPhase('hog', 'Failed')
      expect(failed.status).toMatchObject({ reason: 'Evicted' })
      expect(failed.status.message).toMatch(
        /^The node was low on resource: memory. Threshold quantity: 60Mi, available: \d+Ki\. Container main was using \d+Ki, request is 0, has larger consumption of memory\. $/u,
      )
      await podd.untilReady('hog')
      expect(podd.lines('quiet')).toHaveLength(1)
      expect(await podd.cliOk('status')).toMatch(/^Pressure: +(?:none|MemoryPressure)$/mu)
    })

    it('evicts it while the shim of another pod hangs', { tags: ['nightly'] }, async () => {
      const podd = rig()
      podd.drop('hung', shellPod('hung', podd.shared, 'say start; stay'))
      const hung = await podd.untilReady('hung')
      podd.drop('second', shellPod('second', podd.shared, fillOnce('second', 215), inMemory))
      using _ = hangShim(podd, hung)
      const failed = await podd.untilPhase('second', 'Failed')
      expect(failed.status).toMatchObject({ reason: 'Evicted' })
      expect(failed.status.message).toMatch(/ Container main was using \d+Ki, /u)
      expect((await podd.findPod('hung'))?.metadata.uid).toBe(hung.metadata.uid)
    })
  },
)

/** Gives all pods together so much memory. */
function limitMemory(cgroupRoot: string, mebibytes: number): void {
  const [v1, v2] = [
    `/sys/fs/cgroup/memory${cgroupRoot}/memory.limit_in_bytes`,
    `/sys/fs/cgroup${cgroupRoot}/memory.max`,
  ]
  writeFileSync(existsSync(v1) ? v1 : v2, String(mebibytes * 1024 * 1024))
}
