import { formatTime } from '../../base/clock.ts'
import { error, ok, skipped, warning } from './doctor-finding.ts'
import type { DoctorFinding } from './doctor-finding.ts'
import { checkRuntime } from './doctor-runtime-checks.ts'
import type { CgroupFacts, DiskFacts, FirewallFacts, HostFacts, PortFacts } from './host-facts.ts'

/** Every check, in the order in which their findings are read. */
export function checkHost(facts: HostFacts): readonly DoctorFinding[] {
  return [
    checkRoot(facts),
    ...checkRuntime(facts),
    checkFirewall(facts.firewall),
    ...checkCgroups(facts.cgroups),
    ...checkKernel(facts),
    ...facts.disks.map(checkDisk),
    checkClock(facts),
    checkInit(facts),
    checkOomScore(facts),
    checkSwap(facts),
    checkSharedRoot(facts),
    checkName(facts),
    ...checkResolver(facts),
    ...checkManifests(facts),
    ...facts.ports.map(checkPort),
    ...facts.holds.map(checkHold),
    ...checkCrash(facts),
  ]
}

function checkRoot({ isRoot }: HostFacts): DoctorFinding {
  if (isRoot) return ok('root', 'runs as root')
  return warning(
    'root',
    'without root some checks see only part of the host',
    'Run it again with sudo. `podd run` needs root too.',
  )
}

function checkHold({ source, sinceMs }: HostFacts['holds'][number]): DoctorFinding {
  return warning(
    'hold',
    `the source ${source} is held since ${formatTime(sinceMs)}: its changes are not applied`,
    `podd resume ${source} applies them; podd get sources shows what waits.`,
  )
}

/** For how long a crash is worth a warning. */
const crashCountsMs = 7 * 86_400_000

function checkCrash({ crash, clock }: HostFacts): readonly DoctorFinding[] {
  if (crash === undefined || clock.wallMs - crash.atMs > crashCountsMs) return []
  const { path, atMs, count } = crash
  return [
    warning(
      'crashes',
      `podd crashed at ${formatTime(atMs)} and restarted; ${count} ${count === 1 ? 'report is' : 'reports are'} kept`,
      `Read ${path}, and report it; upgrade podd.`,
    ),
  ]
}

function checkFirewall(firewall: FirewallFacts): DoctorFinding {
  const name = 'iptables'
  switch (firewall.kind) {
    case 'works':
      return ok(name, `${firewall.version}, FORWARD policy ${firewall.forwardPolicy}`)
    case 'missing':
      return error(
        name,
        'iptables is not installed; pods need it to reach the network, and for host ports',
        'Install the package iptables.',
      )
    case 'broken':
      return error(
        name,
        `iptables does not work: ${firewall.message}`,
        'The kernel needs nf_tables (or ip_tables) with NAT. If it was just updated, reboot the host.',
      )
    case 'unknown':
      return skipped(name, 'only root can look')
  }
}

/** Without these, limits can't be kept. */
const neededControllers: readonly string[] = ['cpu', 'memory', 'pids']

function checkCgroups(cgroups: CgroupFacts | undefined): readonly DoctorFinding[] {
  if (cgroups === undefined) {
    return [
      error(
        'cgroups',
        'no cgroups are mounted at /sys/fs/cgroup',
        'Mount them: mount -t cgroup2 none /sys/fs/cgroup. In a container, start it with --cgroupns=host and /sys/fs/cgroup mounted.',
      ),
    ]
  }
  const missing = neededControllers.filter((name) => !cgroups.controllers.includes(name))
  const version = ok('cgroups', `version ${cgroups.version}, driver ${cgroups.driver}`)
  if (missing.length === 0) {
    const message = cgroups.controllers.join(' ')
    return [version, ok('cgroup-controllers', message)]
  }
  return [
    version,
    error(
      'cgroup-controllers',
      `the kernel offers no ${missing.join(', ')} controller, so limits can't be kept`,
      missing.includes('memory')
        ? 'Add cgroup_enable=memory cgroup_memory=1 to the kernel command line (on a Raspberry Pi: /boot/firmware/cmdline.txt) and reboot.'
        : 'Boot a kernel that has them.',
    ),
  ]
}

