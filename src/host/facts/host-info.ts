/* This machine, as podd finds it at its start: what a pod may have of it, and what the Node says of it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cpus, hostname } from 'node:os'
import { parseEnv } from 'node:util'
import { readTextIfThere } from '../../base/read-bounded.ts'
import { canonicalQuantity } from '../../pod/values/quantity.ts'
import { hugePageSizeName } from '../../translate/resources.ts'
import { detectCgroups } from '../cgroups/layout.ts'
import type { CgroupSystem } from '../cgroups/layout.ts'
import { parseMountInfo } from '../mounts.ts'
import { parseMemory } from './host-stats.ts'

/** The facts about the machine, which don't change while podd runs. */
export interface HostInfo {
  /** As Kubernetes names nodes: see nodeNameOf. */
  readonly hostname: string
  readonly cpus: number
  readonly memoryBytes: number
  readonly swapBytes: number
  /** Of a page of memory. */
  readonly pageBytes: number
  /** Changes with each boot. */
  readonly bootId: string
  readonly kernel: string
  /** systemd is PID 1. */
  readonly systemd: boolean
  /** Undefined: no cgroups are mounted. */
  readonly cgroups: CgroupSystem | undefined
  /** Whether cgroups can account for swap. */
  readonly swapController: boolean
  /** The bytes of reserved huge pages, by page size in Kubernetes' notation: `2Mi`. */
  readonly hugePagesBytes: ReadonlyMap<string, number>
  /** The huge page sizes that cgroups can limit, in cgroup notation: `2MB`, `1GB`. */
  readonly hugePageSizes: readonly string[]
  /** The lowest oom_score_adj that podd's children can have. */
  readonly minOomScoreAdj: number
  readonly selinux: boolean
  readonly appArmor: boolean
}

/** @param root what stands for `/`; for tests */
export function readHostInfo(root = ''): HostInfo {
  const memory = parseMemory(readText(`${root}/proc/meminfo`))
  // Cloned, since a substring keeps the whole text in memory: 140 kB on a host with hundreds of mounts.
  const cgroups = structuredClone(detectCgroups(parseMountInfo(readText(`${root}/proc/self/mountinfo`))))
  return {
    hostname: readHostname(),
    cpus: cpus().length,
    memoryBytes: memory('MemTotal') ?? 0,
    swapBytes: memory('SwapTotal') ?? 0,
    pageBytes: readPageBytes(root),
    bootId: readText(`${root}/proc/sys/kernel/random/boot_id`).trim(),
    kernel: readText(`${root}/proc/sys/kernel/osrelease`).trim(),
    systemd: existsSync(`${root}/run/systemd/system`),
    cgroups,
    swapController: cgroups !== undefined && hasSwapController(cgroups, root),
    hugePagesBytes: hugePagesBytes(root),
    hugePageSizes: cgroups !== undefined && hasHugePageController(cgroups, root) ? hugePageSizes(root) : [],
    minOomScoreAdj: readMinOomScoreAdj(root),
    selinux: existsSync(`${root}/sys/fs/selinux/enforce`),
    appArmor: readText(`${root}/sys/module/apparmor/parameters/enabled`).trim() === 'Y',
  }
}

/** The host's name as Kubernetes names nodes. */
export function readHostname(): string {
  return nodeNameOf(hostname())
}

/**
 * The name of a node whose host has this name: in lower case, as the kubelet's (`pkg/util/node`, GetHostname, 1.36), with
 * dashes for what a DNS name can't have (`My_Pi` is `my-pi`). The kubelet keeps such a sign, and no API server takes the
 * node or a dump of its pods.
 */
export function nodeNameOf(hostname: string): string {
  const labels = hostname
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/gu, '-')
    .split('.')
    .map((label) => label.replaceAll(/^-+|-+$/gu, ''))
  let name = labels
    .filter((label) => label !== '')
    .join('.')
    .slice(0, maxNameLength)
  while (name.endsWith('-') || name.endsWith('.')) name = name.slice(0, -1)
  return name === '' ? 'localhost' : name
}

/** Of a DNS name. */
const maxNameLength = 253

