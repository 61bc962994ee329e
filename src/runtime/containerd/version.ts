import { readlinkSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { readIfExists, writeFileAtomic } from '../../base/atomic-file.ts'
import type { Logger } from '../../base/logger.ts'
import type { HostProcess } from '../../host/processes.ts'
import { commandOutput, runCommand } from '../../host/run-command.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { EmbeddedContainerdError, findContainerd, findShims } from './process.ts'
import type { ContainerdPlaces } from './process.ts'

export interface ContainerdVersion {
  readonly major: number
  readonly minor: number
  readonly patch: number
  /** As containerd prints it (`1.6.20~ds1`). */
  readonly text: string
}

/** Reads the output of `containerd --version`: program, package, version, revision. */
export function parseContainerdVersion(output: string): ContainerdVersion | undefined {
  const text = /^containerd \S+ (\S+)/.exec(output.trim())?.[1] ?? ''
  const parts = /^v?(\d+)\.(\d+)\.(\d+)/.exec(text)
  if (parts === null) return undefined
  return { major: Number(parts[1]), minor: Number(parts[2]), patch: Number(parts[3]), text }
}

/** CRI v1 came with containerd 1.6. */
export function isSupportedVersion(version: ContainerdVersion): boolean {
  return version.major > 1 || (version.major === 1 && version.minor >= 6)
}

/** Below 0 where the first is older, above 0 where it is newer. What follows the three numbers doesn't count. */
function compareVersions(a: ContainerdVersion, b: ContainerdVersion): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch
}

/** A slow board reads tens of megabytes from its disk first. */
const versionTimeoutMs = 120_000

export async function readContainerdVersion(containerdPath: string): Promise<ContainerdVersion> {
  const output = await commandOutput(containerdPath, ['--version'], { timeoutMs: versionTimeoutMs })
  const version = parseContainerdVersion(output)
  if (version === undefined) {
    throw new EmbeddedContainerdError(
      `${containerdPath} gives no version that podd can read: ${output.trim()}`,
    )
  }
  if (!isSupportedVersion(version)) {
    throw new EmbeddedContainerdError(`containerd ${version.text} is too old: podd needs 1.6 or newer`, {
      hint: 'Install a newer containerd package.',
    })
  }
  return version
}

/** The containerd that is installed, beside the one under which pods run: an older one must not take its place. */
export class InstalledProgram {
  readonly #places: ContainerdPlaces
  readonly #tell: (reason: string, message: string) => void
  readonly #logger: Logger
  #path: string | undefined
  #problem: Problem | undefined

  /** @param tell records an event of the node */
  constructor(places: ContainerdPlaces, tell: (reason: string, message: string) => void, logger: Logger) {
    this.#places = places
    this.#tell = tell
    this.#logger = logger
  }

  /** Which containerd would be started now; undefined before the first look. */
  get path(): string | undefined {
    return this.#path
  }

  /** Whether an older one was installed at the last look. */
  get problem(): Problem | undefined {
    return this.#problem
  }

  /** The newer version that pods run under, kept running. Throws EmbeddedContainerdError where it isn't. */
  async findNewer(installed: InstalledContainerd): Promise<ContainerdVersion | undefined> {
    const running = findContainerd(this.#places)
    const newer = await findNewer(this.#places, installed, running)
    this.#path = installed.containerdPath
    const before = this.#problem
    this.#problem = undefined
    if (newer === undefined) return undefined
    const older = `containerd ${installed.version.text} is installed, and pods run under containerd ${newer.text}`
    const again = `Install containerd ${newer.text} or newer again`
    if (running === undefined)
      throw new EmbeddedContainerdError(`${older}, which an older one would lose`, {
        hint: `${again}; or reboot the host, which ends the pods.`,
      })
    this.#problem = {
      severity: 'warning',
      place: { path: installed.containerdPath },
      message: `${older}: that one keeps running; where it ends, no other starts before the pods have ended`,
      hint: again,
    }
    if (before?.message === this.#problem.message) return newer
    this.#logger.warn({ reason: older }, 'the newer containerd keeps running')
    this.#tell('ContainerdOlder', `${older}: that one keeps running`)
    return newer
  }
}

/** A containerd program that is installed. */
interface InstalledContainerd {
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
    await writeFileAtomic(recordPath(places), record, 0o644)
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