function checkKernel({ kernel, kernelRelease }: HostFacts): readonly DoctorFinding[] {
  const missing = kernel.filter(({ present }) => present === false)
  if (missing.length === 0) {
    const unknown = kernel.filter(({ present }) => present === undefined).map(({ name }) => name)
    const rest = unknown.length === 0 ? '' : ` (nothing tells about ${unknown.join(', ')})`
    return [ok('kernel', `${kernelRelease} has all that pods need${rest}`)]
  }
  return missing.map(({ name, purpose, option }) =>
    (optionalFeatures.includes(name) ? warning : error)(
      `kernel-${name}`,
      `Linux ${kernelRelease} lacks ${name}: ${purpose}`,
      `Load the module, or boot a kernel with ${option}. If the kernel was just updated, reboot the host.`,
    ),
  )
}

/** Without these, only pods that ask for them suffer. */
const optionalFeatures: readonly string[] = ['user namespaces', 'seccomp']

const mebibyte = 1024 ** 2

/** The kubelet evicts below 10 % of a disk and 5 % of its inodes (`eviction/defaults_linux.go`, 1.36). */
function checkDisk(disk: DiskFacts): DoctorFinding {
  const name = 'disk'
  const where = `${disk.path} (${disk.purpose})`
  if (disk.readOnly) {
    return error(
      name,
      `${where} is read-only`,
      'Mount it writable, or move the directory: --root-dir, --pod-logs-dir.',
    )
  }
  const free = `${formatBytes(disk.freeBytes)} of ${formatBytes(disk.totalBytes)} free`
  const inodeShare = disk.totalInodes === 0 ? 1 : disk.freeInodes / disk.totalInodes
  if (disk.freeBytes < 64 * mebibyte || inodeShare < 0.01) {
    return error(
      name,
      `${where} is full: ${free}${inodeShare < 0.01 ? `, ${disk.freeInodes} inodes` : ''}`,
      'Free some space; `podd images` shows what images take.',
    )
  }
  if (disk.freeBytes < disk.totalBytes * 0.1 || inodeShare < 0.05) {
    return warning(
      name,
      `${where} is nearly full: ${free}${inodeShare < 0.05 ? `, ${disk.freeInodes} inodes` : ''}`,
      'Free some space before images and logs need it.',
    )
  }
  return ok(name, `${where}: ${free}`)
}

function formatBytes(bytes: number): string {
  const mebibytes = bytes / mebibyte
  return mebibytes < 1024 ? `${Math.round(mebibytes)} MiB` : `${(mebibytes / 1024).toFixed(1)} GiB`
}

/** The clock can't be before this time, when podd was written. */
const earliestWallMs = Date.UTC(2026, 0, 1)

function checkClock({ clock, hasSystemd }: HostFacts): DoctorFinding {
  const shown = new Date(clock.wallMs).toISOString()
  if (clock.wallMs < earliestWallMs) {
    return error(
      'clock',
      `the clock shows ${shown}, before podd was made; certificates of registries won't verify`,
      'Set it with `date -s`, and keep it synchronized: systemd-timesyncd or chrony, and a battery for the RTC.',
    )
  }
  if (clock.synchronized === false) {
    return warning(
      'clock',
      `the clock shows ${shown} and is not synchronized`,
      hasSystemd
        ? 'Switch it on: timedatectl set-ntp true. Where that is not supported, install systemd-timesyncd or chrony.'
        : 'Install chrony or another NTP client.',
    )
  }
  const synchronized = clock.synchronized === true ? ', synchronized' : ''
  return ok('clock', `${shown}${synchronized}`)
}

function checkInit({ hasSystemd }: HostFacts): DoctorFinding {
  const message = hasSystemd ? 'systemd' : 'not systemd: containerd runs as a plain process beside podd'
  return ok('init', message)
}

