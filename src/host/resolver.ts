/* The host's resolver: what it is now, and when it may have changed. */
import { readlink } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { sleepUnlessAborted } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { parseResolvConf, selectHostResolver } from '../translate/network.ts'
import type { ResolvConf } from '../translate/network.ts'
import { readIfExists } from '../base/atomic-file.ts'
import { whenAborted } from '../base/waits.ts'
import { watchNames } from './watch-names.ts'

export const systemdResolvPath = '/run/systemd/resolve/resolv.conf'

/** How the host resolves names now, in a form that pods can use. A host without a resolv.conf has no servers. */
export async function readHostResolver(
  etcPath = '/etc/resolv.conf',
  systemdPath = systemdResolvPath,
): Promise<ResolvConf> {
  const [etc, systemd] = await Promise.all([readIfExists(etcPath), readIfExists(systemdPath)])
  return selectHostResolver(
    parseResolvConf(etc ?? ''),
    systemd === undefined ? undefined : parseResolvConf(systemd),
  )
}

/** A replaced file causes several events; it is read when they have settled. */
const settleMs = 50

/** The most symbolic links that the kernel follows. */
const maxLinks = 40

/**
 * Tells when the host's resolver may have changed, until the signal is aborted: by inotify on the directories
 * of the file, of whatever it links to, and of systemd-resolved's own. Calls `onHint` once at the start.
 * @param path may be a symbolic link, and need not exist
 */
export async function followResolver(
  path: string,
  clock: Clock,
  onHint: () => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const round = new AbortController()
    const until = AbortSignal.any([signal, round.signal])
    const paths = await pathsBehind([path, systemdResolvPath])
    // One that can't be watched is covered by the periodic job.
    watchNames([...paths], () => round.abort(), until)
    // Called once the watch is set up, so that no change is missed.
    onHint()
    await whenAborted(until)
    await sleepUnlessAborted(clock, settleMs, signal)
  }
}

/** These paths, all that they link to, and the directories above: one that doesn't exist is told of by its parent. */
async function pathsBehind(paths: readonly string[]): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  for (const path of paths) {
    let step: string | undefined = path
    for (let links = 0; step !== undefined && links < maxLinks; links += 1) {
      for (let at = step; at !== dirname(at); at = dirname(at)) found.add(at)
      step = await linkTarget(step)
    }
  }
  return found
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return resolve(dirname(path), await readlink(path))
  } catch {
    // No symlink, or it doesn't exist: the chain ends here.
    return undefined
  }
}
