import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import type { Clock } from '../base/clock.ts'
import { pollUntil } from '../base/clock.ts'
import { errorCode } from '../base/errors.ts'
import { readTextIfThere } from '../base/read-bounded.ts'

/** A process as /proc shows it. */
export interface HostProcess {
  readonly pid: number
  readonly parentPid: number
  /** Clock ticks from boot to its start: with the pid, it names one process for as long as the machine is up. */
  readonly startTicks: number
  /** A zombie: ended but not yet reaped. */
  readonly zombie: boolean
  /** At most 64 KiB of the command line. */
  readonly argv: readonly string[]
}

/** A process may have a command line of megabytes, and a host thousands of processes. */
const maxArgvBytes = 64 * 1024

/** All processes of the host whose command line could be read. A kernel thread has an empty `argv`. */
export function listProcesses(procDirectory = '/proc'): readonly HostProcess[] {
  return readdirSync(procDirectory).flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    return readProcess(Number(name), procDirectory) ?? []
  })
}

/** One process, or undefined when there is none of that pid. */
export function readProcess(pid: number, procDirectory = '/proc'): HostProcess | undefined {
  const fields = readStat(pid, procDirectory)
  if (fields === undefined) return undefined
  try {
    const argv = readStart(`${procDirectory}/${pid}/cmdline`).split('\0').slice(0, -1)
    return {
      pid,
      parentPid: Number(fields[1]),
      startTicks: Number(fields[19]),
      zombie: fields[0] === 'Z' || fields[0] === 'X',
      argv,
    }
  } catch {
    // It has ended.
    return undefined
  }
}

/** Shared, as the reads are synchronous: a buffer for each of hundreds of processes is memory that V8 releases late. */
let argvBytes: Buffer | undefined

function readStart(path: string): string {
  const file = openSync(path, 'r')
  try {
    const bytes = (argvBytes ??= Buffer.allocUnsafeSlow(maxArgvBytes))
    let length = 0
    for (;;) {
      const read = readSync(file, bytes, length, bytes.length - length, null)
      length += read
      if (read === 0 || length === bytes.length) return bytes.toString('utf8', 0, length)
    }
  } finally {
    closeSync(file)
  }
}

/** Every process that descends from one of `roots`, the roots left out. */
export function selectDescendants(
  processes: readonly HostProcess[],
  roots: readonly number[],
): readonly HostProcess[] {
  const byParent = Map.groupBy(processes, (process) => process.parentPid)
  const found = new Map<number, HostProcess>()
  const queue = [...roots]
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    for (const child of byParent.get(pid) ?? []) {
      if (found.has(child.pid) || roots.includes(child.pid)) continue
      found.set(child.pid, child)
      queue.push(child.pid)
    }
  }
  return [...found.values()]
}

/** Whether exactly this process still runs: the same pid, started at the same moment, no zombie. */
export function isAlive(process: HostProcess): boolean {
  const now = readProcess(process.pid)
  return now !== undefined && now.startTicks === process.startTicks && !now.zombie
}

/** Sends a signal to exactly this process; does nothing where it has ended. */
export function signalProcess(target: HostProcess, signal: NodeJS.Signals): void {
  if (!isAlive(target)) return
  try {
    process.kill(target.pid, signal)
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

/** Waits until the process has ended; false when it still runs after `timeoutMs`. */
export function waitForExit(target: HostProcess, timeoutMs: number, clock: Clock): Promise<boolean> {
  return pollUntil(clock, () => !isAlive(target), { periodMs: 20, timeoutMs })
}

/**
 * The age of a process in milliseconds; 0 where unknown: it counts as new, and gets the whole time that one may take to
 * start.
 */
export function processAgeMs({ startTicks }: HostProcess, procDirectory = '/proc'): number {
  const [upSeconds] = readTextIfThere(`${procDirectory}/uptime`)?.split(' ') ?? []
  return upSeconds === undefined ? 0 : Math.max(0, Number(upSeconds) * 1000 - startTicks * msPerTick)
}

/** USER_HZ, which is 100 on every architecture that Node runs on. */
const msPerTick = 10

/** The CPU time of a process, in clock ticks (`proc_pid_stat(5)`); undefined where it is gone. */
export function readProcessorTicks(pid: number, procDirectory = '/proc'): number | undefined {
  const fields = readStat(pid, procDirectory)
  return fields && Number(fields[11]) + Number(fields[12])
}

/**
 * For how many milliseconds the threads of a process waited for a processor although they could run
 * (Documentation/scheduler/sched-stats.rst of the kernel); undefined where it is gone, or the kernel doesn't count that.
 */
export function readProcessorWaitMs(pid: number, procDirectory = '/proc'): number | undefined {
  let waitedNs: number | undefined
  for (const thread of listNames(`${procDirectory}/${pid}/task`)) {
    const waited = readTextIfThere(`${procDirectory}/${pid}/task/${thread}/schedstat`)?.split(' ')[1]
    if (waited !== undefined) waitedNs = (waitedNs ?? 0) + Number(waited)
  }
  return waitedNs === undefined ? undefined : waitedNs / 1e6
}

function listNames(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch {
    // The process has ended.
    return []
  }
}

/** Of /proc/PID/stat from the state on: the name in parentheses before it may hold spaces and parentheses. */
function readStat(pid: number, procDirectory: string): readonly string[] | undefined {
  const stat = readTextIfThere(`${procDirectory}/${pid}/stat`)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** The bytes that a process has read from disks (`proc_pid_io(5)`); undefined where that can't be read. */
export function readDiskBytes(pid: number, procDirectory = '/proc'): number | undefined {
  const text = readTextIfThere(`${procDirectory}/${pid}/io`) ?? ''
  const bytes = /^read_bytes: (\d+)$/mu.exec(text)?.[1]
  return bytes === undefined ? undefined : Number(bytes)
}

/** A process's umask (proc_pid_status(5)); undefined where it is gone, or the kernel is older than 4.7. */
export function readUmask(pid: number, procDirectory = '/proc'): number | undefined {
  const status = readTextIfThere(`${procDirectory}/${pid}/status`) ?? ''
  const digits = /^Umask:\s*([0-7]+)$/m.exec(status)?.[1]
  return digits === undefined ? undefined : Number.parseInt(digits, 8)
}
