import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { CgroupfsPodCgroups } from '../../../src/host/cgroups/cgroupfs.ts'
import type { CgroupSystem } from '../../../src/host/cgroups/layout.ts'
import type { PodCgroupResources } from '../../../src/translate/resources.ts'

/* A fake cgroup tree of plain directories: what the kernel would make by itself is not in it. */

const uid = 'aaaa-1111'
const shares = { kubepods: 2048, burstable: 512 }
const limited: PodCgroupResources = {
  cpuShares: 512,
  cpuQuotaUs: 50_000,
  cpuPeriodUs: 100_000,
  memoryLimitBytes: 1 << 20,
  pidsLimit: 100,
  hugepageLimits: [],
}
const unlimited: PodCgroupResources = {
  ...limited,
  cpuQuotaUs: undefined,
  memoryLimitBytes: undefined,
  pidsLimit: undefined,
}

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-cgroups-'))
})

afterEach(() => rmSync(directory, { recursive: true }))

function read(path: string): string | undefined {
  return existsSync(join(directory, path)) ? readFileSync(join(directory, path), 'utf8') : undefined
}

function version1(): CgroupSystem {
  const names = ['cpu', 'memory', 'pids', 'freezer', 'systemd']
  for (const name of names) mkdirSync(join(directory, name))
  return {
    version: 1,
    hierarchies: names.map((name) => ({ path: join(directory, name), controllers: [name] })),
  }
}

/** With these levels there already, and the controllers that each of them has. */
function version2(levels: Readonly<Record<string, string>> = {}): CgroupSystem {
  for (const [level, controllers] of Object.entries({ '': 'cpuset cpu io memory pids', ...levels })) {
    mkdirSync(join(directory, level), { recursive: true })
    writeFileSync(join(directory, level, 'cgroup.controllers'), `${controllers}\n`)
  }
  return { version: 2, hierarchies: [{ path: directory, controllers: [] }] }
}

function cgroupsOf(system: CgroupSystem, root = '/'): CgroupfsPodCgroups {
  return new CgroupfsPodCgroups({ system, root, clock: systemClock })
}

describe('on cgroup v1', () => {
  it('makes the tree where podd limits something, with each level’s shares', async () => {
    await cgroupsOf(version1(), '/own').ensureQosTree(shares)
    expect(read('cpu/own/kubepods/cpu.shares')).toBe('2048')
    expect(read('cpu/own/kubepods/burstable/cpu.shares')).toBe('512')
    expect(read('cpu/own/kubepods/besteffort/cpu.shares')).toBe('2')
    expect(existsSync(join(directory, 'memory/own/kubepods/besteffort'))).toBe(true)
    expect(existsSync(join(directory, 'freezer/own'))).toBe(false)
  })

  it('sets a pod’s limits, and lifts them when they go', async () => {
    const cgroups = cgroupsOf(version1())
    await cgroups.ensureQosTree(shares)
    await cgroups.ensurePod({ uid, qosClass: 'Burstable' }, limited)
    const pod = `kubepods/burstable/pod${uid}`
    const values = () => [
      read(`cpu/${pod}/cpu.shares`),
      read(`cpu/${pod}/cpu.cfs_period_us`),
      read(`cpu/${pod}/cpu.cfs_quota_us`),
      read(`memory/${pod}/memory.limit_in_bytes`),
      read(`pids/${pod}/pids.max`),
    ]
    expect(values()).toEqual(['512', '100000', '50000', '1048576', '100'])
    await cgroups.ensurePod({ uid, qosClass: 'Burstable' }, unlimited)
    expect(values()).toEqual(['512', '100000', '-1', '-1', 'max'])
  })

  it('writes no limit that a fresh pod hasn’t', async () => {
    const cgroups = cgroupsOf(version1())
    await cgroups.ensureQosTree(shares)
    await cgroups.ensurePod({ uid, qosClass: 'BestEffort' }, { ...unlimited, cpuShares: 2 })
    expect(read(`cpu/kubepods/besteffort/pod${uid}/cpu.shares`)).toBe('2')
    expect(read(`cpu/kubepods/besteffort/pod${uid}/cpu.cfs_quota_us`)).toBeUndefined()
    expect(read(`memory/kubepods/besteffort/pod${uid}/memory.limit_in_bytes`)).toBeUndefined()
  })

  it('passes over a controller that the host lacks', async () => {
    const system = version1()
    const cgroups = cgroupsOf({ ...system, hierarchies: system.hierarchies.slice(0, 1) })
    await cgroups.ensureQosTree(shares)
    await cgroups.ensurePod({ uid, qosClass: 'Guaranteed' }, limited)
    expect(read(`cpu/kubepods/pod${uid}/cpu.shares`)).toBe('512')
  })

  it('leaves a cgroup that was there before as it is', async () => {
    const system = version1()
    mkdirSync(join(directory, 'memory/own'))
    writeFileSync(join(directory, 'memory/own/memory.use_hierarchy'), '0\n')
    mkdirSync(join(directory, 'memory/own/kubepods'))
    await cgroupsOf(system, '/own').ensureQosTree(shares)
    // It was there before podd came: its setting is somebody else's.
    expect(read('memory/own/memory.use_hierarchy')).toBe('0\n')
  })
})

