import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readPodMemory, readPodsMemory } from '../../../src/host/cgroups/files.ts'

const files = {
  1: { usage: 'memory.usage_in_bytes', limit: 'memory.limit_in_bytes', inactive: 'total_inactive_file' },
  2: { usage: 'memory.current', limit: 'memory.max', inactive: 'inactive_file' },
} as const

describe.each([1, 2] as const)('memory by cgroups of version %d', (version) => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'podd-cgroup-'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const cgroups = () => ({
    system: {
      version,
      hierarchies: [
        ...(version === 1 ? [{ path: '/nowhere', controllers: ['cpu'] }] : []),
        { path: directory, controllers: version === 1 ? ['memory'] : [] },
      ],
    },
    root: '/own',
    driver: 'cgroupfs' as const,
  })
  const write = (path: string, limit: string, usage: number, inactive: number): void => {
    const { usage: usageFile, limit: limitFile, inactive: word } = files[version]
    mkdirSync(join(directory, path), { recursive: true })
    writeFileSync(join(directory, path, limitFile), `${limit}\n`)
    writeFileSync(join(directory, path, usageFile), `${usage}\n`)
    writeFileSync(join(directory, path, 'memory.stat'), `active_file 7\n${word} ${inactive}\nunevictable 0\n`)
  }
  const unlimited = version === 1 ? '9223372036854771712' : 'max'

  it('is what a pod uses without what the kernel can reclaim', () => {
    write('own/kubepods/burstable/pod-a', unlimited, 5000, 1500)
    expect(readPodMemory(cgroups(), 'Burstable', '-a')).toBe(3500)
    expect(readPodMemory(cgroups(), 'BestEffort', '-a')).toBeUndefined()
  })

  it('is what is left to all pods on the level that has the least', () => {
    write('own', '9000', 5000, 1000)
    write('own/kubepods', '8000', 5000, 3000)
    expect(readPodsMemory(cgroups())).toEqual({ available: 5000, capacity: 9000 })
    write('own', unlimited, 5000, 1000)
    expect(readPodsMemory(cgroups())).toEqual({ available: 6000, capacity: 8000 })
  })
})
