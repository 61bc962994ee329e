import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { removeEmbeddedContainerd } from '../../src/runtime/remove-embedded.ts'

/** What tells one podd's things on the host from all others. */
export interface PoddPlaces {
  readonly directory: string
  readonly rootDir: string
  readonly runDir: string
  /** Empty where it isn't known. */
  readonly cgroupRoot: string
}

/** What a podd that was taken down has left on the host, outside of its own directory. */
export function findLeftovers(places: PoddPlaces): readonly string[] {
  const { networkName, bridgeName } = containerdPlaces(places.rootDir, places.runDir)
  return [
    ...processesOf(places).map(
      (pid) => `process ${pid} ${readOr(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')}`,
    ),
    ...mountsBelow(places.directory).map((path) => `mount ${path}`),
    ...(existsSync(`/sys/class/net/${bridgeName}`) ? [`bridge ${bridgeName}`] : []),
    ...cgroupsOf(places).map((path) => `cgroup ${path}`),
    ...['iptables-save', 'ip6tables-save'].flatMap((program) => rulesOf(program, [networkName, bridgeName])),
    ...cniResultsOf(networkName).map((path) => `CNI result ${path}`),
  ]
}

/** By force: for a podd whose test failed, or was killed. */
export async function removeLeftovers(places: PoddPlaces): Promise<void> {
  for (const pid of processesOf(places)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended in the meantime.
    }
  }
  const { rootDir, runDir } = places
  await removeEmbeddedContainerd({ rootDir, runDir, clock: systemClock }).catch(() => {})
  for (const path of mountsBelow(places.directory)) run('umount', ['-l', path])
  for (const path of cgroupsOf(places))
    run('find', [path, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';'])
}

/** The daemon, containerd and its shims by their arguments, containers by their cgroup. */
export function processesOf({ directory, cgroupRoot }: PoddPlaces): number[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
  return pids.filter((pid) => {
    if (pid === process.pid) return false
    if (readOr(`/proc/${pid}/cmdline`).includes(`${directory}/`)) return true
    return cgroupRoot !== '' && readOr(`/proc/${pid}/cgroup`).includes(`${cgroupRoot}/`)
  })
}

/** The innermost first. */
function mountsBelow(directory: string): string[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${directory}/`))
    .reverse()
}

function cgroupsOf({ cgroupRoot }: PoddPlaces): string[] {
  if (cgroupRoot === '') return []
  const base = '/sys/fs/cgroup'
  return [base, ...readdirSync(base).map((name) => join(base, name))]
    .map((root) => join(root, cgroupRoot))
    .filter((path) => existsSync(path))
}

function rulesOf(program: string, names: readonly string[]): string[] {
  const saved = run(program, [])
  return saved.split('\n').filter((line) => names.some((name) => line.includes(name)))
}

function cniResultsOf(networkName: string): string[] {
  const directory = '/var/lib/cni/results'
  if (!existsSync(directory)) return []
  return readdirSync(directory).filter((name) => name.startsWith(`${networkName}-`))
}

function run(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    // What isn't there need not be removed, and rules that can't be listed can't be told.
    return ''
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