describe('on cgroup v2', () => {
  it('delegates the controllers from the root down to the pods', async () => {
    await cgroupsOf(version2({ own: 'cpu pids', 'own/kubepods': 'cpu' }), '/own').ensureQosTree(shares)
    expect(read('cgroup.subtree_control')).toBe('+cpuset +cpu +io +memory +pids')
    expect(read('own/cgroup.subtree_control')).toBe('+cpu +pids')
    expect(read('own/kubepods/cgroup.subtree_control')).toBe('+cpu')
    expect(read('own/kubepods/cpu.weight')).toBe('79')
  })

  it('passes over what is set for a controller that a level doesn’t have', async () => {
    const pod = `kubepods/burstable/pod${uid}`
    const system = version2({
      kubepods: 'memory pids',
      'kubepods/burstable': 'memory pids',
      [pod]: 'pids',
    })
    const cgroups = cgroupsOf(system)
    await cgroups.ensureQosTree(shares)
    expect(read('kubepods/cpu.weight')).toBeUndefined()
    await cgroups.ensurePod({ uid, qosClass: 'Burstable' }, limited)
    expect(read(`${pod}/cpu.max`)).toBeUndefined()
    expect(read(`${pod}/memory.max`)).toBeUndefined()
    expect(read(`${pod}/pids.max`)).toBe('100')
  })

  it('makes the levels where the kernel refuses a controller beside those it gave before', async () => {
    const system = version2()
    // It has a word in it, and takes none that podd writes: EINVAL.
    symlinkSync('/proc/self/oom_score_adj', join(directory, 'cgroup.subtree_control'))
    await cgroupsOf(system).ensureQosTree(shares)
    expect(existsSync(join(directory, 'kubepods/besteffort'))).toBe(true)
  })

  it('fails where the kernel gives none at all', async () => {
    const system = version2()
    mkdirSync(join(directory, 'cgroup.subtree_control'))
    await expect(cgroupsOf(system).ensureQosTree(shares)).rejects.toThrow('EISDIR')
  })

  it('sets weight and limits', async () => {
    const pod = `kubepods/pod${uid}`
    const cgroups = cgroupsOf(version2({ kubepods: 'cpu memory pids', [pod]: 'cpu memory pids' }))
    await cgroups.ensureQosTree(shares)
    await cgroups.ensurePod({ uid, qosClass: 'Guaranteed' }, limited)
    expect(read(`${pod}/cpu.weight`)).toBe('20')
    expect(read(`${pod}/cpu.max`)).toBe('50000 100000')
    expect(read(`${pod}/memory.max`)).toBe('1048576')
    expect(read(`${pod}/pids.max`)).toBe('100')
    await cgroups.ensurePod({ uid, qosClass: 'Guaranteed' }, unlimited)
    expect(read(`${pod}/cpu.max`)).toBe('max 100000')
    expect(read(`${pod}/memory.max`)).toBe('max')
  })
})

