import { isMounted, mountTmpfs } from '../../host/mounts.ts'

/**
 * Has a tmpfs of at most that size mounted on a directory; one that is mounted there stays. `onMissing` is called
 * before a new one is mounted: none was yet, or a reboot took it away.
 */
export async function ensureTmpfs(
  directory: string,
  sizeBytes: number,
  onMissing?: () => Promise<void>,
): Promise<void> {
  if (await isMounted(directory)) return
  await onMissing?.()
  await mountTmpfs(directory, sizeBytes)
}
