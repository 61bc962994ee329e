import { readFileSync } from 'node:fs'
import { readFile, statfs } from 'node:fs/promises'
import type { HostStats } from '../../pod/state/usage.ts'

/** The kernel's unit of CPU time: USER_HZ, which is 100 on every architecture. */
const ticksPerSecond = 100

/**
 * The host's use of CPU, memory and processes. The working set is what the kubelet counts: used memory without the
 * inactive page cache (`pkg/kubelet/cadvisor`, 1.36). Throws the system's error where /proc can't be read.
 */
export async function readHostStats(procDir = '/proc'): Promise<Omit<HostStats, 'rootFs' | 'imageFs'>> {
  const [stat, meminfo] = await Promise.all([
    readFile(`${procDir}/stat`, 'utf8'),
    readFile(`${procDir}/meminfo`, 'utf8'),
  ])
  const processes = readProcessAmount(procDir)
  const read = parseMemory(meminfo)
  const memory = (name: string): number => read(name) ?? 0
  const usageBytes = memory('MemTotal') - memory('MemFree')
  return {
    ...parseStat(stat),
    memoryCapacityBytes: memory('MemTotal'),
    memoryAvailableBytes: memory('MemAvailable'),
    memoryUsageBytes: usageBytes,
    memoryWorkingSetBytes: Math.max(0, usageBytes - memory('Inactive(file)')),
    swapUsedBytes: memory('SwapTotal') - memory('SwapFree'),
    processes: processes === undefined ? undefined : processes.capacity - processes.available,
    maxProcesses: processes?.capacity,
  }
}

/** Reads /proc/stat: the time that CPUs were busy with anything, and when the host booted. */
export function parseStat(text: string): Pick<HostStats, 'cpuNanoSeconds' | 'cpus' | 'bootedAtMs'> {
  const all = text.split('\n').find((line) => line.startsWith('cpu ')) ?? ''
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = all
    .split(' ')
    .filter((word) => word !== '')
    .map(Number)
  const busyTicks = user + nice + system + irq + softIrq + steal
  return {
    cpuNanoSeconds: (busyTicks / ticksPerSecond) * 1e9,
    cpus: [...text.matchAll(/^cpu\d+ /gmu)].length,
    bootedAtMs: Number(/^btime (?<seconds>\d+)$/mu.exec(text)?.groups?.['seconds'] ?? 0) * 1000,
  }
}

/** Of /proc/meminfo, in bytes; undefined for what it doesn't have. */
export function parseMemory(text: string): (name: string) => number | undefined {
  const lines = [...text.matchAll(/^(\S+):\s+(\d+) kB$/gmu)]
  const bytes = new Map(lines.map(([, name, kibibytes]) => [name, Number(kibibytes) * 1024]))
  return (name) => bytes.get(name)
}

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
  const read = parseMemory(readFileSync(path, 'utf8'))
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
