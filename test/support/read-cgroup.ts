import { existsSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const base = '/sys/fs/cgroup'

function isUnified(): boolean {
  return existsSync(join(base, 'cgroup.controllers'))
}

function read(controller: string, path: string, file: string): string {
  return readFileSync(join(base, isUnified() ? '' : controller, path, file), 'utf8').trim()
}

/** What a cgroup allows, whichever version of cgroups the host has. Paths are below the mount point. */
export const readCgroup = {
  directory(path: string): string {
    return join(base, isUnified() ? '' : 'memory', path)
  },

  memoryLimitBytes(path: string): number {
    return Number(isUnified() ? read('', path, 'memory.max') : read('memory', path, 'memory.limit_in_bytes'))
  },

  cpuQuota(path: string): { readonly quotaUs: number; readonly periodUs: number } {
    if (isUnified()) {
      const [quotaUs = Number.NaN, periodUs = Number.NaN] = read('', path, 'cpu.max').split(' ').map(Number)
      return { quotaUs, periodUs }
    }
    return {
      quotaUs: Number(read('cpu', path, 'cpu.cfs_quota_us')),
      periodUs: Number(read('cpu', path, 'cpu.cfs_period_us')),
    }
  },

  pidsLimit(path: string): number {
    return Number(read('pids', path, 'pids.max'))
  },

  /** In shares (version 1), which version 2 has as a weight. */
  cpuShares(path: string): number {
    if (!isUnified()) return Number(read('cpu', path, 'cpu.shares'))
    const weight = Number(read('', path, 'cpu.weight'))
    return Math.round(2 + ((weight - 1) * 262_142) / 9999)
  },
}

/** Moves what runs in a cgroup to the root of the hierarchy, and removes it with those below, as an administrator may. */
export function removeCgroup(path: string): void {
  const directory = readCgroup.directory(path)
  const remove = (at: string): void => {
    for (const entry of readdirSync(at, { withFileTypes: true }))
      if (entry.isDirectory()) remove(join(at, entry.name))
    for (const pid of readFileSync(join(at, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean))
      writeFileSync(join(readCgroup.directory('/'), 'cgroup.procs'), pid)
    rmdirSync(at)
  }
  remove(directory)
}

/** The cgroup of a container of that pod, whichever driver made it. */
export function containerCgroup(podCgroup: string, containerId: string): string {
  return join(podCgroup, podCgroup.endsWith('.slice') ? `cri-containerd-${containerId}.scope` : containerId)
}

/**
 * The cgroup of a pod below the mount point, whichever driver made it (of cgroupfs where there is none yet).
 * `qos` is `burstable`, `besteffort`, or empty.
 */
export function podCgroup(root: string, qos: string, uid: string): string {
  const names = ['kubepods', ...(qos === '' ? [] : [qos]), `pod${uid}`]
  const plain = join(root, ...names)
  // A slice's name has the names of those above it, between dashes: those within become underscores.
  const parts = [root.slice(1), ...names].map((name) => name.replaceAll('-', '_'))
  const slices = parts.map((_, index) => `${parts.slice(0, index + 1).join('-')}.slice`)
  const ofSystemd = join('/', ...slices)
  return existsSync(readCgroup.directory(ofSystemd)) ? ofSystemd : plain
}
