import { randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { EventObject } from '../../src/api/resource.ts'
import type { ImageEntry } from '../../src/api/routes.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { writeUnpackRecord } from '../../src/runtime/containerd/unpacked-images.ts'
import { smallFile } from '../../src/store/state-report.ts'
import { checkedImage } from '../support/checked-image.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

const image = 'registry.invalid/cut/checked:1'

function place(podd: PoddRig, archive: Uint8Array): void {
  const directory = join(podd.rootDir, 'images')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(podd.directory, 'checked.tar'), archive)
  renameSync(join(podd.directory, 'checked.tar'), join(directory, 'checked.tar'))
}

/** Empties the files of the image's layers, as a power cut leaves those that were in the page cache alone. */
function damage(podd: PoddRig): number {
  const snapshotters = join(podd.rootDir, 'containerd')
  const paths = readdirSync(snapshotters, { recursive: true, encoding: 'utf8' }).filter((path) =>
    /snapshotter.*\/data-\d-\d+$/u.test(path),
  )
  for (const path of paths) truncateSync(join(snapshotters, path))
  return paths.length
}

describePodd('an image in whose unpacking the power failed', {}, (rig) => {
  it('is removed by the next start and brought again, and the others are kept', async () => {
    const podd = rig()
    podd.drop('steady', shellPod('steady', podd.shared, 'say start; stay'))
    const before = await podd.untilReady('steady')
    const written = (await podd.get<readonly ImageEntry[]>('/podd/v1/images')).map(({ id }) => id)
    place(podd, checkedImage(image))
    // containerd 2 lists an image before it is unpacked.
    await podd.until('its import', () =>
      readFileSync(join(podd.rootDir, 'image-archives.json'), 'utf8').includes('"checked.tar"'),
    )
    const { unpackRecordPath } = containerdPlaces(podd.rootDir, podd.runDir)
    await podd.until('all of it on the disk', () => !existsSync(unpackRecordPath))
    podd.ctr('leases', 'create', '--id', 'of-a-pull')
    await podd.stopDaemon('SIGKILL')
    expect(damage(podd)).toBe(96)
    await writeUnpackRecord(smallFile(unpackRecordPath), { bootId: randomUUID(), written })
    await podd.startDaemon()
    const check = `cd / && sha256sum -c /sums >/shared/sums 2>&1 && say whole; stay`
    podd.drop(
      'checked',
      shellPod('checked', podd.shared, check, { container: { image, imagePullPolicy: 'Never' } }),
    )
    expect(await podd.untilWords('checked', 1)).toEqual(['whole'])
    const { items } = await podd.get<{ readonly items: readonly EventObject[] }>('/api/v1/events')
    const told = items.filter(({ reason }) => reason === 'ImageDiscarded').map(({ message }) => message)
    expect(told).toEqual([expect.stringContaining(image)])
    expect(podd.ctr('leases', 'list', '--quiet')).not.toContain('of-a-pull')
    expect(existsSync(unpackRecordPath)).toBe(false)
    expect(containerOf(await podd.untilReady('steady'), 'main')).toEqual(containerOf(before, 'main'))
  })
})
