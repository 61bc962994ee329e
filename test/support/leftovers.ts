/*
 * What a rig has on the host outside of its directory: listed where nothing may be left, counted where it may not grow, and
 * removed by force. A whole run of the tests is looked through by their marks, without Node: test/lib/leftovers.sh.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../src/base/clock.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { removeEmbeddedContainerd } from '../../src/runtime/remove-embedded.ts'
import { slowness } from './slowness.ts'

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
    ...processesOf(places).map((pid) => `process ${pid} ${commandLine(pid).replaceAll('\0', ' ')}`),
    ...mountsBelow(places.directory).map((path) => `mount ${path}`),
    ...(existsSync(`/sys/class/net/${bridgeName}`) ? [`bridge ${bridgeName}`] : []),
    ...cgroupsAt(places.cgroupRoot).map((path) => `cgroup ${path}`),
    ...firewallRules([networkName, bridgeName]),
    ...entries('/var/lib/cni/results')
      .filter((name) => name.startsWith(`${networkName}-`))
      .map((path) => `CNI result ${path}`),
  ]
}

/** By force: for a podd whose test failed, or was killed. */
export async function removeLeftovers(places: PoddPlaces): Promise<void> {
  for (const pid of processesOf(places)) kill(pid)
  const { rootDir, runDir } = places
  await removeEmbeddedContainerd({ rootDir, runDir, clock: systemClock }).catch(() => {})
  unmountBelow(places.directory)
  removeCgroups(places.cgroupRoot)
}

/** By force: a containerd that a test started itself, with its shims, pods, mounts, bridge and cgroup. */
export function removeContainerd(directory: string, bridge: string, cgroup: string): void {
  killAll(directory)
  unmountBelow(directory)
  if (bridge !== '') run('/sbin/ip', ['link', 'delete', bridge])
  removeCgroups(cgroup)
  // Of pods that still ran: the network namespaces lie in the state directory of their containerd.
  for (const path of cniResultsBelow(directory)) rmSync(path, { force: true })
}

/** The daemon, containerd and its shims by their arguments, containers by their cgroup. */
export function processesOf({ directory, cgroupRoot }: PoddPlaces): number[] {
  return listPids().filter((pid) => {
    if (pid === process.pid) return false
    if (commandLine(pid).includes(`${directory}/`)) return true
    return cgroupRoot !== '' && readOr(`/proc/${pid}/cgroup`).includes(`${cgroupRoot}/`)
  })
}

/** A podd whose things are counted; its containerd has to run. */
export interface CountedPodd extends PoddPlaces {
  readonly logsDir: string
  readonly linksDir: string
  ctr(...args: readonly string[]): string
}

/** How much a podd has on the host of each kind of thing that pods bring. */
export interface HostCounts {
  readonly counts: Readonly<Record<string, number>>
  readonly files: readonly string[]
}

/** Counts without asking podd. */
export function countHost(podd: CountedPodd): HostCounts {
  collectGarbage(podd)
  const places = containerdPlaces(podd.rootDir, podd.runDir)
  const { bridgeName, networkName, stateDir } = places
  const files = [podd.rootDir, podd.runDir, podd.logsDir, podd.linksDir].flatMap((path) => filesBelow(path))
  const counts = {
    processes: processesOf(podd).length,
    files: files.length,
    'pod directories': entries(join(podd.rootDir, 'pods')).length,
    records: entries(join(podd.rootDir, 'records')).length,
    'log directories': entries(podd.logsDir).length,
    'log links': entries(podd.linksDir).length,
    containers: lines(podd.ctr('containers', 'list', '--quiet')).length,
    tasks: lines(podd.ctr('tasks', 'list', '--quiet')).length,
    snapshots: lines(podd.ctr('snapshots', 'list')).filter((line) => /^[0-9a-f]{64}\s/u.test(line)).length,
    leases: lines(podd.ctr('leases', 'list', '--quiet')).filter((id) => /^[0-9a-f]{64}$/u.test(id.trim()))
      .length,
    cgroups: cgroupsBelow(podd.cgroupRoot).length,
    namespaces: entries(join(stateDir, 'io.containerd.grpc.v1.cri/netns')).length,
    mounts: mountsBelow(podd.directory).length,
    veths: entries(join('/sys/class/net', bridgeName, 'brif')).length,
    'firewall rules': firewallRules([networkName, bridgeName]).length,
    addresses: entries(join(places.cniDataDir, networkName)).filter((name) => /^[\d.]+$/u.test(name)).length,
    'CNI results': cniResultsBelow(join(podd.runDir, 'containerd')).length,
  }
  return { counts, files }
}

/** Waits until the counts are what they were, prints both, and gives what is more than before. */
export async function awaitCounts(
  podd: CountedPodd,
  before: HostCounts,
  patienceMs = 60_000,
): Promise<readonly string[]> {
  const untilMs = Date.now() + patienceMs * slowness
  let now = countHost(podd)
  // A look costs more than what is waited for.
  for (let waitMs = 500; differences(before, now).length > 0 && Date.now() < untilMs; waitMs += 500) {
    await sleep(Math.min(waitMs, 3000))
    now = countHost(podd)
  }
  console.log(`before: ${format(before)}\nafter:  ${format(now)}`)
  return differences(before, now)
}

