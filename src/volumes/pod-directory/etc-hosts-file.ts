import { open, writeFile } from 'node:fs/promises'
import { readIfExists, writeInto } from '../../base/atomic-file.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { overwriteFile } from './overwrite-file.ts'
import { etcHostsPath, podDirectory } from './pod-directory.ts'

/**
 * Writes a pod's hosts file and returns its path. It is written in place, never replaced, because containers have this
 * file mounted.
 */
export async function writeEtcHosts(rootDir: string, uid: PodUid, content: string): Promise<string> {
  const path = etcHostsPath(rootDir, uid)
  const before = await readIfExists(path)
  if (before === undefined)
    await writeInto(podDirectory(rootDir, uid), 0o750, () => writeFile(path, content, { mode: 0o644 }))
  else if (before !== content) await rewrite(path, content)
  return path
}

async function rewrite(path: string, content: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await overwriteFile(file, content)
  } finally {
    await file.close()
  }
}
