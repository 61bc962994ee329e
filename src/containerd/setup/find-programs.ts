import { findExecutable } from '../../host/find-executable.ts'
import { findCniBinDirs } from '../network/cni-plugins.ts'
import { readContainerdVersion } from '../process/containerd-version.ts'
import type { ContainerdVersion } from '../process/containerd-version.ts'
import { EmbeddedContainerdError } from '../process/embedded-containerd-error.ts'

export interface ProgramOptions {
  /** Overrides the programs on PATH. `ctr` and the shim beside it must be of the same version. */
  readonly containerdPath?: string | undefined
  readonly ctrPath?: string | undefined
  /** Overrides the known places of CNI plugins. */
  readonly cniBinDirs?: readonly string[] | undefined
  /** Names or absolute paths, the first for pods without a RuntimeClass; `runc` where there are none. */
  readonly ociRuntimes?: readonly string[] | undefined
}

export interface ContainerdPrograms {
  readonly containerdPath: string
  readonly ctrPath: string
  readonly version: ContainerdVersion
  readonly cniBinDirs: readonly string[]
  /** As they were configured. */
  readonly ociRuntimes: readonly string[]
}

/** The programs that an embedded containerd needs; throws EmbeddedContainerdError for a missing one. */
export async function findPrograms(options: ProgramOptions): Promise<ContainerdPrograms> {
  const containerdPath = options.containerdPath ?? findExecutable('containerd')
  const ctrPath = options.ctrPath ?? findExecutable('ctr')
  if (containerdPath === undefined || ctrPath === undefined) {
    throw new EmbeddedContainerdError('containerd is not installed', {
      hint: 'Install the package containerd (or containerd.io); `podd doctor` shows what else is missing.',
    })
  }
  const ociRuntimes = options.ociRuntimes ?? ['runc']
  const missing = ociRuntimes.find((program) => findExecutable(program) === undefined)
  if (missing !== undefined) {
    throw new EmbeddedContainerdError(`${missing} is not installed`, {
      hint:
        missing === 'runc'
          ? 'Install the package runc.'
          : `Install ${missing}, or name another OCI runtime in ociRuntimes.`,
    })
  }
  const cniBinDirs = options.cniBinDirs ?? findCniBinDirs()
  if (cniBinDirs.length === 0) {
    throw new EmbeddedContainerdError(
      'the CNI plugins bridge, host-local, loopback and portmap are not installed',
      { hint: 'Install the package containernetworking-plugins, or unpack the plugins into /opt/cni/bin.' },
    )
  }
  const version = await readContainerdVersion(containerdPath)
  return { containerdPath, ctrPath, cniBinDirs, ociRuntimes, version }
}
