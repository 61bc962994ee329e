import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { fingerprintOf } from './read-manifest-file.ts'

/** The longest that this takes, milliseconds: a disk that answers late holds nothing else up. */
const mostMs = 5

/**
 * The names without those of files that still look as they did. A look without a thread costs a tenth of one with: for
 * the disks of this host. What is not looked at in time is among the names that are given.
 * @param fingerprint of a file's last look; undefined where it wants a closer one
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
    // A closer look tells.
    return false
  }
}
