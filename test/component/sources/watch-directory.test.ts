import { appendFile, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { DirectoryHint, DirectoryWatch } from '../../../src/sources/watch/watch-directory.ts'
import { watchDirectory } from '../../../src/sources/watch/watch-directory.ts'
import { slowness } from '../../support/slowness.ts'
import { makeScratch } from './source-rig.ts'

let scratch = ''
let pods = ''
let removeScratch = async (): Promise<void> => undefined
let hints: DirectoryHint[] = []
const failures: unknown[] = []
const watches: DirectoryWatch[] = []

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
  pods = join(scratch, 'pods')
  hints = []
  failures.length = 0
})

afterEach(async () => {
  await Promise.all(watches.splice(0).map((watch) => watch.close()))
  await removeScratch()
})

/** Resolves when the watch says so, and forgets what it said before. */
async function told(passes: (hint: DirectoryHint) => boolean): Promise<void> {
  for (let waits = 0; !hints.some((hint) => passes(hint)); waits += 1) {
    if (waits > 500 * slowness) throw new Error(`no such hint: ${JSON.stringify(hints)}`)
    await systemClock.sleep(10)
  }
  hints = []
}
const ofName = (name: string, kind: 'written' | 'renamed'): Promise<void> =>
  told((hint) => hint.kind === kind && hint.name === name)
const ofDirectory = (): Promise<void> => told(({ kind }) => kind === 'directory')

async function start(path = pods, recursive = false): Promise<void> {
  const onHint = (hint: DirectoryHint): void => void hints.push(hint)
  watches.push(
    watchDirectory(path, { onHint, onFailure: (error) => void failures.push(error) }, { recursive }),
  )
  await Promise.resolve()
}

describe('the watch of a directory', () => {
  it('tells of each name that comes, is written, is renamed and goes, and of the directory when it is watched', async () => {
    await mkdir(pods)
    await start()
    await ofDirectory()
    await writeFile(join(pods, 'a.yaml'), 'a')
    await ofName('a.yaml', 'renamed')
    await appendFile(join(pods, 'a.yaml'), 'b')
    await ofName('a.yaml', 'written')
    await rename(join(pods, 'a.yaml'), join(pods, 'b.yaml'))
    await ofName('b.yaml', 'renamed')
    await rm(join(pods, 'b.yaml'))
    await ofName('b.yaml', 'renamed')
    expect(failures).toEqual([])
  })

  it('follows a path that is missing from some level on, comes, is replaced and goes', async () => {
    await rm(scratch, { recursive: true })
    await start(join(pods, 'deep'))
    await mkdir(join(pods, 'deep'), { recursive: true })
    await ofDirectory()
    await untilWatched(join(pods, 'deep'), 'a.yaml')
    await rename(join(pods, 'deep'), join(pods, 'old'))
    await mkdir(join(pods, 'deep'))
    await ofDirectory()
    await untilWatched(join(pods, 'deep'), 'b.yaml')
    await rm(join(pods, 'deep'), { recursive: true })
    await ofDirectory()
    await writeFile(join(pods, 'deep'), 'a single file')
    await ofDirectory()
    await appendFile(join(pods, 'deep'), 'more')
    await ofDirectory()
    await rm(join(pods, 'deep'))
    await mkdir(join(pods, 'deep'))
    await untilWatched(join(pods, 'deep'), 'c.yaml')
    expect(failures).toEqual([])
  })

  it('follows a path below a file, once a directory stands there', async () => {
    await writeFile(pods, 'no directory')
    await start(join(pods, 'deep'))
    await rm(pods)
    await mkdir(join(pods, 'deep'), { recursive: true })
    await untilWatched(join(pods, 'deep'), 'a.yaml')
    expect(failures).toEqual([])
  })

  it('follows the symlinks that lead to the directory, also to one that is missing still', async () => {
    await symlink(join(scratch, 'one'), pods)
    await start()
    await mkdir(join(scratch, 'one'))
    await untilWatched(join(scratch, 'one'), 'a.yaml')
    await mkdir(join(scratch, 'two'))
    await symlink(join(scratch, 'two'), join(scratch, 'next'))
    await rename(join(scratch, 'next'), pods)
    await ofDirectory()
    await untilWatched(join(scratch, 'two'), 'b.yaml')
    expect(failures).toEqual([])
  })

  it('takes a change of a symlink’s target, or of a link on the way to it, for one of the name', async () => {
    await mkdir(join(pods, '..1'), { recursive: true })
    await mkdir(join(pods, '..2'))
    for (const version of ['..1', '..2']) await writeFile(join(pods, version, 'a.yaml'), version)
    await symlink('..1', join(pods, '..data'))
    await symlink('..data/a.yaml', join(pods, 'a.yaml'))
    await start()
    await ofDirectory()
    await appendFile(join(pods, '..1', 'a.yaml'), 'more')
    await ofName('a.yaml', 'written')
    await symlink('..2', join(pods, '..next'))
    await rename(join(pods, '..next'), join(pods, '..data'))
    await ofName('a.yaml', 'renamed')
    await appendFile(join(pods, '..2', 'a.yaml'), 'more')
    await ofName('a.yaml', 'written')
    await writeFile(join(scratch, 'b.yaml'), 'b')
    await symlink(join(scratch, 'b.yaml'), join(pods, 'b.yaml'))
    await ofName('b.yaml', 'renamed')
    for (
      let tries = 0;
      !hints.some((hint) => hint.kind === 'written' && hint.name === 'b.yaml');
      tries += 1
    ) {
      if (tries > 500 * slowness) throw new Error('the new link is not followed')
      await appendFile(join(scratch, 'b.yaml'), 'more')
      await systemClock.sleep(10)
    }
    expect(failures).toEqual([])
  })

  it('follows subdirectories as they come, go, are renamed and come back', async () => {
    await mkdir(join(pods, 'team', 'web'), { recursive: true })
    await mkdir(join(pods, '.git'))
    await start(pods, true)
    await ofDirectory()
    await untilWatched(join(pods, 'team', 'web'), 'a.yaml', 'team/web/a.yaml')
    await rename(join(pods, 'team'), join(pods, 'crew'))
    await untilWatched(join(pods, 'crew', 'web'), 'b.yaml', 'crew/web/b.yaml')
    await rm(join(pods, 'crew'), { recursive: true })
    await mkdir(join(pods, 'crew', 'web'), { recursive: true })
    await untilWatched(join(pods, 'crew', 'web'), 'c.yaml', 'crew/web/c.yaml')
    await writeFile(join(pods, '.git', 'd.yaml'), 'hidden')
    await writeFile(join(pods, 'e.yaml'), 'e')
    for (
      let waits = 0;
      !hints.some((hint) => hint.kind === 'renamed' && hint.name === 'e.yaml');
      waits += 1
    ) {
      if (waits > 500 * slowness) throw new Error('no hint')
      await systemClock.sleep(10)
    }
    expect(hints.filter((hint) => hint.kind !== 'directory' && hint.name.includes('.git/'))).toEqual([])
    expect(failures).toEqual([])
  })
})

/** Until a file that is written there is told of by its name: the watch is there at some time after the directory. */
async function untilWatched(directory: string, file: string, name = file): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    await appendFile(join(directory, file), 'x')
    await systemClock.sleep(10)
    if (hints.some((hint) => hint.kind !== 'directory' && hint.name === name)) break
    if (tries > 500 * slowness) throw new Error(`${name} is not watched: ${JSON.stringify(hints)}`)
  }
  hints = []
}
