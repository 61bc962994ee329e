import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../base/errors.ts'
import { isHiddenName, isManifestName } from '../manifest-name.ts'

/** Deeper subdirectories are not read. */
const maxDepth = 32

/**
 * The manifests of a directory by their names, those in subdirectories (`sub/a.yaml`) only where `recursive`. A link to a
 * directory is not followed. Throws what the system throws of the directory itself.
 * @param onDirectory called with the name of each subdirectory that is read
 */
export async function listManifests(
  directory: string,
  recursive: boolean,
  onDirectory: (name: string) => void = () => {},
): Promise<readonly string[]> {
  if (!recursive) return (await readdir(directory)).filter((name) => isManifestName(name))
  return await listTree(directory, { prefix: '', depth: maxDepth, onDirectory })
}

interface Subtree {
  /** The name of the subdirectory with a slash at its end. */
  readonly prefix: string
  readonly depth: number
  readonly onDirectory: (name: string) => void
}

async function listTree(directory: string, subtree: Subtree): Promise<readonly string[]> {
  const { prefix, depth, onDirectory } = subtree
  const entries = await readdir(join(directory, prefix), { withFileTypes: true })
  const found: string[] = []
  for (const entry of entries) {
    const name = `${prefix}${entry.name}`
    if (!entry.isDirectory()) {
      if (isManifestName(entry.name)) found.push(name)
      continue
    }
    if (isHiddenName(entry.name) || depth === 0) continue
    onDirectory(name)
    try {
      for (const below of await listTree(directory, { ...subtree, prefix: `${name}/`, depth: depth - 1 }))
        found.push(below)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
    }
  }
  return found
}
