import { lstat, readFile, readdir, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { mapBounded } from '../../base/waits.ts'
import { isManifestName } from '../manifest-name.ts'

/**
 * Whether there are signs that a removed name will return: the old file lies beside it under a name that is no
 * manifest's (vim and emacs keep it as `NAME~` while they write), an editor has it open (`.NAME.swp`, `.#NAME`); or
 * git, which replaces files by removing them, is updating its work tree. Without signs the file was removed, or a
 * program that leaves none (tar, install) is about to write it. Never throws.
 * @param path the file's
 * @param fingerprint of the file when it was last examined (see lookAtFile)
 */
export async function isBeingReplaced(path: string, fingerprint: string | undefined): Promise<boolean> {
  const marks = await Promise.all([
    isOpenInEditor(path),
    isMovedAside(path, fingerprint),
    isInUpdatingWorkTree(path),
  ])
  return marks.includes(true)
}

async function isOpenInEditor(path: string): Promise<boolean> {
  const name = basename(path)
  const marks = await Promise.all(
    [`.${name}.swp`, `.#${name}`].map((mark) => exists(join(dirname(path), mark))),
  )
  return marks.includes(true)
}

async function isMovedAside(path: string, fingerprint: string | undefined): Promise<boolean> {
  if (fingerprint === undefined) return false
  try {
    // A manifest's new name appears as a new file.
    const others = (await readdir(dirname(path))).filter((name) => !isManifestName(name))
    const found = await mapBounded(others, (other) => identityOf(join(dirname(path), other)))
    return found.some((identity) => identity !== undefined && fingerprint.startsWith(`${identity}:`))
  } catch {
    // Listing the directory reports why it can't be read.
    return false
  }
}

async function identityOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await lstat(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    // It was removed meanwhile.
    return undefined
  }
}

/** git holds `index.lock` from before the first file that it removes until after the last that it writes. */
async function isInUpdatingWorkTree(path: string): Promise<boolean> {
  try {
    let directory = await realpath(dirname(path))
    for (;;) {
      const marker = join(directory, '.git')
      if (await exists(marker)) return await exists(join(await gitDirectory(marker), 'index.lock'))
      if (directory === '/') return false
      directory = dirname(directory)
    }
  } catch {
    // Without anything readable it is no work tree.
    return false
  }
}

/** `.git` is a directory, or a file that names it: in a linked work tree, say (gitrepository-layout(5)). */
async function gitDirectory(marker: string): Promise<string> {
  if ((await lstat(marker)).isDirectory()) return marker
  const [, named = marker] = /^gitdir: (.+)$/mu.exec(await readFile(marker, 'utf8')) ?? []
  return resolve(dirname(marker), named)
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch {
    // The same as if it didn't exist.
    return false
  }
}
