import { existsSync } from 'node:fs'
import { mkdir, readdir, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parse, stringify } from 'smol-toml'
import { readIfExists, writeFileAtomic } from '../base/atomic-file.ts'
import { errorMessage, PoddError } from '../base/errors.ts'
import { hasCapability } from '../host/facts/host-info.ts'
import { findExecutable } from '../host/run-command.ts'
import { readMounts } from '../host/mounts.ts'
import type { MountEntry } from '../host/mounts.ts'
import { EmbeddedContainerdError } from './containerd/process.ts'
import type { ContainerdPlaces } from './containerd/process.ts'
import { readContainerdVersion } from './containerd/version.ts'
import type { ContainerdVersion } from './containerd/version.ts'
import { findCniBinDirs, preparePodNetwork } from './network/pod-network.ts'
import type { PodNetwork } from './network/pod-network.ts'

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
  /** A directory of programs that containerd asks before it pulls an image. */
  readonly imageVerifiers?: string | undefined
  /** Overrides the one that fits the disk. */
  readonly snapshotter?: string | undefined
}

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

/**
 * containerd takes any image where the directory is missing or empty, and so does a version whose CRI doesn't ask verifiers.
 * @throws EmbeddedContainerdError
 */
export async function checkVerifiers(directory: string, version: ContainerdVersion): Promise<void> {
  if (!canAskVerifiers(version))
    throw new EmbeddedContainerdError(
      `imageVerifiers needs containerd 2.1 or newer, and containerd ${version.text} runs: it would pull every image`,
      { hint: 'Install a newer containerd, or take imageVerifiers out of the config.' },
    )
  const names = await readdir(directory).catch((error: unknown) => {
    throw new EmbeddedContainerdError(`imageVerifiers cannot be read: ${errorMessage(error)}`, {
      cause: error,
      hint: `Create ${directory}, and put the programs there that judge images.`,
    })
  })
  if (names.length > 0) return
  throw new EmbeddedContainerdError(
    `imageVerifiers names ${directory}, which is empty: containerd would pull every image`,
    { hint: 'Put the programs there that judge images, or take imageVerifiers out of the config.' },
  )
}

function canAskVerifiers({ major, minor }: ContainerdVersion): boolean {
  return major > 2 || (major === 2 && minor >= 1)
}

async function writeSandboxSeccomp(path: string): Promise<void> {
  if (existsSync(path)) return
  const { sandboxSeccompProfile } = await import('./containerd/sandbox-seccomp.ts')
  const profile = sandboxSeccompProfile(process.arch)
  if (profile !== undefined) await writeFileAtomic(path, JSON.stringify(profile), 0o644)
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
    imageVerifiers: canAskVerifiers(programs.version) ? options.imageVerifiers : undefined,
  })
  const before = await readIfExists(places.configPath)
  if (before === config) return false
  await writeFileAtomic(places.configPath, config, 0o644)
  return before === undefined || !isSameConfig(before, config)
}

interface ConfigTable {
  readonly [key: string]: string | number | boolean | readonly string[] | ConfigTable | readonly ConfigTable[]
}

/** What the config depends on besides the places. */
export interface ContainerdConfigInput {
  readonly version: ContainerdVersion
  readonly places: ContainerdPlaces
  /** Reference of the sandbox image; it has to be imported, no registry holds it. */
  readonly sandboxImage: string
  /** In order of preference; containerd 1.x takes the first. */
  readonly cniBinDirs: readonly string[]
  readonly cgroupDriver: 'cgroupfs' | 'systemd'
  /** Whether a process may lower its oom_score_adj (CAP_SYS_RESOURCE). */
  readonly canLowerOomScore: boolean
  readonly snapshotter: string
  /** Names or absolute paths; the first for pods without a RuntimeClass. */
  readonly ociRuntimes: readonly string[]
  /** Where `hosts.toml` files say how to reach registries. The directory may be absent. */
  readonly registryConfigDir: string
  /** Milliseconds without progress after which containerd ends a pull; 0: never. */
  readonly pullStallMs: number
  /** See ContainerdFileOptions. */
  readonly imageVerifiers?: string | undefined
}

