/* Names of the kernel: capabilities and sysctls. */

/**
 * A capability as Kubernetes and CRI write it: `NET_ADMIN` for `CAP_NET_ADMIN` and `net_admin`, `ALL` for `cap_all`.
 * The runtime puts `CAP_` before whatever it is given, and ignores what then is no capability.
 */
export function normalCapability(name: string): string {
  return name.toUpperCase().replace(/^CAP_/u, '')
}

/** Those of linux/capability.h (6.12), and all of them together. */
const known: ReadonlySet<string> = new Set([
  'ALL',
  'AUDIT_CONTROL',
  'AUDIT_READ',
  'AUDIT_WRITE',
  'BLOCK_SUSPEND',
  'BPF',
  'CHECKPOINT_RESTORE',
  'CHOWN',
  'DAC_OVERRIDE',
  'DAC_READ_SEARCH',
  'FOWNER',
  'FSETID',
  'IPC_LOCK',
  'IPC_OWNER',
  'KILL',
  'LEASE',
  'LINUX_IMMUTABLE',
  'MAC_ADMIN',
  'MAC_OVERRIDE',
  'MKNOD',
  'NET_ADMIN',
  'NET_BIND_SERVICE',
  'NET_BROADCAST',
  'NET_RAW',
  'PERFMON',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_ADMIN',
  'SYS_BOOT',
  'SYS_CHROOT',
  'SYS_MODULE',
  'SYS_NICE',
  'SYS_PACCT',
  'SYS_PTRACE',
  'SYS_RAWIO',
  'SYS_RESOURCE',
  'SYS_TIME',
  'SYS_TTY_CONFIG',
  'SYSLOG',
  'WAKE_ALARM',
])

/** Whether a name in its normal form is one that the kernel has, or `ALL`. */
export function isKnownCapability(name: string): boolean {
  return known.has(name)
}

/** Which of the kernel's namespaces a sysctl belongs to. */
export type SysctlNamespace = 'IPC' | 'Net'

/**
 * `k8s.io/component-helpers/node/util/sysctl/namespace.go` (1.36). Undefined: it acts on the whole host, and no pod may
 * set it.
 * @param name with dots between its parts
 */
export function sysctlNamespace(name: string): SysctlNamespace | undefined {
  if (name.startsWith('net.')) return 'Net'
  const isIpc =
    name === 'kernel.sem' ||
    ['kernel.shm', 'kernel.msg', 'fs.mqueue.'].some((start) => name.startsWith(start))
  return isIpc ? 'IPC' : undefined
}

/** `net/ipv4/…` means `net.ipv4.…`; a dot inside a part is written as a slash there. */
export function normalSysctl(name: string): string {
  const separator = /[./]/u.exec(name)?.[0]
  if (separator !== '/') return name
  return name.replaceAll(/[./]/gu, (sign) => (sign === '/' ? '.' : '/'))
}

/** What a sysctl takes: so many whole numbers between two bounds, which go up if `rises`; or a list of ranges of ports. */
type SysctlForm =
  | { readonly count: number; readonly min: number; readonly max: number; readonly rises?: true }
  | 'port-ranges'

const maxInt = 2 ** 31 - 1
const oneInt: SysctlForm = { count: 1, min: -maxInt - 1, max: maxInt }

/**
 * The safe ones, which a pod may always set as they act only inside the pod (`pkg/kubelet/sysctl/safe_sysctls.go`, 1.36),
 * with what Linux takes for them; the values of others are the kernel's to judge.
 */
const sysctlForms: ReadonlyMap<string, SysctlForm> = new Map<string, SysctlForm>([
  ['kernel.shm_rmid_forced', { count: 1, min: 0, max: 1 }],
  ['net.ipv4.ip_local_port_range', { count: 2, min: 1, max: 65_535, rises: true }],
  ['net.ipv4.ip_local_reserved_ports', 'port-ranges'],
  ['net.ipv4.ip_unprivileged_port_start', { count: 1, min: 0, max: 65_535 }],
  ['net.ipv4.ping_group_range', { count: 2, min: 0, max: maxInt }],
  ['net.ipv4.tcp_fin_timeout', oneInt],
  ['net.ipv4.tcp_keepalive_intvl', oneInt],
  ['net.ipv4.tcp_keepalive_probes', { count: 1, min: 0, max: 255 }],
  ['net.ipv4.tcp_keepalive_time', oneInt],
  ['net.ipv4.tcp_rmem', { count: 3, min: 1, max: maxInt }],
  ['net.ipv4.tcp_syncookies', { count: 1, min: 0, max: 255 }],
  ['net.ipv4.tcp_wmem', { count: 3, min: 1, max: maxInt }],
])

export const safeSysctls: readonly string[] = [...sysctlForms.keys()]

/**
 * Why the kernel refuses a value, so that no sandbox with it could start; undefined where it takes it or podd can't
 * tell. An empty value leaves the sysctl as it is.
 */
export function sysctlValueProblem(name: string, value: string): string | undefined {
  const form = sysctlForms.get(normalSysctl(name))
  if (form === undefined || value.trim() === '') return undefined
  if (form === 'port-ranges') {
    const isRange = (range: string): boolean => {
      const ends = /^(\d+)(?:-(\d+))?$/u.exec(range.trim())
      const [low, high] = [Number(ends?.[1]), Number(ends?.[2] ?? ends?.[1])]
      return low <= high && high <= 65_535
    }
    return value.split(',').every(isRange)
      ? undefined
      : 'takes ports and ranges of them, such as 8080,9000-9100'
  }
  const numbers = value.trim().split(/\s+/u)
  const { count, min, max, rises } = form
  const isGood =
    numbers.length <= count &&
    numbers.every((text) => /^-?\d+$/u.test(text) && Number(text) >= min && Number(text) <= max) &&
    (rises !== true || numbers.length < 2 || Number(numbers[0]) <= Number(numbers[1]))
  if (isGood) return undefined
  const what = count === 1 ? 'a whole number' : `${count} whole numbers`
  return `takes ${what} between ${min} and ${max}${rises === true ? ', the second no less than the first' : ''}`
}
