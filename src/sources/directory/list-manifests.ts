import { readdir } from 'node:fs/promises'
import type { Dirent } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '../../base/errors.ts'
import { isHiddenName, isManifestName, isPassedOver } from '../manifest-name.ts'

/** Deeper subdirectories are not read. */
const maxDepth = 32

/** What is found in a directory beside its manifests. */
export interface ListingNotes {
  /** A subdirectory that is read. */
  readonly onDirectory?: (name: string) => void
  /** A file that isn't read because of its name. */
  readonly onPassedOver?: (name: string) => void
  /** A file whose name isn't UTF-8, so that it can't be read; with `\\xff` for what is none. */
  readonly onUnreadableName?: (name: string) => void
}

/**
 * The manifests of a directory by their names, those in subdirectories (`sub/a.yaml`) only where `recursive`. A link to a
 * directory is not followed. Throws what the system throws of the directory itself.
 */
export async function listManifests(
  directory: string,
  recursive: boolean,
  notes: ListingNotes = {},
): Promise<readonly string[]> {
  return await listTree(directory, { prefix: '', depth: recursive ? maxDepth : 0, notes })
}

interface Subtree {
  /** The name of the subdirectory with a slash at its end. */
  readonly prefix: string
  readonly depth: number
  readonly notes: ListingNotes
}

async function listTree(directory: string, subtree: Subtree): Promise<readonly string[]> {
  const { prefix, depth, notes } = subtree
  const found: string[] = []
  const entries: Dirent<Buffer>[] = await readdir(join(directory, prefix), {
    withFileTypes: true,
    encoding: 'buffer',
  })
  for (const entry of entries) {
    const own = entry.name.toString('utf8')
    const name = `${prefix}${own}`
    if (!Buffer.from(own).equals(entry.name)) {
      if (!isHiddenName(own)) notes.onUnreadableName?.(`${prefix}${showBytes(entry.name)}`)
      continue
    }
    if (!entry.isDirectory()) {
      if (isManifestName(own)) found.push(name)
      else if (entry.isFile() && isPassedOver(own)) notes.onPassedOver?.(name)
      continue
    }
    // Of a directory with such a name it is told that it is none.
    if (depth === 0 && isManifestName(own)) found.push(name)
    if (isHiddenName(own) || depth === 0) continue
    notes.onDirectory?.(name)
    try {
      for (const below of await listTree(directory, { ...subtree, prefix: `${name}/`, depth: depth - 1 }))
        found.push(below)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
    }
  }
  return found
}

/** Each byte that isn't ASCII as `\\xff`: a name with such bytes can't be told apart otherwise. */
function showBytes(name: Buffer): string {
  return [...name]
    .map((byte) =>
      byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
    )
    .join('')
}
