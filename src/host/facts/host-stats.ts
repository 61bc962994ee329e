import { readFile } from 'node:fs/promises'
import type { HostStats } from '../../pod/state/usage.ts'
import { readProcessAmount } from './node-signals.ts'

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
  const memory = parseMemory(meminfo)
  const usageBytes = memory('MemTotal') - memory('MemFree')
  return {
    ...parseStat(stat),
    memoryCapacityBytes: memory('MemTotal'),
    memoryAvailableBytes: memory('MemAvailable'),
    memoryUsageBytes: usageBytes,
    memoryWorkingSetBytes: Math.max(0, usageBytes - memory('Inactive(file)')),
    swapUsedBytes: memory('SwapTotal') - memory('SwapFree'),
    processes: processes === undefined ? undefined : processes.capacity - processes.available,
    mostProcesses: processes?.capacity,
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

/** Of /proc/meminfo, in bytes; 0 for what it doesn't have. */
function parseMemory(text: string): (name: string) => number {
  const lines = new Map(
    text.split('\n').map((line) => {
      const [name = '', rest = ''] = line.split(':')
      return [name, Number.parseInt(rest.trim(), 10) * 1024]
    }),
  )
  return (name) => lines.get(name) ?? 0
}
