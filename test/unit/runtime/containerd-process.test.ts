import { appendFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  containerdEnvironment,
  containerdPlaces,
  findContainerd,
  isContainerdOf,
} from '../../../src/runtime/containerd/process.ts'
import {
  boundContainerdLog,
  parseLogErrors,
  readLogFrom,
  sizeOf,
} from '../../../src/runtime/containerd/start.ts'
import { parseImportedNames } from '../../../src/runtime/embedded-images.ts'
import { chooseSnapshotter } from '../../../src/runtime/embedded-setup.ts'
import { cgroupDirectories } from '../../../src/runtime/remove-embedded.ts'

describe('containerdEnvironment', () => {
  it('puts the directory of containerd first, so that its own shim is found, and adds the sbin directories', () => {
    const { PATH } = containerdEnvironment('/opt/ctd/bin/containerd', { PATH: '/usr/bin:relative::/bin' })
    const directories = PATH?.split(':')
    expect(directories?.slice(0, 3)).toEqual(['/opt/ctd/bin', '/usr/bin', '/bin'])
    expect(directories).toContain('/usr/sbin')
    expect(directories).not.toContain('relative')
    expect(new Set(directories).size).toBe(directories?.length)
  })

  it('hands on proxies and nothing else', () => {
    const own = { HTTPS_PROXY: 'http://proxy:3128', no_proxy: '10.0.0.0/8', SECRET: 'x', NODE_OPTIONS: '--y' }
    const environment = containerdEnvironment('/usr/bin/containerd', own)
    expect(environment).toMatchObject({ HTTPS_PROXY: 'http://proxy:3128', no_proxy: '10.0.0.0/8' })
    expect(Object.keys(environment).sort()).toEqual(['HTTPS_PROXY', 'PATH', 'no_proxy'])
  })
})

describe('isContainerdOf', () => {
  it.each([
    [['/usr/bin/containerd', '--config', '/c.toml'], true],
    [['containerd', '--config', '/c.toml'], true],
    [['/bin/sh', '/opt/wrapped/containerd', '--config', '/c.toml'], true],
    [['/usr/bin/containerd', '--config', '/other.toml'], false],
    [['/usr/bin/containerd', '--config', '/c.toml', 'config', 'dump'], false],
    [['vi', '--config', '/c.toml'], false],
    [['/usr/bin/containerd'], false],
    [[], false],
  ])('%j: %s', (argv, expected) => {
    expect(isContainerdOf(argv, '/c.toml')).toBe(expected)
  })
})

describe('findContainerd', () => {
  const places = containerdPlaces('/root', '/run/here')
  const containerd = (pid: number, parentPid: number, zombie = false) => ({
    pid,
    parentPid,
    startTicks: 1,
    zombie,
    argv: ['/usr/bin/containerd', '--config', places.configPath],
  })

  it('takes no child for it that was forked and executes nothing yet, whatever its pid', () => {
    expect(findContainerd(places, [containerd(12, 900), containerd(900, 1)])?.pid).toBe(900)
    expect(findContainerd(places, [containerd(900, 1), containerd(901, 900)])?.pid).toBe(900)
  })

  it('passes over one that has ended', () => {
    expect(findContainerd(places, [containerd(900, 1, true)])).toBeUndefined()
    expect(findContainerd(places, [containerd(900, 1, true), containerd(12, 1)])?.pid).toBe(12)
  })
})

describe('chooseSnapshotter', () => {
  const mount = (mountPoint: string, fsType: string) => ({ mountPoint, fsType, root: '/', superOptions: [] })

  it.each([
    ['ext4', [mount('/', 'ext4')], 'overlayfs'],
    ['a container', [mount('/', 'overlay')], 'native'],
    ['a disk of its own in a container', [mount('/', 'overlay'), mount('/var/lib', 'xfs')], 'overlayfs'],
    ['a share', [mount('/', 'ext4'), mount('/var/lib/podd', 'nfs4')], 'native'],
    ['a share elsewhere', [mount('/', 'ext4'), mount('/var/lib/pod', 'nfs4')], 'overlayfs'],
    ['two on one place', [mount('/var', 'nfs'), mount('/var', 'ext4')], 'overlayfs'],
    ['nothing known', [], 'overlayfs'],
  ])('%s', (_, mounts, expected) => {
    expect(chooseSnapshotter(mounts, '/var/lib/podd/containerd')).toBe(expected)
  })
})

