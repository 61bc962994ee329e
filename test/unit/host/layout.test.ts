import { describe, expect, it } from 'vitest'
import {
  cgroupPath,
  chooseCgroupDriver,
  detectCgroups,
  parsePodCgroup,
  podCgroupName,
  qosCgroupName,
  sliceName,
} from '../../../src/host/cgroups/layout.ts'
import { parseMountInfo } from '../../../src/host/mounts.ts'

const hybrid = `
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
99 31 0:32 / /mnt/memory rw,relatime - cgroup cgroup rw,memory
`
const unified = '30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev - cgroup2 cgroup2 rw,nsdelegate\n'

describe('detectCgroups', () => {
  it('reads the hybrid layout as version 1, with the unified tree beside it', () => {
    expect(detectCgroups(parseMountInfo(hybrid))).toEqual({
      version: 1,
      hierarchies: [
        { path: '/sys/fs/cgroup/cpu,cpuacct', controllers: ['cpu', 'cpuacct'] },
        { path: '/sys/fs/cgroup/memory', controllers: ['memory'] },
        { path: '/sys/fs/cgroup/systemd', controllers: ['xattr', 'name=systemd'] },
        { path: '/sys/fs/cgroup/unified', controllers: [] },
      ],
    })
  })

  it('reads version 2', () => {
    expect(detectCgroups(parseMountInfo(unified))).toEqual({
      version: 2,
      hierarchies: [{ path: '/sys/fs/cgroup', controllers: [] }],
    })
  })

  it('finds none where none are mounted', () => {
    expect(detectCgroups(parseMountInfo('22 27 0:21 / /proc rw - proc proc rw\n'))).toBeUndefined()
  })
})

describe('parseMountInfo', () => {
  it('reads paths with spaces and optional fields', () => {
    expect(
      parseMountInfo('36 35 98:0 /a\\040b /mnt/c\\134d rw master:1 shared:2 - ext4 /dev/sda rw,errors=x\n'),
    ).toEqual([{ mountPoint: '/mnt/c\\d', root: '/a b', fsType: 'ext4', superOptions: ['rw', 'errors=x'] }])
  })
})

describe('chooseCgroupDriver', () => {
  const facts = { configured: 'auto', runtime: undefined, systemd: true, version: 2 } as const
  it.each([
    [facts, 'systemd'],
    [{ ...facts, systemd: false }, 'cgroupfs'],
    [{ ...facts, version: 1 } as const, 'cgroupfs'],
    [{ ...facts, runtime: 'cgroupfs' } as const, 'cgroupfs'],
    [{ ...facts, runtime: 'systemd', version: 1 } as const, 'systemd'],
    [{ ...facts, configured: 'cgroupfs', runtime: 'systemd' } as const, 'cgroupfs'],
  ])('%j gives %s', (given, expected) => {
    expect(chooseCgroupDriver(given)).toBe(expected)
  })
})

describe('cgroup names', () => {
  const uid = '3f6a1c52-0000-4000-8000-000000000001'

  it.each([
    ['/', 'Guaranteed', `/kubepods/pod${uid}`],
    ['/', 'Burstable', `/kubepods/burstable/pod${uid}`],
    ['/podd-test', 'BestEffort', `/podd-test/kubepods/besteffort/pod${uid}`],
    ['/a/b/', 'Guaranteed', `/a/b/kubepods/pod${uid}`],
  ] as const)('of cgroupfs below %s, %s: %s', (root, qosClass, expected) => {
    const path = cgroupPath(podCgroupName(root, qosClass, uid), 'cgroupfs')
    expect(path).toBe(expected)
    expect(parsePodCgroup(path.split('/').at(-1) ?? '', 'cgroupfs')).toBe(uid)
  })

  it.each([
    ['/', 'Guaranteed', '/kubepods.slice/kubepods-podUID.slice'],
    ['/', 'Burstable', '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice'],
    [
      '/podd-test',
      'BestEffort',
      '/podd_test.slice/podd_test-kubepods.slice/podd_test-kubepods-besteffort.slice/podd_test-kubepods-besteffort-podUID.slice',
    ],
  ] as const)('of systemd below %s, %s: %s', (root, qosClass, expected) => {
    const name = podCgroupName(root, qosClass, uid)
    const path = cgroupPath(name, 'systemd')
    expect(path).toBe(expected.replace('UID', uid.replaceAll('-', '_')))
    expect(path.endsWith(`/${sliceName(name)}`)).toBe(true)
    expect(parsePodCgroup(sliceName(name), 'systemd')).toBe(uid)
  })

  it('of levels are no pods’', () => {
    expect(parsePodCgroup('besteffort', 'cgroupfs')).toBeUndefined()
    expect(parsePodCgroup(sliceName(qosCgroupName('/', 'Burstable')), 'systemd')).toBeUndefined()
    expect(parsePodCgroup('cri-containerd-abc.scope', 'systemd')).toBeUndefined()
  })
})
