import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { countOomKills, hasOomKills } from '../../../src/host/cgroups/files.ts'
import type { CgroupSystem } from '../../../src/host/cgroups/layout.ts'

let mountPoint: string

beforeEach(async () => {
  mountPoint = await mkdtemp(join(tmpdir(), 'podd-oom-'))
})
afterEach(() => rm(mountPoint, { recursive: true }))

const system = (version: 1 | 2): CgroupSystem => ({
  version,
  hierarchies: [{ path: mountPoint, controllers: ['memory'] }],
})

async function has(path: string, oomKills: number): Promise<void> {
  await mkdir(join(mountPoint, path), { recursive: true })
  const events = `low 0\nhigh 0\nmax 12\noom 1\noom_kill ${oomKills}\noom_group_kill 0\n`
  await writeFile(join(mountPoint, path, 'memory.events'), events)
}

describe('kills for memory in a cgroup', () => {
  it('are all but those of what lives, whichever driver named it', async () => {
    await has('pod1', 9)
    await has('pod1/abc', 2)
    await has('pod1/cri-containerd-def.scope', 4)
    await has('pod1/gone', 1)
    expect(countOomKills(system(2), '/pod1', [])).toBe(9)
    expect(countOomKills(system(2), '/pod1', ['abc', 'def', 'none'])).toBe(3)
  })

  it('are none where there is no such cgroup, and unknown where the kernel does not count them', async () => {
    await has('pod1', 9)
    expect(countOomKills(system(2), '/pod2', [])).toBe(0)
    expect(countOomKills(system(1), '/pod1', [])).toBeUndefined()
    expect(countOomKills({ version: 2, hierarchies: [] }, '/pod1', [])).toBeUndefined()
  })
})

describe('a kill for memory in a container', () => {
  it.each([
    ['2', 2, 'memory.events', 'oom 1\noom_kill 1\n', true],
    ['2, none', 2, 'memory.events', 'oom 0\noom_kill 0\n', false],
    ['1', 1, 'memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n', true],
    ['1, none', 1, 'memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 0\n', false],
    [
      '1 of a kernel that does not count',
      1,
      'memory.oom_control',
      'oom_kill_disable 0\nunder_oom 0\n',
      false,
    ],
  ] as const)('is counted by the kernel, cgroup version %s', async (_what, version, file, text, expected) => {
    await mkdir(join(mountPoint, 'pod1/cri-containerd-abc.scope/inner'), { recursive: true })
    await writeFile(join(mountPoint, 'pod1/cri-containerd-abc.scope/inner', file), text)
    await mkdir(join(mountPoint, 'pod1/side'))
    await writeFile(join(mountPoint, 'pod1/side', file), 'oom_kill 7\n')
    expect(hasOomKills(system(version), '/pod1', 'abc')).toBe(expected)
    expect(hasOomKills(system(version), '/gone', 'abc')).toBe(false)
  })
})
