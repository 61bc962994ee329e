import { readlinkSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { readIfExists, writeFileAtomic } from '../../base/atomic-file.ts'
import type { HostProcess } from '../../host/processes.ts'
import { runCommand } from '../../host/run-command.ts'
import type { ContainerdPlaces } from './containerd-places.ts'
import { findShims } from './containerd-process.ts'
import { compareVersions, parseContainerdVersion } from './containerd-version.ts'
import type { ContainerdVersion } from './containerd-version.ts'

/** A containerd program that is installed. */
export interface InstalledContainerd {
  readonly containerdPath: string
  readonly version: ContainerdVersion
}

/** In the run directory: a reboot removes it together with the pods. */
function recordPath({ runDir }: ContainerdPlaces): string {
  return join(runDir, 'version')
}

/**
 * The version of containerd under which this instance's pods run, where that is newer than the installed one; undefined
 * where no pod runs. An older containerd reads neither all of a newer one's data nor its shims: it would lose the pods.
 *
 * @param running the running containerd, if there is one
 */
export async function findNewer(
  places: ContainerdPlaces,
  installed: InstalledContainerd,
  running: HostProcess | undefined,
): Promise<ContainerdVersion | undefined> {
  if (findShims(places).length === 0) return undefined
  const recorded = parseContainerdVersion((await readIfExists(recordPath(places))) ?? '')
  const version = running === undefined ? recorded : ((await versionOf(running, installed)) ?? recorded)
  return version !== undefined && compareVersions(version, installed.version) > 0 ? version : undefined
}

/** For `findNewer`, when no containerd runs. Never throws: a full disk must not keep pods from running. */
export async function recordVersion(places: ContainerdPlaces, { text }: ContainerdVersion): Promise<void> {
  const record = `containerd - ${text}\n`
  try {
    if ((await readIfExists(recordPath(places))) === record) return
    await writeFileAtomic(recordPath(places), record, { mode: 0o644 })
  } catch {
    // The running one can still report its version.
  }
}

/** Undefined where the process doesn't run containerd's program itself, but a wrapper. Its file may have been replaced. */
async function versionOf(
  { pid }: HostProcess,
  installed: InstalledContainerd,
): Promise<ContainerdVersion | undefined> {
  try {
    if (readlinkSync(`/proc/${pid}/exe`) === (await realpath(installed.containerdPath)))
      return installed.version
    return parseContainerdVersion((await runCommand(`/proc/${pid}/exe`, ['--version'])).stdout)
  } catch {
    // It has ended.
    return undefined
  }
}
