import { isMounted, mountTmpfs } from '../../host/mounts.ts'

/**
 * Mounts a tmpfs of this size on a directory, unless one is mounted there. `onMissing` is called before a new one is
 * mounted: the first one, or one after a reboot.
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
