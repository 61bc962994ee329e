import { mkdir, rename, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lookAtFile } from '../../../src/sources/read-manifest-file.ts'
import { isBeingReplaced } from '../../../src/sources/directory/directory-files.ts'
import { makeScratch } from './source-rig.ts'

let pods = ''
let removeScratch = async (): Promise<void> => undefined

beforeEach(async () => {
  const made = await makeScratch()
  removeScratch = made.remove
  pods = join(made.path, 'work', 'pods')
  await mkdir(pods, { recursive: true })
  await writeFile(join(pods, 'a.yaml'), 'x')
})

afterEach(() => removeScratch())

/** What is told of a.yaml once `remove` has run. */
async function tell(remove: () => Promise<unknown>): Promise<boolean> {
  const path = join(pods, 'a.yaml')
  const look = await lookAtFile(path)
  await remove()
  return isBeingReplaced(path, 'fingerprint' in look ? look.fingerprint : undefined)
}
const removeIt = (): Promise<void> => unlink(join(pods, 'a.yaml'))
const put = (...names: string[]): Promise<void> => writeFile(join(pods, ...names), '')

describe('a name that went', () => {
  it('was removed where nothing tells otherwise', async () => {
    await put('a.yaml~')
    expect(await tell(removeIt)).toBe(false)
    expect(await isBeingReplaced(join(pods, 'none', 'a.yaml'), undefined)).toBe(false)
  })

  it.each(['a.yaml~', 'a.yaml.bak', '.x'])('will be back where it lies beside it: %s', async (name) => {
    expect(await tell(() => rename(join(pods, 'a.yaml'), join(pods, name)))).toBe(true)
  })

  it('is seen as one that came where it was moved to the name of a manifest', async () => {
    expect(await tell(() => rename(join(pods, 'a.yaml'), join(pods, 'b.yaml')))).toBe(false)
  })

  it.each(['.a.yaml.swp', '.#a.yaml'])('will be back while an editor has it open: %s', async (name) => {
    await put(name)
    expect(await tell(removeIt)).toBe(true)
  })

  it('will be back while git updates its work tree', async () => {
    const git = join(pods, '..', '.git')
    await mkdir(git)
    await writeFile(join(git, 'index.lock'), '')
    expect(await tell(removeIt)).toBe(true)
    await rm(join(git, 'index.lock'))
    expect(await isBeingReplaced(join(pods, 'a.yaml'), undefined)).toBe(false)
  })

  it('will be back while git updates a linked work tree', async () => {
    const git = join(pods, '..', '..', 'main.git', 'worktrees', 'work')
    await mkdir(git, { recursive: true })
    await writeFile(join(pods, '..', '.git'), 'gitdir: ../main.git/worktrees/work\n')
    await writeFile(join(git, 'index.lock'), '')
    expect((await stat(join(pods, '..', '.git'))).isFile()).toBe(true)
    expect(await tell(removeIt)).toBe(true)
  })
})
