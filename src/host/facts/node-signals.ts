import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

/** The available amount and the capacity: bytes, inodes or processes. */
export interface Amount {
  readonly available: number
  readonly capacity: number
}

/**
 * The host's memory, in bytes: what the kernel itself says can be had without swapping (`MemAvailable`). The kubelet
 * counts all of the page cache in active use as unavailable, which evicts pods without a real shortage
 * (`pkg/kubelet/eviction`, kubernetes/kubernetes#43916). Undefined where the kernel doesn't say.
 */
export function readMemoryAmount(path = '/proc/meminfo'): Amount | undefined {
  const text = readFileSync(path, 'utf8')
  const read = (name: string): number | undefined => {
    const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'mu').exec(text)?.[1]
    return found === undefined ? undefined : Number(found) * 1024
  }
  const [available, capacity] = [read('MemAvailable'), read('MemTotal')]
  return available === undefined || capacity === undefined ? undefined : { available, capacity }
}

/** A path's file system: its bytes available without root, and its inodes where it counts them. */
export interface FileSystemAmounts {
  readonly bytes: Amount
  /** Undefined for file systems that allocate inodes dynamically. */
  readonly inodes: Amount | undefined
}

/** Throws the system's error where the path can't be looked at. */
export async function readFileSystem(path: string): Promise<FileSystemAmounts> {
  const { blocks, bavail, bsize, files, ffree } = await statfs(path)
  return {
    bytes: { available: bavail * bsize, capacity: blocks * bsize },
    inodes: files > 0 ? { available: ffree, capacity: files } : undefined,
  }
}

/**
 * Processes and threads that can still be started (`pkg/kubelet/stats/pidlimit/pidlimit_linux.go`, 1.36). Undefined
 * where the kernel doesn't say.
 */
export function readProcessAmount(procDir = '/proc'): Amount | undefined {
  const [pidMax, threadsMax, load] = ['sys/kernel/pid_max', 'sys/kernel/threads-max', 'loadavg'].map((file) =>
    readFileSync(`${procDir}/${file}`, 'utf8'),
  )
  const running = /^\S+ \S+ \S+ \d+\/(\d+) /u.exec(load ?? '')?.[1]
  const capacity = Math.min(Number(pidMax), Number(threadsMax))
  if (running === undefined || !Number.isFinite(capacity) || capacity <= 0) return undefined
  return { available: Math.max(0, capacity - Number(running)), capacity }
}
