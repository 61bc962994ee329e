import type { Clock } from '../../base/clock.ts'
import type {
  CgroupFacts,
  DiskFacts,
  FirewallFacts,
  HostFacts,
  InstalledProgram,
} from '../../decide/doctor/host-facts.ts'
import { parseEffectiveCapabilities } from './capabilities.ts'
import { chooseCgroupDriver, detectCgroups } from '../cgroups/layout.ts'
import type { CgroupDriver } from '../cgroups/layout.ts'
import type { HostProbe } from '../host-probe.ts'
import { readKernelFeatures } from './kernel-features.ts'
import { isUnreachable, parseResolvConf, selectHostResolver } from '../../translate/network.ts'
import { systemdResolvPath } from '../network/host-resolver.ts'
import { mountSharing, parseMountInfo } from '../mounts.ts'
import { nodeNameOf } from './host-info.ts'

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
    swapBytes: readSwapBytes(probe),
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

function readSwapBytes(probe: HostProbe): number {
  const kibibytes = /^SwapTotal:\s+(\d+) kB$/m.exec(probe.readText('/proc/meminfo') ?? '')?.[1]
  return Number(kibibytes ?? 0) * 1024
}
