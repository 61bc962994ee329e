import { commandOutput } from '../../host/run-command.ts'
import { EmbeddedContainerdError } from './embedded-containerd-error.ts'

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
export function compareVersions(a: ContainerdVersion, b: ContainerdVersion): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch
}

/** A slow board reads tens of megabytes from its disk first. */
const versionTimeoutMs = 120_000

/** Asks a containerd program for its version. */
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
