import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ObjectStore } from '../../../src/control/serving/object-store.ts'
import { LocalObjects } from '../../../src/control/serving/local-objects.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { finishPurges, listClaimDirectories } from '../../../src/volumes/claims.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { plainObjectRules } from '../../support/object-rules.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createShown } from '../../../src/control/serving/resource-store.ts'

// mount(2) is root's.
const rootOnly = process.getuid?.() !== 0

let rootDir = ''
beforeEach(async () => {
  rootDir = await realpath(await mkdtemp(join(tmpdir(), 'podd-claims-')))
  for (const path of ['claims/default/data', 'claims/other/db', 'pods/some']) {
    await mkdir(`${rootDir}/${path}`, { recursive: true })
    await writeFile(`${rootDir}/${path}/file`, 'kept')
  }
})
afterEach(() => rm(rootDir, { recursive: true }))

function localObjects(): LocalObjects {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]
  const pod = podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'user', namespace: 'default' },
    spec: { containers: [{ name: 'main', image: 'i:1' }], volumes },
  })
  return new LocalObjects({
    objects: new ObjectStore(plainObjectRules),
    shown: createShown(0),
    rootDir,
    pods: () => [pod],
    clock: new ManualClock(),
    logger: silentLogger,
  })
}

describe('purging a claim', () => {
  it.each([
    ['data/', 'default'],
    ['../other/db', 'default'],
    ['../../pods', 'default'],
    ['..', 'default'],
    ['', 'default'],
    ['data', 'default/'],
    ['pods', '..'],
  ])('takes %j in %j for no name at all, and touches nothing', async (name, namespace) => {
    await expect(localObjects().purgeClaim({ namespace, name })).rejects.toMatchObject({
      code: 'CLAIM_NOT_FOUND',
    })
    for (const path of ['claims/default/data', 'claims/other/db', 'pods/some'])
      expect(await readdir(`${rootDir}/${path}`)).toEqual(['file'])
  })

  it('refuses one that a pod uses, and deletes one that none does', async () => {
    const used = localObjects().purgeClaim({ namespace: 'default', name: 'data' })
    await expect(used).rejects.toMatchObject({ code: 'CLAIM_IN_USE' })
    await localObjects().purgeClaim({ namespace: 'other', name: 'db' })
    expect(await readdir(`${rootDir}/claims/other`)).toEqual([])
    expect(await readdir(`${rootDir}/claims/default/data`)).toEqual(['file'])
  })

  it.skipIf(rootOnly)('refuses one that something is mounted into', async () => {
    await mkdir(`${rootDir}/claims/other/db/disk`)
    execFileSync('mount', ['-t', 'tmpfs', 'podd-test', `${rootDir}/claims/other/db/disk`])
    try {
      await expect(localObjects().purgeClaim({ namespace: 'other', name: 'db' })).rejects.toThrow(
        `something is mounted at ${rootDir}/claims/other/db/disk`,
      )
      expect(await listClaimDirectories(rootDir)).toContainEqual({ namespace: 'other', name: 'db' })
    } finally {
      execFileSync('umount', [`${rootDir}/claims/other/db/disk`])
    }
  })

  it('refuses a link, which may lead to anybody’s data', async () => {
    await symlink(`${rootDir}/pods/some`, `${rootDir}/claims/other/linked`)
    const linked = localObjects().purgeClaim({ namespace: 'other', name: 'linked' })
    await expect(linked).rejects.toThrow('is a symbolic link')
    expect(await readdir(`${rootDir}/pods/some`)).toEqual(['file'])
  })

  it('is finished by the next podd where it was cut off', async () => {
    await mkdir(`${rootDir}/claims/other/.purged-1/deep`, { recursive: true })
    await finishPurges(rootDir)
    expect(await readdir(`${rootDir}/claims/other`)).toEqual(['db'])
  })
})
