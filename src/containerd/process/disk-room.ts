import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tryRemove } from '../../base/atomic-file.ts'
import { errorMessage } from '../../base/errors.ts'

/** The room that containerd's database needs to grow. */
const basicBytes = 1024 * 1024
/** CRI rewrites the status of each container when it starts: a file of one block, beside the one that it replaces. */
const bytesEach = 16 * 1024

/** Why containerd's disk has no room to record that many containers (ENOSPC, EROFS, …); undefined where it can. */
export async function findRoomProblem(rootDir: string, containers: number): Promise<string | undefined> {
  const path = join(rootDir, '.room.tmp')
  try {
    await writeFile(path, Buffer.alloc(basicBytes + bytesEach * containers))
    return undefined
  } catch (error) {
    return errorMessage(error)
  } finally {
    await tryRemove(path)
  }
}
