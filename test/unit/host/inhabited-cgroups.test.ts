import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isInhabited } from '../../../src/host/cgroups/files.ts'
import type { CgroupSystem } from '../../../src/host/cgroups/layout.ts'

let directory = ''
let system: CgroupSystem

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-inhabited-'))
  system = { version: 2, hierarchies: [{ path: directory, controllers: [] }] }
  mkdirSync(join(directory, 'pod1/container'), { recursive: true })
  writeFileSync(join(directory, 'pod1/cgroup.procs'), '')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

it('finds a process below a cgroup, and none in an empty or absent one', () => {
  expect(isInhabited(system, '/pod2')).toBe(false)
  writeFileSync(join(directory, 'pod1/container/cgroup.procs'), '')
  expect(isInhabited(system, '/pod1')).toBe(false)
  writeFileSync(join(directory, 'pod1/container/cgroup.procs'), '7\n')
  expect(isInhabited(system, '/pod1')).toBe(true)
})

it('does not take a cgroup that cannot be read for an empty one', () => {
  symlinkSync('cgroup.procs', join(directory, 'pod1/container/cgroup.procs'))
  expect(() => isInhabited(system, '/pod1')).toThrow('ELOOP')
})
