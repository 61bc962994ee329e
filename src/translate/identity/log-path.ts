import type { ContainerId, PodRef } from '../../pod/values/ids.ts'

/** The longest file name that Linux allows, in bytes. */
const longestNameBytes = 255

/** `<podLogsDir>/<namespace>_<name>_<uid>`: a pod's logs, what CRI calls `log_directory` (kubelet's kuberuntime/legacy.go). */
export function podLogDirectory(podLogsDir: string, pod: PodRef): string {
  return `${podLogsDir}/${pod.namespace}_${pod.name}_${pod.uid}`
}

/** `<container>/<restart>.log`: relative to the pod's log directory, as CRI's `log_path` wants it. */
export function containerLogPath(container: string, restartCount: number): string {
  return `${container}/${restartCount}.log`
}

/** The restart count of a container's log file, rotated ones included; undefined for other names. */
export function parseLogFileName(fileName: string): number | undefined {
  const match = /^(\d+)\.log(?:\.\d{8}-\d{6}(?:\.\d+)?(?:\.gz)?)?$/u.exec(fileName)
  return match === null ? undefined : Number(match[1])
}

/**
 * `<containerLogsDir>/<pod>_<namespace>_<container>-<id>.log`, the link that log shippers look for. The name
 * keeps to 255 characters by shortening what stands before the id, as the kubelet does (kuberuntime/legacy.go).
 */
export function containerLogSymlink(
  containerLogsDir: string,
  pod: PodRef,
  container: string,
  containerId: ContainerId,
): string {
  const suffix = `-${containerId}.log`
  const head = `${pod.name}_${pod.namespace}_${container}`
  return `${containerLogsDir}/${head.slice(0, longestNameBytes - suffix.length)}${suffix}`
}

/** Whether the name of a link is one that `containerLogSymlink` gives for a container of this pod, or of one with such a name. */
export function mayLinkToLogOf(pod: PodRef, linkName: string): boolean {
  const prefix = `${pod.name}_${pod.namespace}_`
  if (linkName.startsWith(prefix)) return true
  const isShortened = linkName.length === longestNameBytes
  return isShortened && prefix.startsWith(linkName.slice(0, linkName.lastIndexOf('-')))
}
