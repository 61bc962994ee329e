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
