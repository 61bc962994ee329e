import { isMounted, mountTmpfs } from '../host/mounts.ts'

/** Has a tmpfs of at most that size mounted on a folder; one that is mounted there stays. */
export async function ensureTmpfs(folder: string, sizeBytes: number): Promise<void> {
  if (!(await isMounted(folder))) await mountTmpfs(folder, sizeBytes)
}
