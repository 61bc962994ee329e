import { chmod, mkdir, open, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from '../../base/errors.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { terminationLogPath } from './pod-directory.ts'

/**
 * The longest termination message that Kubernetes keeps (`pkg/kubelet/container`, MaxContainerTerminationMessageLength,
 * 1.36).
 */
const maxMessageBytes = 4096

/** The container and attempt of a message. */
export interface TerminationLog {
  readonly rootDir: string
  readonly uid: PodUid
  readonly container: string
  readonly restartCount: number
}

/** Creates an empty file that any user of the container may write to, and returns its path. */
export async function prepareTerminationLog(log: TerminationLog): Promise<string> {
  const path = pathOf(log)
  await mkdir(dirname(path), { recursive: true, mode: 0o750 })
  await writeFile(path, '', { mode: 0o666 })
  await chmod(path, 0o666)
  return path
}

/** The message as the container left it, its last 4096 bytes; empty where it left none. */
export async function readTerminationLog(log: TerminationLog): Promise<string> {
  try {
    const file = await open(pathOf(log))
    try {
      const { size } = await file.stat()
      const length = Math.min(size, maxMessageBytes)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
      return buffer.toString('utf8', 0, bytesRead)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return ''
    throw error
  }
}

/** Removes the file of a container that is gone, if it exists. */
export async function removeTerminationLog(log: TerminationLog): Promise<void> {
  await rm(pathOf(log), { force: true })
}

function pathOf({ rootDir, uid, container, restartCount }: TerminationLog): string {
  return terminationLogPath(rootDir, uid, container, restartCount)
}