/**
 * Plugins that podd never uses. Without them containerd starts sooner and takes less memory, and those that would use
 * places outside podd's directories (opt, NRI) are off. A version ignores names that it doesn't know.
 */
const unusedPlugins: readonly string[] = [
  'io.containerd.differ.v1.erofs',
  'io.containerd.internal.v1.opt',
  'io.containerd.internal.v1.restart',
  'io.containerd.internal.v1.tracing',
  'io.containerd.monitor.container.v1.restart',
  'io.containerd.nri.v1.nri',
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.snapshotter.v1.blockfile',
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.devmapper',
  'io.containerd.snapshotter.v1.erofs',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.tracing.processor.v1.otlp',
]

/** containerd's config file (version 2 for 1.x, 3 for 2.x), with only what differs from its defaults. */
export function formatContainerdConfig(input: ContainerdConfigInput): string {
  const { places, version } = input
  const modern = version.major >= 2
  return stringify({
    version: modern ? 3 : 2,
    root: places.rootDir,
    state: places.stateDir,
    disabled_plugins: unusedPlugins,
    // Without them containerd would run and serve nothing that podd can use.
    required_plugins: requiredPlugins(modern),
    oom_score: input.canLowerOomScore ? -999 : 0,
    grpc: { address: places.socketPath },
    debug: { level: 'warn' },
    // A second containerd on the same root fails with an error; the default is to wait for ever.
    timeouts: { 'io.containerd.timeout.bolt.open': '10s' },
    plugins: {
      ...(modern ? modernCri(input) : { 'io.containerd.grpc.v1.cri': legacyCri(input) }),
      [modern ? 'io.containerd.monitor.task.v1.cgroups' : 'io.containerd.monitor.v1.cgroups']: {
        no_prometheus: true,
      },
    },
  })
}

/** Whether two config files say the same: another release of podd may write it in another form. */
export function isSameConfig(one: string, other: string): boolean {
  try {
    return isDeepStrictEqual(parse(one), parse(other))
  } catch {
    // One that can't be read is another one.
    return false
  }
}

function requiredPlugins(modern: boolean): readonly string[] {
  return modern
    ? ['io.containerd.grpc.v1.cri', 'io.containerd.cri.v1.images', 'io.containerd.cri.v1.runtime']
    : ['io.containerd.grpc.v1.cri']
}

/** containerd 1.6 and 1.7: one CRI plugin. */
function legacyCri(input: ContainerdConfigInput): ConfigTable {
  return {
    ...commonCri(input),
    sandbox_image: input.sandboxImage,
    cni: { bin_dir: input.cniBinDirs[0] ?? '/opt/cni/bin', conf_dir: input.places.cniConfDir },
    containerd: {
      snapshotter: input.snapshotter,
      discard_unpacked_layers: true,
      ...runtimes(input),
    },
    // As below; a release without such a limit ignores it.
    image_pull_progress_timeout: `${input.pullStallMs}ms`,
    registry: { config_path: input.registryConfigDir },
  }
}

/** containerd 2.x: images and runtime are plugins of their own. */
function modernCri(input: ContainerdConfigInput): ConfigTable {
  return {
    'io.containerd.cri.v1.images': {
      snapshotter: input.snapshotter,
      // podd cancels stalled pulls sooner, and reports why: this bounds pulls that it can't see.
      image_pull_progress_timeout: `${input.pullStallMs}ms`,
      ...modernPull(input),
      pinned_images: { sandbox: input.sandboxImage },
      registry: { config_path: input.registryConfigDir },
    },
    'io.containerd.cri.v1.runtime': {
      ...commonCri(input),
      cni: { bin_dirs: input.cniBinDirs, conf_dir: input.places.cniConfDir, use_internal_loopback: true },
      containerd: runtimes(input),
    },
    ...imageVerifier(input),
    // Unpacked layers are on the disk before the image is recorded: a power cut leaves no partial image.
    'io.containerd.service.v1.diff-service': { default: ['walking'], sync_fs: true },
  }
}

