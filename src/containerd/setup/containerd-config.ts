import { basename, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parse, stringify } from 'smol-toml'
import type { ContainerdPlaces } from '../process/containerd-places.ts'
import type { ContainerdVersion } from '../process/containerd-version.ts'

interface ConfigTable {
  readonly [key: string]: string | number | boolean | readonly string[] | ConfigTable
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

/**
 * containerd's config file: version 2 for containerd 1.x, version 3 for 2.x. It has only what differs from containerd's
 * defaults.
 */
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
      discard_unpacked_layers: true,
      // podd cancels stalled pulls sooner, and reports why: this bounds pulls that it can't see.
      image_pull_progress_timeout: `${input.pullStallMs}ms`,
      // The transfer service can't discard layers.
      use_local_image_pull: true,
      image_pull_with_sync_fs: true,
      pinned_images: { sandbox: input.sandboxImage },
      registry: { config_path: input.registryConfigDir },
    },
    'io.containerd.cri.v1.runtime': {
      ...commonCri(input),
      cni: {
        bin_dirs: input.cniBinDirs,
        conf_dir: input.places.cniConfDir,
        use_internal_loopback: true,
      },
      containerd: runtimes(input),
    },
    // Other plugins need it, though nothing is ever stored there; its default is outside podd's directories.
    'io.containerd.image-verifier.v1.bindir': { bin_dir: join(input.places.rootDir, 'image-verifiers') },
    // Unpacked layers are on the disk before the image is recorded: a power cut leaves no partial image.
    'io.containerd.service.v1.diff-service': { default: ['walking'], sync_fs: true },
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
