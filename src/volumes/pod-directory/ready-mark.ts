import { access, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { PodUid } from '../../pod/values/ids.ts'
import { podDirectory } from './pod-directory.ts'

/**
 * Does work that a volume needs once in a pod's life: containers may change owners and modes afterwards, and a restart
 * must not undo that. If podd is killed on the way, the next one repeats it.
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

/** Removes the mark, so that the work is repeated: its volume is gone. */
export async function forgetReady(
  { rootDir, uid }: { readonly rootDir: string; readonly uid: PodUid },
  volume: string,
): Promise<void> {
  await rm(markPath(rootDir, uid, volume), { force: true })
}

/** Whether the work was done. */
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
    // Without a readable mark the volume is prepared again.
    return false
  }
}
