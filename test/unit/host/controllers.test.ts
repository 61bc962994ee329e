import { describe, expect, it } from 'vitest'
import { enableControllers } from '../../../src/host/cgroups/cgroupfs.ts'
import { CgroupError } from '../../../src/host/cgroups/layout.ts'

/** A cgroup.subtree_control: a write takes effect as a whole or not at all. */
function kernelThatRefuses(refused: Readonly<Record<string, string>>) {
  const enabled: string[] = []
  const write = (value: string): void => {
    const names = value.split(' ').map((word) => word.slice(1))
    const code = names.map((name) => refused[name]).find((word) => word !== undefined)
    if (code !== undefined) throw new CgroupError('cannot write', Object.assign(new Error(code), { code }))
    enabled.push(...names)
  }
  return { enabled, write }
}

describe('enableControllers', () => {
  it.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
    ['none', {}, ['cpu', 'memory', 'pids']],
    ['cpu, while a realtime process runs', { cpu: 'EINVAL' }, ['memory', 'pids']],
    ['those that can’t be in a threaded cgroup', { memory: 'ENOTSUP', pids: 'ENOTSUP' }, ['cpu']],
  ])('leaves out what the kernel refuses: %s', (_what, refused, expected) => {
    const { enabled, write } = kernelThatRefuses(refused)
    enableControllers(['cpu', 'memory', 'pids'], write)
    expect(enabled).toEqual(expected)
  })

  it.each([
    ['it refuses all', { cpu: 'EROFS', memory: 'EROFS' }, 'EROFS'],
    ['there are processes', { memory: 'EBUSY' }, 'EBUSY'],
    ['there are processes too', { cpu: 'EINVAL', memory: 'EBUSY' }, 'EBUSY'],
  ])('fails where %s', (_what, refused, code) => {
    const { write } = kernelThatRefuses(refused)
    expect(() => enableControllers(['cpu', 'memory'], write)).toThrow(
      expect.objectContaining({ cause: expect.objectContaining({ code }) }),
    )
  })
})
