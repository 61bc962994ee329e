import { statfsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { dirname } from 'node:path'

/** With less room than this in the file system, or with fewer free inodes, nothing is written. */
const minFreeBytes = 32 * 1024 * 1024
const minFreeFiles = 1000

/**
 * Has Node keep the compiled code of this call in `directory`, and take from there what it can read. Not where the disk
 * is nearly full: Node writes at the exit, to temporary files, and leaves those that it can't finish.
 */
export function keepCompiledCode(directory: string): void {
  try {
    const { bavail, bsize, ffree, files } = statfsSync(dirname(directory))
    const hasFiles = files === 0 || ffree >= minFreeFiles
    if (hasFiles && bavail * bsize >= minFreeBytes) enableCompileCache(directory)
  } catch {
    // Without it the code is compiled once more.
  }
}
