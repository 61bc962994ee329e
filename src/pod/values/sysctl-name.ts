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
