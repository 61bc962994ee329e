import { normalSysctl, safeSysctls, sysctlNamespace } from '../../pod/values/kernel-names.ts'
import type { FieldPath } from '../../pod/schema/issues.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'

/**
 * Why a pod may not set one of its sysctls; undefined where it may set all (`pkg/kubelet/sysctl/allowlist.go`, 1.36:
 * reason SysctlForbidden).
 * @param allowedUnsafe names, or starts of names with `*` at their end
 */
export function sysctlProblem(
  spec: Pick<PodSpec, 'securityContext' | 'hostNetwork' | 'hostIPC'>,
  allowedUnsafe: readonly string[],
): { readonly message: string; readonly at: FieldPath } | undefined {
  for (const [index, sysctl] of (spec.securityContext?.sysctls ?? []).entries()) {
    const name = normalSysctl(sysctl.name)
    const at = ['spec', 'securityContext', 'sysctls', index, 'name']
    if (!isAllowed(name, allowedUnsafe)) return { message: `forbidden sysctl: "${name}" not allowlisted`, at }
    const namespace = sysctlNamespace(name)
    const shared = (namespace === 'Net' && spec.hostNetwork) || (namespace === 'IPC' && spec.hostIPC)
    if (shared)
      return { message: `forbidden sysctl: "${name}" not allowed with host ${namespace} enabled`, at }
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
