import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { writeFileAtomic } from '../../base/atomic-file.ts'
import type { DrainMark } from './node-drain.ts'

/** A file with the id of the current boot, since the run directory may survive a reboot. */
export function drainMark(path: string, bootId: string): DrainMark {
  return {
    read() {
      try {
        return readFileSync(path, 'utf8').trim() === bootId
      } catch {
        // Without a file the host isn't being shut down.
        return false
      }
    },
    write: () => writeFileAtomic(path, `${bootId}\n`),
    remove: () => rm(path, { force: true }),
  }
}
