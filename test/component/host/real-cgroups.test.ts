import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { CgroupfsPodCgroups } from '../../../src/host/cgroups/cgroupfs.ts'
import { detectCgroups } from '../../../src/host/cgroups/layout.ts'
import { readMounts } from '../../../src/host/mounts.ts'
import { writeTestMarks } from '../../support/test-marks.ts'

const system = detectCgroups(readMounts())
// Needs root, and a tree that nobody else rules: under systemd's version 2 only its own driver may write.
const unfit = process.getuid?.() !== 0 || system === undefined || existsSync('/run/systemd/system')
const root = `/podd-test-${process.pid}`
const uid = 'aaaa-bbbb-1111'

describe.skipIf(unfit)('the kernel’s cgroups', () => {
  writeTestMarks({ cgroup: root })
  const cgroups = new CgroupfsPodCgroups({
    system: system ?? { version: 2, hierarchies: [] },
    root,
    clock: systemClock,
  })
  const pod = { uid, qosClass: 'Burstable' } as const
  const directories = (): readonly string[] =>
    (system?.hierarchies ?? [])
      .map(({ path }) => `${path}${cgroups.parentOf(pod)}`)
      .filter((path) => existsSync(path))
  const value = (file: string): string => {
    const directory = directories().find((path) => existsSync(`${path}/${file}`))
    return directory === undefined ? 'missing' : readFileSync(`${directory}/${file}`, 'utf8').trim()
  }

  afterEach(async () => {
    await cgroups.removePod(uid)
    await cgroups.removeQosTree()
  })

  it('take a pod’s limits, hold its processes, and let go of all of it', async () => {
    await cgroups.ensureQosTree({ kubepods: 2048, burstable: 512 })
    await cgroups.ensurePod(pod, {
      cpuShares: 256,
      cpuQuotaUs: 50_000,
      cpuPeriodUs: 100_000,
      memoryLimitBytes: 64 << 20,
      pidsLimit: 50,
      hugepageLimits: [],
    })
    expect(cgroups.listPods()).toEqual([pod])
    expect(cgroups.isRemoved(pod)).toBe(false)
    const version1 = system?.version === 1
    expect(value(version1 ? 'cpu.cfs_quota_us' : 'cpu.max')).toBe(version1 ? '50000' : '50000 100000')
    expect(value(version1 ? 'memory.limit_in_bytes' : 'memory.max')).toBe(String(64 << 20))
    expect(value('pids.max')).toBe('50')

    const child = spawn('sleep', ['60'], { stdio: 'ignore' })
    const ended = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
    for (const directory of directories()) writeFileSync(`${directory}/cgroup.procs`, String(child.pid))
    expect(await cgroups.removePod(uid)).toEqual([])
    expect(await ended).toBe('SIGKILL')
    expect(directories()).toEqual([])
    expect(cgroups.isRemoved(pod)).toBe(true)
    expect(await cgroups.removeQosTree()).toEqual([])
  })
})