/** AT_PAGESZ of the auxiliary vector, pairs of numbers as wide as a pointer (getauxval(3)); 4096 where it is absent. */
function readPageBytes(root: string): number {
  const pageSizeKey = 6n
  try {
    const vector = readFileSync(`${root}/proc/self/auxv`)
    for (let at = 0; at + 16 <= vector.length; at += 16) {
      if (vector.readBigUInt64LE(at) === pageSizeKey) return Number(vector.readBigUInt64LE(at + 8))
    }
  } catch {
    // A /proc without it.
  }
  return 4096
}

/** Without CAP_SYS_RESOURCE a process can't make itself or its children less likely to be killed than it is. */
function readMinOomScoreAdj(root: string): number {
  if (hasCapability('CAP_SYS_RESOURCE', `${root}/proc/self/status`)) return -1000
  return Number(readText(`${root}/proc/self/oom_score_adj`))
}

/** The root cgroup of version 2 has no limits of its own: its children show them. */
function hasSwapController({ version, hierarchies }: CgroupSystem, root: string): boolean {
  const memory = hierarchies.find(({ controllers }) => version === 2 || controllers.includes('memory'))
  if (memory === undefined) return false
  const directory = `${root}${memory.path}`
  if (version === 1) return existsSync(`${directory}/memory.memsw.limit_in_bytes`)
  return listDirectory(directory).some((name) => existsSync(`${directory}/${name}/memory.swap.max`))
}

function hasHugePageController({ version, hierarchies }: CgroupSystem, root: string): boolean {
  if (version === 1) return hierarchies.some(({ controllers }) => controllers.includes('hugetlb'))
  return hierarchies.some(({ path }) =>
    readText(`${root}${path}/cgroup.controllers`).trim().split(' ').includes('hugetlb'),
  )
}

/** The kernel's directories are named `hugepages-2048kB`. */
function hugePageSizes(root: string): readonly string[] {
  return listDirectory(`${root}/sys/kernel/mm/hugepages`).flatMap((name) => {
    const kibibytes = /^hugepages-(\d+)kB$/.exec(name)?.[1]
    return kibibytes === undefined ? [] : [hugePageSizeName(`${kibibytes}Ki`)]
  })
}

function hugePagesBytes(root: string): ReadonlyMap<string, number> {
  const directory = `${root}/sys/kernel/mm/hugepages`
  return new Map(
    listDirectory(directory).flatMap((name): readonly [string, number][] => {
      const kibibytes = /^hugepages-(\d+)kB$/.exec(name)?.[1]
      const size = kibibytes === undefined ? undefined : canonicalQuantity(`${kibibytes}Ki`)
      if (size === undefined) return []
      const count = Number(readText(`${directory}/${name}/nr_hugepages`).trim())
      return [[size, count * Number(kibibytes) * 1024]]
    }),
  )
}

/** The machine's part of a Node's `nodeInfo`; empty where unknown. */
export interface MachineInfo {
  readonly machineId: string
  readonly systemUuid: string
  /** `Debian GNU/Linux 12 (bookworm)` */
  readonly osImage: string
}

/** @param root what stands for `/`; for tests */
export function readMachineInfo(root = ''): MachineInfo {
  const machineId = readText(`${root}/etc/machine-id`).trim()
  const release = parseEnv(readText(`${root}/etc/os-release`))
  return {
    machineId,
    systemUuid: readText(`${root}/sys/class/dmi/id/product_uuid`).trim() || machineId,
    osImage: release['PRETTY_NAME'] ?? '',
  }
}

/** Bit numbers from linux/capability.h, of those that podd asks about. */
const capabilityBits = { CAP_SYS_ADMIN: 21, CAP_SYS_RESOURCE: 24 } as const

export type Capability = keyof typeof capabilityBits

/** Whether a process (podd itself where none is named) has a capability in effect. */
export function hasCapability(capability: Capability, statusPath = '/proc/self/status'): boolean {
  return parseEffectiveCapabilities(readFileSync(statusPath, 'utf8'), capability)
}

/** Reads CapEff of a /proc/PID/status text. */
export function parseEffectiveCapabilities(status: string, capability: Capability): boolean {
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1]
  if (mask === undefined) return false
  return ((BigInt(`0x${mask}`) >> BigInt(capabilityBits[capability])) & 1n) === 1n
}

/** Empty where the kernel or the host doesn't have it, or it was removed meanwhile. */
function readText(path: string): string {
  return readTextIfThere(path) ?? ''
}

function listDirectory(path: string): readonly string[] {
  try {
    return readdirSync(path)
  } catch {
    // A kernel without it.
    return []
  }
}
