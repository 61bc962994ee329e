import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** The memory that this process holds, in bytes, after a garbage collection. */
export function heldMemory(): NodeJS.MemoryUsage {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect !== 'function') throw new TypeError('no garbage collection')
  collect()
  return process.memoryUsage()
}
