import { access, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { PodUid } from '../../pod/values/ids.ts'
import { podDirectory } from './pod-directory.ts'

/**
 * Does what a volume needs once in a pod's life: containers may change owners and modes afterwards, and
 * keep what they changed when they restart. A podd that is killed on the way does it again.
 */
export async function onceForPod(
  { rootDir, uid }: { readonly rootDir: string; readonly uid: PodUid },
  volume: string,
  act: () => Promise<void>,
): Promise<void> {
  const mark = markPath(rootDir, uid, volume)
  if (await isThere(mark)) return
  await act()
  await mkdir(dirname(mark), { recursive: true, mode: 0o750 })
  await writeFile(mark, '', { mode: 0o600 })
}

/** Has it done again: what it was done to is gone. */
export async function forgetReady(
  { rootDir, uid }: { readonly rootDir: string; readonly uid: PodUid },
  volume: string,
): Promise<void> {
  await rm(markPath(rootDir, uid, volume), { force: true })
}

/** Whether it was done. */
export function isReady(
  { rootDir, uid }: { readonly rootDir: string; readonly uid: PodUid },
  volume: string,
): Promise<boolean> {
  return isThere(markPath(rootDir, uid, volume))
}

function markPath(rootDir: string, uid: PodUid, volume: string): string {
  return `${podDirectory(rootDir, uid)}/ready/${volume}`
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch {
    // Without a mark that can be seen the volume is made again.
    return false
  }
}
