import { readdir, rename, rm } from 'node:fs/promises'
import { errorCode } from '../base/errors.ts'
import { newUuid } from '../base/random.ts'

/** `<root>/claims/<namespace>/<name>`: outlives pods, podd's upgrades and its removal. */
export function claimFolder(rootDir: string, namespace: string, name: string): string {
  return `${rootDir}/claims/${namespace}/${name}`
}

export interface ClaimName {
  readonly namespace: string
  readonly name: string
}

/** The claims that have a directory. */
export async function listClaimFolders(rootDir: string): Promise<readonly ClaimName[]> {
  const claims: ClaimName[] = []
  for (const namespace of await foldersIn(`${rootDir}/claims`)) {
    for (const name of await foldersIn(`${rootDir}/claims/${namespace}`)) claims.push({ namespace, name })
  }
  return claims
}

/** Deletes a claim's data for good. Nothing of it is under its name any more once this has begun. */
export async function purgeClaimFolder(rootDir: string, { namespace, name }: ClaimName): Promise<void> {
  const doomed = `${rootDir}/claims/${namespace}/.purged-${newUuid()}`
  await rename(claimFolder(rootDir, namespace, name), doomed)
  await rm(doomed, { recursive: true, force: true })
}

async function foldersIn(path: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true })
    const folders = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    return folders.map(({ name }) => name).sort()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}
