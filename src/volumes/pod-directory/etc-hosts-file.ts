import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { errorCode } from '../../base/errors.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { etcHostsPath, podDirectory } from './pod-directory.ts'

/**
 * Writes a pod's hosts file and gives its path. It is written in place, never swapped: containers have this
 * very file mounted, and see the change.
 */
export async function writeEtcHosts(rootDir: string, uid: PodUid, content: string): Promise<string> {
  const path = etcHostsPath(rootDir, uid)
  if ((await readIfThere(path)) === content) return path
  await mkdir(podDirectory(rootDir, uid), { recursive: true, mode: 0o750 })
  await writeFile(path, content, { mode: 0o644 })
  return path
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