/**
 * Has containerd remove the directories of snapshots that are gone. It does so by itself some time after the next removal,
 * and only then: one that is killed in the middle leaves a directory until another snapshot is removed. A removal that falls
 * into the end of a collection waits for another one (`plugins/gc/scheduler.go`, containerd 2.1).
 */
function collectGarbage(podd: CountedPodd): void {
  const lease = 'podd-test-collects'
  podd.ctr('snapshots', 'prepare', lease)
  podd.ctr('snapshots', 'remove', lease)
  podd.ctr('leases', 'create', '--id', lease)
  podd.ctr('leases', 'delete', '--sync', lease)
}

/** What is more than before; of files, which ones. */
export function differences(before: HostCounts, now: HostCounts): readonly string[] {
  const known = new Set(before.files)
  return Object.entries(now.counts)
    .filter(([kind, count]) => count > (before.counts[kind] ?? 0))
    .map(([kind, count]) => {
      const added = kind === 'files' ? now.files.filter((path) => !known.has(path)) : []
      return [`${kind} ${before.counts[kind]} -> ${count}`, ...added].join('\n  ')
    })
}

function format({ counts }: HostCounts): string {
  return Object.entries(counts)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ')
}

/** The cached results of the sandboxes whose network namespaces lie below the directory, of their loopback network too. */
function cniResultsBelow(directory: string): readonly string[] {
  const results = '/var/lib/cni/results'
  if (!existsSync(results)) return []
  return lines(run('grep', ['-rlF', `${directory}/`, results]))
}

/** Written when podd gets to it, whatever pods come and go. */
const ownFiles = ['events.json', 'image-uses.json', 'cgroups.json', 'tmpmounts']

function filesBelow(directory: string): readonly string[] {
  if (!existsSync(directory)) return []
  // What containers see is below mounts.
  const names = lines(run('find', [directory, '-xdev', '!', '-path', '*/rootfs/*']))
  return names.filter((path) => !ownFiles.some((name) => path.includes(name)))
}

/** The cgroups of a root, in all hierarchies. */
export function cgroupsBelow(root: string): readonly string[] {
  return cgroupsAt(root).flatMap((path) => lines(run('find', [path, '-type', 'd'])))
}

/** The cgroup of this path in each hierarchy that has it. */
function cgroupsAt(path: string): readonly string[] {
  if (path === '') return []
  const base = '/sys/fs/cgroup'
  return [base, ...entries(base).map((name) => join(base, name))]
    .map((hierarchy) => join(hierarchy, path))
    .filter((cgroup) => existsSync(cgroup))
}

/** With all below them; the processes in them are dead by now. Never the root of all. */
function removeCgroups(path: string): void {
  if (!/^\/[\w-]/u.test(path)) return
  for (const cgroup of cgroupsAt(path))
    run('find', [cgroup, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';'])
}

/** The innermost first. */
function mountsBelow(directory: string): readonly string[] {
  return lines(readFileSync('/proc/self/mounts', 'utf8'))
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${directory}/`))
    .toReversed()
}

function unmountBelow(directory: string): void {
  for (const path of mountsBelow(directory)) run('umount', ['-l', path])
}

/** The rules, IPv4 and IPv6, that speak of one of these names. */
function firewallRules(names: readonly string[]): readonly string[] {
  return ['iptables-save', 'ip6tables-save']
    .flatMap((program) => lines(run(program, [])))
    .filter((line) => names.some((name) => line.includes(name)))
}

/** Kills what has the directory in its arguments, as containerd and its shims, and everything below that. */
function killAll(directory: string): void {
  for (let round = 0; round < 50; round += 1) {
    const pids = processTree((pid) => commandLine(pid).includes(`${directory}/`))
    if (pids.length === 0) return
    for (const pid of pids) kill(pid)
    execFileSync('sleep', ['0.02'])
  }
}

function processTree(isRoot: (pid: number) => boolean): readonly number[] {
  const pids = listPids()
  const found = new Set(pids.filter((pid) => pid !== process.pid && isRoot(pid)))
  for (let before = -1; before !== found.size;) {
    before = found.size
    for (const pid of pids) if (found.has(parentOf(pid))) found.add(pid)
  }
  return [...found]
}

function listPids(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger)
}

function commandLine(pid: number): string {
  return readOr(`/proc/${pid}/cmdline`)
}

/** 0 for a process that has ended. */
function parentOf(pid: number): number {
  const stat = readOr(`/proc/${pid}/stat`)
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? 0)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended in the meantime.
  }
}

/** What the program prints; as far as it got, where it failed. */
function run(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 64 * 1024 * 1024,
    })
  } catch (error) {
    // What isn't there need not be removed, rules that can't be listed can't be told, what vanishes while it is counted
    // makes `find` fail, and no match makes `grep` fail.
    return error instanceof Error && 'stdout' in error && typeof error.stdout === 'string' ? error.stdout : ''
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It is gone.
    return ''
  }
}

function entries(directory: string): readonly string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}

function lines(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.trim() !== '')
}