describe('parseLogErrors', () => {
  it('gives the first plugin that failed and the last words', () => {
    const log = `time="T" level=warning msg="failed to load plugin io.containerd.metadata.v1.bolt" error="mkdir /x: not a directory"
time="T" level=warning msg="failed to load plugin io.containerd.service.v1.tasks-service" error="no runtimes"
containerd: load required plugin io.containerd.grpc.v1.cri: no runtimes
`
    expect(parseLogErrors(log)).toEqual([
      'failed to load plugin io.containerd.metadata.v1.bolt: mkdir /x: not a directory',
      'load required plugin io.containerd.grpc.v1.cri: no runtimes',
    ])
  })

  it('reads quoted quotes, and says nothing about warnings', () => {
    expect(parseLogErrors('time="T" level=error msg="no \\"cri\\" here" error="disk full"')).toEqual([
      'no "cri" here: disk full',
    ])
    expect(parseLogErrors('time="T" level=warning msg="deprecated"\n')).toEqual([])
  })
})

describe("containerd's log", () => {
  let directory = ''
  let path = ''

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'podd-log-'))
    path = join(directory, 'containerd.log')
  })

  afterEach(async () => {
    await rm(directory, { recursive: true, force: true })
  })

  it('is read from where it was', async () => {
    expect(sizeOf(path)).toBe(0)
    expect(readLogFrom(path, 0)).toBe('')
    await writeFile(path, 'old\n')
    const offset = sizeOf(path)
    await appendFile(path, 'new\n')
    expect(readLogFrom(path, offset)).toBe('new\n')
  })

  it('is cut when it has grown too long, under the writer, with one older part kept', async () => {
    await boundContainerdLog(path)
    await writeFile(path, 'x'.repeat(1000))
    await boundContainerdLog(path)
    expect(sizeOf(path)).toBe(1000)
    await writeFile(path, Buffer.alloc(5 * 1024 * 1024 + 1, 'y'))
    const { ino } = await stat(path)
    await boundContainerdLog(path)
    expect(await stat(path)).toMatchObject({ ino, size: 0 })
    expect((await readFile(`${path}.1`)).length).toBe(5 * 1024 * 1024 + 1)
  })

  it('is cut also where the older part cannot be kept', async () => {
    await mkdir(`${path}.1`)
    await writeFile(path, Buffer.alloc(5 * 1024 * 1024 + 1, 'y'))
    await expect(boundContainerdLog(path)).rejects.toMatchObject({ code: 'EISDIR' })
    expect(sizeOf(path)).toBe(0)
  })
})

describe('parseImportedNames', () => {
  it('gives every image that was unpacked', () => {
    const output = `unpacking localhost/a:1 (sha256:00)...done
unpacking docker.io/library/b:latest (sha256:11)...done
`
    expect(parseImportedNames(output)).toEqual(['localhost/a:1', 'docker.io/library/b:latest'])
    expect(parseImportedNames('')).toEqual([])
  })
})

describe('cgroupDirectories', () => {
  const v1 = {
    version: 1,
    hierarchies: [
      { path: '/sys/fs/cgroup/cpu,cpuacct', controllers: ['cpu', 'cpuacct'] },
      { path: '/sys/fs/cgroup/systemd', controllers: ['xattr', 'name=systemd'] },
      { path: '/sys/fs/cgroup/unified', controllers: [] },
    ],
  } as const
  const v2 = { version: 2, hierarchies: [{ path: '/sys/fs/cgroup', controllers: [] }] } as const

  it('finds the directory in each hierarchy and leaves root cgroups out', () => {
    const text =
      '4:cpu,cpuacct:/kubepods/pod1/c1\n3:pids:/elsewhere\n1:name=systemd:/kubepods/pod1/c1\n0::/\n'
    expect(cgroupDirectories(text, v1)).toEqual([
      '/sys/fs/cgroup/cpu,cpuacct/kubepods/pod1/c1',
      '/sys/fs/cgroup/systemd/kubepods/pod1/c1',
    ])
  })

  it('finds the one directory of version 2', () => {
    expect(cgroupDirectories('0::/kubepods/pod1/c1\n', v2)).toEqual(['/sys/fs/cgroup/kubepods/pod1/c1'])
  })
})
