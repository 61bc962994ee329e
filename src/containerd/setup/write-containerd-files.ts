import { existsSync } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { hasCapability } from '../../host/facts/capabilities.ts'
import { readMounts } from '../../host/mounts.ts'
import { readIfExists, writeFileAtomic } from '../../base/atomic-file.ts'
import { chooseSnapshotter } from './choose-snapshotter.ts'
import { formatContainerdConfig, isSameConfig } from './containerd-config.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'
import { EmbeddedContainerdError } from '../process/embedded-containerd-error.ts'
import type { ContainerdPrograms } from './find-programs.ts'
import { preparePodNetwork } from '../network/pod-network.ts'
import type { PodNetwork } from '../network/pod-network.ts'

/** The reference of the sandbox image, and its archive on demand. */
export interface SandboxImageSource {
  readonly name: string
  build(): Promise<Uint8Array>
}

export interface ContainerdFileOptions {
  readonly cgroupDriver: 'cgroupfs' | 'systemd'
  readonly sandboxImage: SandboxImageSource
  /** Instead of a free subnet: an IPv4 subnet, an IPv6 one, or one of each. */
  readonly podCidrs?: readonly string[] | undefined
  /** The directory of hosts.toml files for registries; it may be absent. */
  readonly registryConfigDir: string
  /** Milliseconds without progress after which containerd ends a pull; 0 or undefined: never. */
  readonly pullStallMs?: number | undefined
  /** Overrides the one that fits the disk. */
  readonly snapshotter?: string | undefined
}

/** What was written. */
export interface ContainerdFiles {
  readonly network: PodNetwork
  readonly snapshotter: string
  /** Whether the config changed: there was another one before, or none. */
  readonly configChanged: boolean
}

/** The kernel's limit, without the final zero byte. */
const longestSocketPath = 107

/**
 * Writes containerd's config and the pod network, each only where it differs from the existing file, so that a full or
 * read-only disk doesn't matter once they exist.
 */
export async function writeContainerdFiles(
  places: ContainerdPlaces,
  programs: ContainerdPrograms,
  options: ContainerdFileOptions,
): Promise<ContainerdFiles> {
  if (Buffer.byteLength(places.socketPath) > longestSocketPath) {
    throw new EmbeddedContainerdError(`the socket path ${places.socketPath} is too long for a unix socket`, {
      hint: 'Choose a shorter --run-dir.',
    })
  }
  try {
    await mkdir(places.rootDir, { recursive: true, mode: 0o700 })
    await mkdir(places.runDir, { recursive: true, mode: 0o711 })
    const network = await preparePodNetwork(places, options.podCidrs ?? [])
    const snapshotter = options.snapshotter ?? chooseSnapshotter(readMounts(), await realpath(places.rootDir))
    await writeSandboxSeccomp(places.sandboxSeccompPath)
    const configChanged = await writeConfig(places, programs, { ...options, snapshotter })
    return { network, snapshotter, configChanged }
  } catch (error) {
    if (error instanceof PoddError) throw error
    throw new EmbeddedContainerdError(`cannot write containerd's files: ${errorMessage(error)}`, {
      cause: error,
      hint: `Free space on the disk of ${places.rootDir}, or make it writable.`,
    })
  }
}

async function writeSandboxSeccomp(path: string): Promise<void> {
  if (existsSync(path)) return
  const { sandboxSeccompProfile } = await import('./sandbox-seccomp.ts')
  const profile = sandboxSeccompProfile(process.arch)
  if (profile !== undefined) await writeFileAtomic(path, JSON.stringify(profile), { mode: 0o644 })
}

/** Whether the config on the disk was another one. */
async function writeConfig(
  places: ContainerdPlaces,
  programs: ContainerdPrograms,
  options: ContainerdFileOptions & { readonly snapshotter: string },
): Promise<boolean> {
  const config = formatContainerdConfig({
    version: programs.version,
    places,
    cniBinDirs: programs.cniBinDirs,
    ociRuntimes: programs.ociRuntimes,
    sandboxImage: options.sandboxImage.name,
    cgroupDriver: options.cgroupDriver,
    canLowerOomScore: hasCapability('CAP_SYS_RESOURCE'),
    snapshotter: options.snapshotter,
    registryConfigDir: options.registryConfigDir,
    pullStallMs: options.pullStallMs ?? 0,
  })
  const before = await readIfExists(places.configPath)
  if (before === config) return false
  await writeFileAtomic(places.configPath, config, { mode: 0o644 })
  return before === undefined || !isSameConfig(before, config)
}