/**
 * Only the transfer service asks image verifiers; it can neither discard layers nor sync them, and with these settings CRI
 * would not use it (`internal/cri/config`, CheckLocalImagePullConfigs, 2.1).
 */
function modernPull({ imageVerifiers }: ContainerdConfigInput): ConfigTable {
  return imageVerifiers === undefined
    ? { discard_unpacked_layers: true, use_local_image_pull: true, image_pull_with_sync_fs: true }
    : { use_local_image_pull: false }
}

function imageVerifier({ imageVerifiers, places, snapshotter }: ContainerdConfigInput): ConfigTable {
  const plugin = 'io.containerd.image-verifier.v1.bindir'
  // Other plugins need it, though nothing is ever stored there; its default is outside podd's directories.
  if (imageVerifiers === undefined) return { [plugin]: { bin_dir: join(places.rootDir, 'image-verifiers') } }
  return {
    // By default it skips those behind the tenth.
    [plugin]: { bin_dir: imageVerifiers, max_verifiers: -1, per_verifier_timeout: '60s' },
    // It unpacks with containerd's default snapshotter alone.
    'io.containerd.transfer.v1.local': {
      unpack_config: [{ platform: `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`, snapshotter }],
    },
  }
}

function commonCri(input: ContainerdConfigInput): ConfigTable {
  return {
    restrict_oom_score_adj: !input.canLowerOomScore,
    netns_mounts_under_state_dir: true,
    // Ports below 1024 and ping without a capability, as containerd 2 has it for all pods.
    enable_unprivileged_ports: true,
    enable_unprivileged_icmp: true,
    disable_hugetlb_controller: false,
    tolerate_missing_hugetlb_controller: true,
  }
}

/** Each program is a handler of its name. `runc` is containerd's default handler, and its default program. */
function runtimes(input: ContainerdConfigInput): ConfigTable {
  const handlers = input.ociRuntimes.map(
    (program) => [basename(program), ociRuntime(program, input)] as const,
  )
  const first = handlers[0]?.[0] ?? 'runc'
  return {
    ...(first !== 'runc' && { default_runtime_name: first }),
    runtimes: Object.fromEntries(handlers),
  }
}

function ociRuntime(program: string, input: ContainerdConfigInput): ConfigTable {
  return {
    runtime_type: 'io.containerd.runc.v2',
    options: {
      ...(program !== 'runc' && { BinaryName: program }),
      SystemdCgroup: input.cgroupDriver === 'systemd',
      Root: input.places.runcStateDir,
    },
  }
}

/** Filesystems on which an overlay can't have its upper layer (Documentation/filesystems/overlayfs.rst). */
const unfit = /^(?:overlay|aufs|nfs4?|cifs|smb3|9p|vfat|exfat|ecryptfs|fuse(?:\..+)?|virtiofs)$/

/**
 * How image layers are put together on the disk that holds `path`: stacked by overlayfs, or copied
 * (`native`) where the disk's filesystem can't carry an overlay, as inside another container.
 */
export function chooseSnapshotter(mounts: readonly MountEntry[], path: string): 'overlayfs' | 'native' {
  const holding = mounts
    .filter(({ mountPoint }) => mountPoint === '/' || `${path}/`.startsWith(`${mountPoint}/`))
    // Of two mounts on one place the later one is visible.
    .reduce<MountEntry | undefined>(
      (best, mount) =>
        best === undefined || mount.mountPoint.length >= best.mountPoint.length ? mount : best,
      undefined,
    )
  return holding !== undefined && unfit.test(holding.fsType) ? 'native' : 'overlayfs'
}

export interface ProgramOptions {
  /** Overrides the programs on PATH. `ctr` and the shim beside it must be of the same version. */
  readonly containerdPath?: string | undefined
  readonly ctrPath?: string | undefined
  /** Overrides the known places of CNI plugins. */
  readonly cniBinDirs?: readonly string[] | undefined
  /** Names or absolute paths, the first for pods without a RuntimeClass; `runc` where there are none. */
  readonly ociRuntimes?: readonly string[] | undefined
}

interface ContainerdPrograms {
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
