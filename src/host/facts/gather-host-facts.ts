import { gunzipSync } from 'node:zlib'
import type { Clock } from '../../base/clock.ts'
import type {
  CgroupFacts,
  DiskFacts,
  FirewallFacts,
  HostFacts,
  InstalledProgram,
  KernelFeature,
} from '../../decide/doctor/host-facts.ts'
import { isUnreachable, parseResolvConf, selectHostResolver } from '../../translate/network.ts'
import { chooseCgroupDriver, detectCgroups } from '../cgroups/layout.ts'
import type { CgroupDriver } from '../cgroups/layout.ts'
import type { HostProbe } from '../host-probe.ts'
import { mountSharing, parseMountInfo } from '../mounts.ts'
import { systemdResolvPath } from '../resolver.ts'
import { nodeNameOf, parseEffectiveCapabilities } from './host-info.ts'
import { parseMemory } from './host-stats.ts'

/** The settings on which the facts depend. */
export interface GatherOptions {
  readonly clock: Clock
  readonly isRoot: boolean
  readonly rootDir: string
  readonly runDir: string
  readonly podLogsDir: string
  /** Undefined where no directory is configured. */
  readonly manifestPath: string | undefined
  readonly cgroupDriver: CgroupDriver | 'auto'
  /** Names or absolute paths. */
  readonly ociRuntimes: readonly string[]
  /** The runtime's own driver, where it reports it. */
  readonly runtimeDriver: CgroupDriver | undefined
  /** The host's own name, as the kernel has it. */
  readonly hostName: string
  readonly hostnameOverride: string | undefined
  /** The resolver configuration of pods; empty for none. */
  readonly resolvConf: string | undefined
}

/** All of the facts but those about the runtime and podd itself. Looks at the host and changes nothing. */
export async function gatherHostFacts(
  probe: HostProbe,
  options: GatherOptions,
): Promise<Omit<HostFacts, 'crash' | 'holds' | 'ports' | 'runtime'>> {
  const kernelRelease = probe.readText('/proc/sys/kernel/osrelease')?.trim() ?? ''
  const hasSystemd = probe.exists('/run/systemd/system')
  const status = probe.readText('/proc/self/status') ?? ''
  const { manifestPath } = options
  return {
    isRoot: options.isRoot,
    hasSystemd,
    kernelRelease,
    kernel: readKernelFeatures(probe, kernelRelease),
    programs: {
      containerd: await findProgram(probe, 'containerd', /^\S+ \S+ v?(\S+)/),
      ctr: await findProgram(probe, 'ctr', /(\S+)$/),
      ociRuntimes: await Promise.all(
        options.ociRuntimes.map(async (name) => ({
          name,
          program: await findProgram(probe, name, /^\S+ version (\S+)/),
        })),
      ),
    },
    firewall: await readFirewall(probe, options.isRoot),
    cgroups: readCgroups(probe, options, hasSystemd),
    disks: await readDisks(probe, options),
    clock: { wallMs: options.clock.wallMs(), synchronized: await readSynchronized(probe) },
    canLowerOomScore: parseEffectiveCapabilities(status, 'CAP_SYS_RESOURCE'),
    swapBytes: parseMemory(probe.readText('/proc/meminfo') ?? '')('SwapTotal') ?? 0,
    sharesRoot: readSharesRoot(probe),
    name: {
      host: options.hostName,
      node: options.hostnameOverride ?? nodeNameOf(options.hostName),
      isConfigured: options.hostnameOverride !== undefined,
    },
    resolver: readResolver(probe, options.resolvConf),
    manifests:
      manifestPath === undefined ? undefined : { path: manifestPath, exists: probe.exists(manifestPath) },
  }
}

/** Of the first process: podd's own mounts may be others. */
function readSharesRoot(probe: HostProbe): boolean | undefined {
  const text = probe.readText('/proc/1/mountinfo') ?? probe.readText('/proc/self/mountinfo')
  return text === undefined ? undefined : mountSharing('/', text) === 'shared'
}

