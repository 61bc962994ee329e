import { normalSysctl, sysctlNamespace } from '../../pod/values/sysctl-name.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'

/** Safe: they act only inside the pod (`pkg/kubelet/sysctl/safe_sysctls.go`, 1.36). */
export const safeSysctls: readonly string[] = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ping_group_range',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.tcp_wmem',
]

/**
 * Why a pod may not set one of its sysctls; undefined where it may set all (`pkg/kubelet/sysctl/allowlist.go`, 1.36:
 * reason SysctlForbidden).
 * @param allowedUnsafe names, or starts of names with `*` at their end
 */
export function sysctlProblem(
  spec: Pick<PodSpec, 'securityContext' | 'hostNetwork' | 'hostIPC'>,
  allowedUnsafe: readonly string[],
): string | undefined {
  for (const sysctl of spec.securityContext?.sysctls ?? []) {
    const name = normalSysctl(sysctl.name)
    if (!isAllowed(name, allowedUnsafe)) return `forbidden sysctl: "${name}" not allowlisted`
    const namespace = sysctlNamespace(name)
    const shared = (namespace === 'Net' && spec.hostNetwork) || (namespace === 'IPC' && spec.hostIPC)
    if (shared) return `forbidden sysctl: "${name}" not allowed with host ${namespace} enabled`
  }
  return undefined
}

function isAllowed(name: string, allowedUnsafe: readonly string[]): boolean {
  if (safeSysctls.includes(name)) return true
  if (sysctlNamespace(name) === undefined) return false
  return allowedUnsafe.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  )
}
