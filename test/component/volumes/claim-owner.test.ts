import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  claimDirectory,
  listClaimOwners,
  purgeClaimDirectory,
  prepareClaim,
} from '../../../src/volumes/claims.ts'
import type { ClaimAccess } from '../../../src/volumes/volume-plugins.ts'
import { makePod } from '../../support/pod-builders.ts'
import { volumeContext } from '../../support/volume-context.ts'

let rootDir = ''

beforeEach(async () => {
  rootDir = await mkdtemp(join(tmpdir(), 'podd-claim-owner-'))
})
afterEach(() => rm(rootDir, { recursive: true }))

const key = 'PersistentVolumeClaim/default/data'
const directory: ClaimAccess = { source: 'file', readsDataOf: [] }
const url: ClaimAccess = { source: 'http', readsDataOf: [] }

async function use(access: ClaimAccess, claimName = 'data'): Promise<void> {
  const context = volumeContext({ uid: 'u', rootDir, memoryBytes: 1, findClaim: () => access })
  const { spec } = makePod({
    spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }] },
  })
  for (const volume of spec.volumes) await prepareClaim(volume, context)
}

describe('the data of a claim', () => {
  it('belongs to the source that used it first, until it is purged', async () => {
    await use(directory)
    await use(directory)
    expect(await listClaimOwners(rootDir)).toEqual(new Map([[key, 'file']]))
    await expect(use(url)).rejects.toMatchObject({
      code: 'VOLUME_SETUP',
      message: expect.stringContaining('podSecurity.url.readsObjectsOf'),
    })
    await purgeClaimDirectory(rootDir, { namespace: 'default', name: 'data' })
    expect(await listClaimOwners(rootDir)).toEqual(new Map())
    await use(url)
    expect(await listClaimOwners(rootDir)).toEqual(new Map([[key, 'http']]))
  })

  it('is given to another source where it may read it, and stays whose it was', async () => {
    await use(directory)
    await use({ ...url, readsDataOf: ['file'] })
    expect(await listClaimOwners(rootDir)).toEqual(new Map([[key, 'file']]))
  })

  it('that nobody owns goes to the source that uses it next, as it is', async () => {
    const directory = claimDirectory(rootDir, 'default', 'data')
    await mkdir(directory, { recursive: true })
    await writeFile(`${directory}/file`, 'kept')
    await use(url)
    expect(await readFile(`${directory}/file`, 'utf8')).toBe('kept')
    expect(await listClaimOwners(rootDir)).toEqual(new Map([[key, 'http']]))
  })

  it('has an owner whatever the length of the claim’s name', async () => {
    const lengths = [205, 206, 247, 248, 253]
    // The last two differ in their last letter alone.
    const names = [...lengths.map((length) => 'c'.repeat(length)), `${'c'.repeat(252)}d`]
    const keyOf = (name: string): string => `PersistentVolumeClaim/default/${name}`
    for (const [index, name] of names.entries()) await use(index % 2 === 0 ? directory : url, name)
    const owners = names.map((name, index) => [keyOf(name), index % 2 === 0 ? 'file' : 'http'] as const)
    expect(await listClaimOwners(rootDir)).toEqual(new Map(owners))
    for (const name of names) await purgeClaimDirectory(rootDir, { namespace: 'default', name })
    expect(await readdir(`${rootDir}/claims/default`)).toEqual([])
  })

  it('lists the owners beside a directory that is no claim’s, of any name', async () => {
    await use(directory)
    await mkdir(claimDirectory(rootDir, 'default', 'x'.repeat(255)))
    expect(await listClaimOwners(rootDir)).toEqual(new Map([[key, 'file']]))
  })

  it('has no owner of a purge that was cut off', async () => {
    await use(directory)
    await rm(claimDirectory(rootDir, 'default', 'data'), { recursive: true })
    await use(url)
    expect(await listClaimOwners(rootDir)).toEqual(new Map([[key, 'http']]))
  })
})
