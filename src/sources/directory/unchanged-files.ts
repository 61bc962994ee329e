import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { fingerprintOf } from '../read-manifest-file.ts'

/** The longest that this may take, in milliseconds: a slow disk must not delay anything else. */
const mostMs = 5

/**
 * Leaves out files whose metadata is unchanged. A synchronous stat costs a tenth of one in a thread, and is used for
 * local disks only. Names that are not checked in time are returned.
 * @param fingerprint of the last look at a file; undefined where it has to be examined in full
 */
export function leaveOutUnchanged(
  names: readonly string[],
  fingerprint: (name: string) => string | undefined,
  { directory, clock }: { readonly directory: string; readonly clock: Clock },
): readonly string[] {
  const untilMs = clock.monotonicMs() + mostMs
  return names.filter((name) => {
    const known = fingerprint(name)
    return known === undefined || clock.monotonicMs() >= untilMs || !looksLike(join(directory, name), known)
  })
}

/** Whether it is a regular file of this fingerprint. */
function looksLike(path: string, fingerprint: string): boolean {
  try {
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return stats?.isFile() === true && fingerprintOf(stats) === fingerprint
  } catch {
    // The full examination reports it.
    return false
  }
}
