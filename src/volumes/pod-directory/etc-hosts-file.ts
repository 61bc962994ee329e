import { constants } from 'node:fs'
import { mkdir, open, readFile } from 'node:fs/promises'
import { errorCode } from '../../base/errors.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { overwriteFile } from './overwrite-file.ts'
import { etcHostsPath, podDirectory } from './pod-directory.ts'

/**
 * Writes a pod's hosts file and returns its path. It is written in place, never replaced, because containers have this
 * file mounted.
 */
export async function writeEtcHosts(rootDir: string, uid: PodUid, content: string): Promise<string> {
  const path = etcHostsPath(rootDir, uid)
  if ((await readIfThere(path)) === content) return path
  await mkdir(podDirectory(rootDir, uid), { recursive: true, mode: 0o750 })
  const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o644)
  try {
    await overwriteFile(file, content)
  } finally {
    await file.close()
  }
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