describe('any version', () => {
  it('names the parent as CRI wants it', () => {
    expect(cgroupsOf(version2(), '/own').parentOf({ uid, qosClass: 'Burstable' })).toBe(
      `/own/kubepods/burstable/pod${uid}`,
    )
  })

  it('makes the levels anew when somebody took them away', async () => {
    const cgroups = cgroupsOf(version1())
    await cgroups.ensureQosTree(shares)
    rmSync(join(directory, 'cpu/kubepods'), { recursive: true })
    await cgroups.ensurePod({ uid, qosClass: 'Burstable' }, limited)
    expect(read(`cpu/kubepods/burstable/pod${uid}/cpu.shares`)).toBe('512')
    expect(read('cpu/kubepods/burstable/cpu.shares')).toBe('512')
  })

  it('tells what is missing where the levels were never made', async () => {
    await expect(cgroupsOf(version1()).ensurePod({ uid, qosClass: 'Burstable' }, limited)).rejects.toThrow(
      'cannot make cgroup',
    )
  })

  it('finds and removes a pod in every hierarchy, whatever its class', async () => {
    const cgroups = cgroupsOf(version1())
    mkdirSync(join(directory, `memory/kubepods/burstable/pod${uid}/container`), { recursive: true })
    mkdirSync(join(directory, `freezer/kubepods/pod${uid}`), { recursive: true })
    mkdirSync(join(directory, `systemd/kubepods/besteffort/podother`), { recursive: true })
    expect(cgroups.listPods().map((pod) => pod.uid)).toEqual([uid, 'other'])
    expect(await cgroups.removePod(uid)).toEqual([])
    expect(cgroups.listPods()).toEqual([{ uid: 'other', qosClass: 'BestEffort' }])
    expect(await cgroups.removePod(uid)).toEqual([])
  })

  it('removes the levels when they are empty, and says what is left', async () => {
    const cgroups = cgroupsOf(version1(), '/own')
    mkdirSync(join(directory, 'memory/own/kubepods/burstable'), { recursive: true })
    mkdirSync(join(directory, 'cpu/own/kubepods/besteffort/podx'), { recursive: true })
    expect(await cgroups.removeQosTree()).toEqual([
      join(directory, 'cpu/own/kubepods/besteffort'),
      join(directory, 'cpu/own/kubepods'),
    ])
    expect(existsSync(join(directory, 'memory/own'))).toBe(false)
    expect(existsSync(join(directory, 'cpu/own'))).toBe(true)
  })

  it.each(['', '..', 'a/b'])('refuses %j for a UID', async (bad) => {
    await expect(async () => cgroupsOf(version1()).removePod(bad)).rejects.toThrow('not a pod')
  })
})

describe('a pod’s cgroup that somebody has removed', () => {
  const pod = { uid, qosClass: 'Burstable' } as const

  function makeAll(at: string, { hierarchies }: CgroupSystem): void {
    for (const { path } of hierarchies) {
      mkdirSync(join(path, at), { recursive: true })
      writeFileSync(join(path, 'cgroup.procs'), '')
    }
  }

  it.each(['cpu', 'memory', 'pids'])('is missed in the hierarchy of %s', (controller) => {
    const system = version1()
    const at = `kubepods/burstable/pod${uid}`
    makeAll(at, system)
    const cgroups = cgroupsOf(system)
    expect(cgroups.isRemoved(pod)).toBe(false)
    rmSync(join(directory, controller, at), { recursive: true })
    expect(cgroups.isRemoved(pod)).toBe(true)
    // The hierarchy is not mounted now: that says nothing of the pod.
    rmSync(join(directory, controller, 'cgroup.procs'))
    expect(cgroups.isRemoved(pod)).toBe(false)
  })

  it('is not missed in a hierarchy that limits nothing', () => {
    const system = version1()
    const at = `kubepods/burstable/pod${uid}`
    makeAll(at, system)
    for (const name of ['freezer', 'systemd']) rmSync(join(directory, name, at), { recursive: true })
    expect(cgroupsOf(system).isRemoved(pod)).toBe(false)
  })

  it.each([
    ['under its own name', `kubepods/burstable/pod${uid}`, false],
    ['in another class', `kubepods/besteffort/pod${uid}`, false],
    [
      'as the other driver made it',
      `kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice`,
      false,
    ],
    ['of another pod', 'kubepods/burstable/podbbbb', true],
  ])('is looked for in version 2: %s', (_what, at, isRemoved) => {
    const system = version2()
    makeAll(at, system)
    expect(cgroupsOf(system).isRemoved(pod)).toBe(isRemoved)
  })
})