function readResolver(probe: HostProbe, path: string | undefined): HostFacts['resolver'] {
  if (path === undefined || path === '') return undefined
  const systemd = probe.readText(systemdResolvPath)
  const { servers } = selectHostResolver(
    parseResolvConf(probe.readText(path) ?? ''),
    systemd === undefined ? undefined : parseResolvConf(systemd),
  )
  return { path, servers, isUnreachable: isUnreachable({ servers }) }
}

async function findProgram(
  probe: HostProbe,
  name: string,
  version: RegExp,
): Promise<InstalledProgram | undefined> {
  const path = probe.find(name)
  if (path === undefined) return undefined
  const result = await probe.run(path, ['--version'])
  return { path, version: version.exec(result?.stdout.trim() ?? '')?.[1] ?? '' }
}

async function readFirewall(probe: HostProbe, isRoot: boolean): Promise<FirewallFacts> {
  const path = probe.find('iptables')
  if (path === undefined) return { kind: 'missing' }
  if (!isRoot) return { kind: 'unknown' }
  const nat = await probe.run(path, ['-w', '5', '-t', 'nat', '-S'])
  const forward = await probe.run(path, ['-w', '5', '-S', 'FORWARD'])
  const failed = [nat, forward].find((result) => result?.exitCode !== 0)
  if (nat === undefined || forward === undefined || failed !== undefined) {
    return { kind: 'broken', message: failed?.stderr.trim().split('\n')[0] ?? 'it does not start' }
  }
  const version = (await probe.run(path, ['--version']))?.stdout.trim() ?? 'iptables'
  return {
    kind: 'works',
    version,
    forwardPolicy: /^-P FORWARD (\S+)/m.exec(forward.stdout)?.[1] ?? 'unknown',
  }
}

/** What stands among the controllers in the mount options of version 1 (cgroups(7)). */
const mountOptions: ReadonlySet<string> = new Set(['clone_children', 'noprefix', 'xattr'])

function readCgroups(probe: HostProbe, options: GatherOptions, hasSystemd: boolean): CgroupFacts | undefined {
  const system = detectCgroups(parseMountInfo(probe.readText('/proc/self/mountinfo') ?? ''))
  if (system === undefined) return undefined
  const controllers =
    system.version === 2
      ? words(probe.readText('/sys/fs/cgroup/cgroup.controllers'))
      : system.hierarchies.flatMap((hierarchy) => hierarchy.controllers)
  return {
    version: system.version,
    controllers: controllers.filter((name) => /^[a-z_]+$/.test(name) && !mountOptions.has(name)).sort(),
    hybridControllers:
      system.version === 2 ? [] : words(probe.readText('/sys/fs/cgroup/unified/cgroup.controllers')),
    driver: chooseCgroupDriver({
      configured: options.cgroupDriver,
      runtime: options.runtimeDriver,
      systemd: hasSystemd,
      version: system.version,
    }),
  }
}

function words(text: string | undefined): readonly string[] {
  return (text ?? '').split(/\s+/u).filter((word) => word !== '')
}

async function readDisks(probe: HostProbe, options: GatherOptions): Promise<readonly DiskFacts[]> {
  const places = [
    { purpose: 'images and state', path: options.rootDir },
    { purpose: 'pod logs', path: options.podLogsDir },
    { purpose: 'runtime files', path: options.runDir },
  ]
  const found = await Promise.all(
    places.map(async (place) => {
      const space = await probe.diskSpace(place.path)
      return space === undefined ? [] : [{ ...place, ...space }]
    }),
  )
  return found.flat()
}

/** timedatectl asks the kernel, whatever program keeps the time; timesyncd leaves a file besides. */
async function readSynchronized(probe: HostProbe): Promise<boolean | undefined> {
  if (probe.exists('/run/systemd/timesync/synchronized')) return true
  const path = probe.find('timedatectl')
  if (path === undefined) return undefined
  const result = await probe.run(path, ['show', '--property=NTPSynchronized', '--value'])
  if (result?.exitCode !== 0) return undefined
  return result.stdout.trim() === 'yes'
}

