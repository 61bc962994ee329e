import { realpath } from 'node:fs/promises'
import { basename, dirname, join, normalize } from 'node:path'
import { errorCode } from '../../base/errors.ts'

/**
 * Where nothing may be made: what is there is the kernel's or the device manager's. A directory made in the place of a
 * device that is unplugged would keep it from coming back.
 */
const trees = ['/dev', '/sys', '/proc']
/** Shared memory, where programs make what they like. */
const sharedMemory = '/dev/shm'

/** The tree that a path which doesn't exist lies in, with links resolved as far as it exists; undefined outside of them. */
export async function findKernelTree(path: string): Promise<string | undefined> {
  const resolved = await resolveAsFar(normalize(path))
  if (isWithin(resolved, sharedMemory)) return undefined
  return trees.find((tree) => isWithin(resolved, tree))
}

async function resolveAsFar(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const code = errorCode(error)
    if ((code !== 'ENOENT' && code !== 'ENOTDIR') || path === '/') return path
    return join(await resolveAsFar(dirname(path)), basename(path))
  }
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(`${directory}/`)
}