function checkOomScore({ canLowerOomScore }: HostFacts): DoctorFinding {
  if (canLowerOomScore) return ok('oom-score', 'can be lowered')
  return warning(
    'oom-score',
    "oom_score_adj can't be lowered (no CAP_SYS_RESOURCE): guaranteed pods are not spared when memory ends",
    'Run podd with CAP_SYS_RESOURCE, where the host can give it.',
  )
}

function checkSwap({ swapBytes }: HostFacts): DoctorFinding {
  const message = swapBytes === 0 ? 'none' : `${formatBytes(swapBytes)}; memory limits count without it`
  return ok('swap', message)
}

function checkSharedRoot({ sharesRoot }: HostFacts): DoctorFinding {
  const name = 'shared-root'
  if (sharesRoot === undefined) return skipped(name, 'nothing tells of the mounts of the host')
  if (sharesRoot) return ok(name, '/ is a shared mount')
  return warning(
    name,
    '/ is not a shared mount: volumeMounts with mountPropagation HostToContainer or Bidirectional fail',
    'Run mount --make-rshared / at each boot, before podd: systemd does it, other init programs take it in a script (OpenRC: /etc/local.d/shared.start).',
  )
}

function checkName({ name: { host, node, isConfigured }, hasSystemd }: HostFacts): DoctorFinding {
  const name = 'host-name'
  const rename = hasSystemd
    ? `hostnamectl set-hostname ${node}`
    : `hostname ${node}, and the same in /etc/hostname`
  if (isConfigured || host.toLowerCase() === node) return ok(name, node)
  return warning(
    name,
    `the host's name ${host} is no DNS name: the node is called ${node}`,
    `Rename the host (${rename}), or choose a name by hostnameOverride.`,
  )
}

function checkResolver({ resolver }: HostFacts): readonly DoctorFinding[] {
  if (resolver === undefined) return []
  const name = 'resolver'
  const { path, servers, isUnreachable } = resolver
  if (!isUnreachable) return [ok(name, `pods get ${servers.join(', ')}`)]
  const what =
    servers.length === 0
      ? `${path} names no server`
      : `${path} names only ${servers.join(', ')}, on the loopback of the host`
  return [
    warning(
      name,
      `${what}: pods with a network of their own resolve no names`,
      `Have that resolver listen on another address of the host too and name this one in ${path}, name another file with servers in resolvConf, or give such pods dnsPolicy None with servers of their own.`,
    ),
  ]
}

function checkManifests({ manifests }: HostFacts): readonly DoctorFinding[] {
  if (manifests === undefined) return []
  if (manifests.exists) {
    const { path, problems = [] } = manifests
    if (problems.length === 0) return [ok('manifests', path)]
    return problems.map(({ place, message, hint = 'rename it' }) =>
      warning('manifests', `${place.path}: ${message}`, `${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`),
    )
  }
  return [
    warning(
      'manifests',
      `${manifests.path} does not exist`,
      `Make it: mkdir -p ${manifests.path}. podd waits for it.`,
    ),
  ]
}

function checkPort({ option, address, state }: PortFacts): DoctorFinding {
  const name = option === 'api.listen' ? 'api-port' : 'read-only-port'
  switch (state.kind) {
    case 'open':
      return ok(name, `podd listens at ${address}`)
    case 'free':
      return ok(name, `${address} is free for ${option}`)
    case 'fails':
      return warning(
        name,
        `${option}: ${state.message}`,
        `Find out who has the port (ss -ltnp) or whether this host has the address (ip address), or change ${option}. podd tries again every 10 s.`,
      )
    case 'changed':
      return warning(
        name,
        `${state.served === undefined ? `podd was started without ${option}` : `podd was started with ${option} ${state.served}`}; ${address} takes effect when podd is restarted`,
        'Restart podd; the pods keep running: podd restart-daemon',
      )
    case 'unknown':
      return skipped(name, `cannot tell whether podd listens at ${address}: ${state.reason}`)
  }
}