interface FeatureSource {
  readonly name: string
  readonly purpose: string
  readonly option: string
  /** The module that provides it, if it can be one. */
  readonly module?: string
  /** A path that exists when the kernel has it. */
  readonly evidence?: string
}

/** The kernel features that pods need. */
const featureSources: readonly FeatureSource[] = [
  {
    name: 'overlayfs',
    purpose: 'image layers are stacked with it',
    option: 'CONFIG_OVERLAY_FS',
    module: 'overlay',
    evidence: '/sys/module/overlay',
  },
  {
    name: 'bridge',
    purpose: "the pods' network is a bridge",
    option: 'CONFIG_BRIDGE',
    module: 'bridge',
    evidence: '/sys/module/bridge',
  },
  {
    name: 'veth',
    purpose: 'pods are plugged into their network with it',
    option: 'CONFIG_VETH',
    module: 'veth',
    evidence: '/sys/module/veth',
  },
  {
    name: 'multiport',
    purpose: 'host ports are forwarded with this match of iptables',
    option: 'CONFIG_NETFILTER_XT_MATCH_MULTIPORT',
    module: 'xt_multiport',
  },
  {
    name: 'comment',
    purpose: "the pods' firewall rules are marked with this match of iptables",
    option: 'CONFIG_NETFILTER_XT_MATCH_COMMENT',
    module: 'xt_comment',
  },
  {
    name: 'seccomp',
    purpose: 'the default seccomp profile of pods needs it',
    option: 'CONFIG_SECCOMP_FILTER',
    evidence: '/proc/sys/kernel/seccomp/actions_avail',
  },
  {
    name: 'user namespaces',
    purpose: 'pods with hostUsers: false need them',
    option: 'CONFIG_USER_NS',
    evidence: '/proc/self/ns/user',
  },
]

/**
 * The features of the kernel: by evidence in /sys and /proc, else by its build config and the modules installed for it.
 * A module that is built but not installed (a kernel updated under the running one) counts as absent.
 */
function readKernelFeatures(probe: HostProbe, release: string): readonly KernelFeature[] {
  const config = readKernelConfig(probe, release)
  const modules = readModules(probe, release)
  return featureSources.map((source) => ({
    name: source.name,
    purpose: source.purpose,
    option: source.option,
    present: hasFeature(source, probe, { config, modules }),
  }))
}

interface KernelBuild {
  /** Undefined where the kernel doesn't show it. */
  readonly config: string | undefined
  /** modules.dep and modules.builtin; undefined where neither is there. */
  readonly modules: string | undefined
}

function hasFeature(
  source: FeatureSource,
  probe: HostProbe,
  { config, modules }: KernelBuild,
): boolean | undefined {
  if (source.evidence !== undefined && probe.exists(source.evidence)) return true
  const built = new RegExp(`^${source.option}=([ym])$`, 'm').exec(config ?? '')?.[1]
  if (built === 'y') return true
  if (config !== undefined && built === undefined) return false
  const installed =
    modules === undefined || source.module === undefined
      ? undefined
      : new RegExp(`/${source.module}\\.ko`, 'm').test(modules)
  if (built === 'm') return installed ?? false
  return installed
}

function readKernelConfig(probe: HostProbe, release: string): string | undefined {
  const packed = probe.readBytes('/proc/config.gz')
  if (packed !== undefined) return gunzipSync(packed).toString('utf8')
  return probe.readText(`/boot/config-${release}`) ?? probe.readText(`/lib/modules/${release}/config`)
}

function readModules(probe: HostProbe, release: string): string | undefined {
  const lists = ['modules.dep', 'modules.builtin'].map((name) =>
    probe.readText(`/lib/modules/${release}/${name}`),
  )
  const found = lists.filter((list) => list !== undefined)
  return found.length === 0 ? undefined : found.join('\n')
}
