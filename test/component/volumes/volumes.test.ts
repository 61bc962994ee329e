import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { errorMessage } from '../../../src/base/errors.ts'
import { createPodVolumes } from '../../../src/control/pod/host.ts'
import { ObjectStore } from '../../../src/control/serving/object-store.ts'
import { whenThere } from '../../../src/host/watch-names.ts'
import { hasNoSwap, mountTmpfs, mountsBelow, readMounts, unmount } from '../../../src/host/mounts.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { VolumeSpec } from '../../../src/pod/schema/volume-schema.ts'
import {
  writeEtcHosts,
  listPodDirectories,
  prepareTerminationLog,
  readTerminationLog,
  removeTerminationLog,
} from '../../../src/volumes/pod-directory.ts'
import { checkHostPath } from '../../../src/volumes/volume-plugins.ts'
import { plainResources } from '../../support/pod-builders.ts'
import { volumeContext } from '../../support/volume-context.ts'
import { prepareVolumes, teardownVolumes } from '../../../src/volumes/prepare-volumes.ts'
import { VolumeError } from '../../../src/volumes/open-inside.ts'
import { plainObjectRules } from '../../support/object-rules.ts'

const uid = '3f6a1c52-0000-4000-8000-000000000001'
const memoryBytes = 64 * 1024 ** 2
// mount(2) is root's, and so is what nobody else may enter.
const rootOnly = process.getuid?.() !== 0

let scratch: string
let rootDir: string

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'podd-volumes-'))
  rootDir = `${scratch}/root`
})

afterEach(async () => {
  for (const mountPoint of mountsBelow(scratch, readMounts())) await unmount(mountPoint)
  await rm(scratch, { recursive: true })
})

async function prepare(...volumes: readonly VolumeSpec[]): Promise<(name: string) => string> {
  const ready = await prepareVolumes(volumes, volumeContext({ uid, rootDir, memoryBytes }))
  return (name) => ready.get(name)?.hostPath ?? 'missing'
}

function emptyDir(name: string, medium = ''): VolumeSpec {
  return { name, emptyDir: { medium } }
}

describe('emptyDir', () => {
  it('is a directory for anybody to write to, and keeps what is in it', async () => {
    const before = (await prepare(emptyDir('data')))('data')
    expect(before).toBe(`${rootDir}/pods/${uid}/volumes/kubernetes.io~empty-dir/data`)
    expect((await stat(before)).mode & 0o7777).toBe(0o777)
    await writeFile(`${before}/kept`, 'yes')
    const after = (await prepare(emptyDir('data')))('data')
    expect(await readFile(`${after}/kept`, 'utf8')).toBe('yes')
  })

  it.skipIf(rootOnly)('lies on one tmpfs of the pod’s size with medium Memory', async () => {
    const path = (await prepare(emptyDir('fast', 'Memory')))('fast')
    await writeFile(`${path}/kept`, 'yes')
    await prepare(emptyDir('fast', 'Memory'))
    expect(mountsBelow(path, readMounts())).toEqual([path])
    expect(readMounts().find(({ mountPoint }) => mountPoint === path)?.superOptions).toContain('size=65536k')
    expect((await stat(path)).mode & 0o7777).toBe(0o1777)
    expect(await readFile(`${path}/kept`, 'utf8')).toBe('yes')
    await teardownVolumes(rootDir, uid)
    expect(mountsBelow(rootDir, readMounts())).toEqual([])
    expect(existsSync(`${rootDir}/pods/${uid}`)).toBe(false)
  })

  it.skipIf(rootOnly)(
    'is never swapped out with medium Memory where the kernel can hold to that',
    async () => {
      const path = (await prepare(emptyDir('fast', 'Memory')))('fast')
      const options = readMounts().find(({ mountPoint }) => mountPoint === path)?.superOptions
      expect(options?.includes('noswap')).toBe(hasNoSwap(release()))
      await mkdir(`${scratch}/old`)
      await mountTmpfs(`${scratch}/old`, 1024 ** 2, '5.10.0-8-amd64')
      expect(
        readMounts().find(({ mountPoint }) => mountPoint === `${scratch}/old`)?.superOptions,
      ).not.toContain('noswap')
    },
  )

  it.skipIf(rootOnly)('belongs to the pod’s group again on the new tmpfs after a reboot', async () => {
    const fsGroup = { gid: 2000, changePolicy: 'Always' } as const
    const again = async (sizeBytes = memoryBytes): Promise<readonly number[]> => {
      const context = volumeContext({ uid, rootDir, memoryBytes: sizeBytes, fsGroup })
      const ready = await prepareVolumes([emptyDir('fast', 'Memory')], context)
      const { gid, mode } = await stat(ready.get('fast')?.hostPath ?? 'missing')
      return [gid, mode & 0o7777]
    }
    expect(await again()).toEqual([2000, 0o3777])
    const path = `${rootDir}/pods/${uid}/volumes/kubernetes.io~empty-dir/fast`
    // What a container changes stays.
    await chmod(path, 0o700)
    expect(await again()).toEqual([2000, 0o700])
    await unmount(path)
    expect(await again()).toEqual([2000, 0o3777])
    // As if podd was killed right after the mount.
    await unmount(path)
    await expect(again(Number.NaN)).rejects.toThrow('mount')
    await mountTmpfs(path, memoryBytes)
    expect(await again()).toEqual([2000, 0o3777])
  })

  it.each([
    ['6.2.16-20-pve', false],
    ['6.3.0', true],
    ['6.18.44', true],
    ['10.0', true],
    ['5.15.0-91-generic', false],
    ['strange', false],
  ])('asks a kernel %s for noswap: %s', (kernel, asks) => {
    expect(hasNoSwap(kernel)).toBe(asks)
  })

  it.skipIf(rootOnly).each([
    ['that of the pod', { resources: { limits: { memory: '8Mi' } } }, 8192],
    ['its containers’, sidecars included', { sidecar: '6Mi' }, 10_240],
    ['its largest init container’s', { init: '12Mi' }, 12_288],
    ['the host’s, where one container has no limit', { sidecar: undefined }, 65_536],
  ])('with medium Memory is as large as the memory limit: %s', async (_what, has, sizeKib) => {
    const limited = (name: string, memory: string | undefined, more = {}) => ({
      name,
      image: 'i:1',
      resources: { limits: { cpu: '1', ...(memory === undefined ? {} : { memory }) } },
      ...more,
    })
    const pod = podFromManifest({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'default' },
      spec: {
        ...('resources' in has ? { resources: has.resources } : {}),
        containers: [limited('main', 'resources' in has ? undefined : '4Mi')],
        initContainers: [
          ...('sidecar' in has ? [limited('side', has.sidecar, { restartPolicy: 'Always' })] : []),
          ...('init' in has ? [limited('init', has.init)] : []),
        ],
        volumes: [{ name: 'fast', emptyDir: { medium: 'Memory' } }],
      },
    })
    const podVolumes = createPodVolumes({
      rootDir,
      resources: { ...plainResources, memoryCapacityBytes: memoryBytes },
      objects: new ObjectStore(plainObjectRules),
      capacity: {},
      hostName: 'h',
      clock: systemClock,
    })
    const path = (await podVolumes.prepare({ uid, pod, source: 'file' })).get('fast')?.hostPath
    const options = readMounts().find(({ mountPoint }) => mountPoint === path)?.superOptions
    expect(options).toContain(`size=${sizeKib}k`)
    expect(await listPodDirectories(rootDir)).toEqual([uid])
    await podVolumes.teardown(uid)
  })

  it('refuses a medium it doesn’t know', async () => {
    await expect(prepare(emptyDir('huge', 'HugePages'))).rejects.toThrow(
      'MountVolume.SetUp failed for volume "huge" : emptyDir medium "HugePages" is not supported',
    )
  })
})

describe('hostPath', () => {
  type Type = NonNullable<VolumeSpec['hostPath']>['type']
  const hostPath = (path: string, type: Type): VolumeSpec => ({ name: 'host', hostPath: { path, type } })

  beforeEach(async () => {
    await mkdir(`${scratch}/dir`)
    await writeFile(`${scratch}/file`, 'text')
    await symlink('dir', `${scratch}/link`)
  })

  it.each<[Type, string]>([
    ['', 'absent'],
    ['Directory', 'dir'],
    ['Directory', 'link'],
    ['DirectoryOrCreate', 'dir'],
    ['File', 'file'],
    ['FileOrCreate', 'file'],
    ['CharDevice', '../../dev/null'],
  ])('of type "%s" takes %s', async (type, name) => {
    const path = join(scratch, name)
    const real = name.includes('null') ? '/dev/null' : path
    expect((await prepare(hostPath(real, type)))('host')).toBe(real)
  })

  it.each<[Type, string, string]>([
    ['Directory', 'file', 'a directory'],
    ['Directory', 'absent', 'a directory'],
    ['DirectoryOrCreate', 'file', 'a directory'],
    ['File', 'dir', 'a file'],
    ['File', 'absent', 'a file'],
    ['FileOrCreate', 'dir', 'a file'],
    ['Socket', 'file', 'a socket file'],
    ['CharDevice', 'file', 'a character device'],
    ['BlockDevice', 'file', 'a block device'],
    ['File', 'file/below', 'a file'],
  ])('of type %s refuses %s: not %s', async (type, name, what) => {
    const error: unknown = await prepare(hostPath(`${scratch}/${name}`, type)).catch(
      (reason: unknown) => reason,
    )
    const why = existsSync(`${scratch}/${name}`) ? 'something else is there' : 'nothing is there'
    expect(errorMessage(error)).toBe(
      `MountVolume.SetUp failed for volume "host" : hostPath type check failed: ${scratch}/${name} is not ${what}: ${why}`,
    )
    expect(error instanceof VolumeError && error.hint !== undefined).toBe(!existsSync(`${scratch}/${name}`))
  })

  it('of type Socket takes a socket', async () => {
    const server = createServer().listen(`${scratch}/socket`)
    await new Promise((resolve) => server.once('listening', resolve))
    expect((await prepare(hostPath(`${scratch}/socket`, 'Socket')))('host')).toBe(`${scratch}/socket`)
    await new Promise((resolve) => server.close(resolve))
  })

  it('is checked beforehand and not made', async () => {
    await writeFile(`${scratch}/plain`, '')
    await checkHostPath(hostPath(`${scratch}/plain`, 'File'))
    await checkHostPath(hostPath(`${scratch}/nothing`, ''))
    await checkHostPath(hostPath(`${scratch}/nothing`, 'DirectoryOrCreate'))
    expect(existsSync(`${scratch}/nothing`)).toBe(false)
    for (const [name, type] of [
      ['nothing', 'Directory'],
      ['plain', 'DirectoryOrCreate'],
    ] as const)
      await expect(checkHostPath(hostPath(`${scratch}/${name}`, type))).rejects.toMatchObject({
        message: expect.stringContaining(
          `hostPath type check failed: ${scratch}/${name} is not a directory: `,
        ),
      })
  })

  it('makes a directory, with those above it', async () => {
    await prepare(hostPath(`${scratch}/new/deep`, 'DirectoryOrCreate'))
    const found = await stat(`${scratch}/new/deep`)
    expect([found.isDirectory(), found.mode & 0o777]).toEqual([true, 0o755])
  })

  it('gives up on a directory where none can be made', async () => {
    await writeFile(`${scratch}/regular`, '')
    await expect(prepare(hostPath(`${scratch}/regular/deep`, 'DirectoryOrCreate'))).rejects.toThrow(
      `hostPath ${scratch}/regular/deep could not be made: ENOTDIR`,
    )
  })

  it('makes an empty file, but no directory for it', async () => {
    await prepare(hostPath(`${scratch}/dir/new`, 'FileOrCreate'))
    expect(await readFile(`${scratch}/dir/new`, 'utf8')).toBe('')
    await prepare(hostPath(`${scratch}/file`, 'FileOrCreate'))
    expect(await readFile(`${scratch}/file`, 'utf8')).toBe('text')
    await expect(prepare(hostPath(`${scratch}/none/new`, 'FileOrCreate'))).rejects.toThrow(
      'could not be made',
    )
  })
})

describe('a hostPath of the kernel’s or a device’s that is not there', () => {
  const hostPath = (path: string, type: NonNullable<VolumeSpec['hostPath']>['type']): VolumeSpec => ({
    name: 'host',
    hostPath: { path, type },
  })
  const absent = `/dev/podd-test-${process.pid}`

  it.each([
    ['without a type', absent, ''],
    ['as a directory to make', `${absent}/deep`, 'DirectoryOrCreate'],
    ['as a file to make', absent, 'FileOrCreate'],
    ['by dots', `/tmp/..${absent}`, ''],
    ['below /sys', '/sys/podd-test', 'DirectoryOrCreate'],
    ['below /proc', '/proc/podd-test', ''],
  ] as const)('%s is waited for, and nothing is made in its place', async (_what, path, type) => {
    await expect(prepare(hostPath(path, type))).rejects.toMatchObject({
      message: expect.stringMatching(
        /does not exist, and nothing is made below \/(?:dev|sys|proc): waiting for it$/u,
      ),
      awaitedPath: path,
    })
    await expect(checkHostPath(hostPath(path, type))).rejects.toThrow('waiting for it')
    expect(existsSync(path)).toBe(false)
  })

  it('is waited for through a link, too', async () => {
    await symlink('/dev', `${scratch}/devices`)
    const path = `${scratch}/devices/podd-test-${process.pid}`
    await expect(prepare(hostPath(path, ''))).rejects.toThrow('nothing is made below /dev')
    expect(existsSync(path)).toBe(false)
  })

  it('is made all the same in shared memory, where programs make what they like', async () => {
    const path = `/dev/shm/podd-test-${process.pid}`
    await prepare(hostPath(path, 'DirectoryOrCreate'))
    expect(existsSync(path)).toBe(true)
    await rm(path, { recursive: true })
  })

  it('of a type is waited for by its path, wherever that is', async () => {
    await expect(prepare(hostPath(`${scratch}/none`, 'CharDevice'))).rejects.toMatchObject({
      awaitedPath: `${scratch}/none`,
    })
  })
})

describe('a path that is waited for', () => {
  it('is there as soon as it is made, and the directories above it before', async () => {
    const path = `${scratch}/one/two/three`
    let isThere = false
    const there = whenThere(path, new AbortController().signal).then(() => (isThere = true))
    await mkdir(`${scratch}/one`)
    await mkdir(`${scratch}/one/two`)
    expect(isThere).toBe(false)
    await writeFile(path, '')
    await there
  })

  it('is waited for no longer than somebody wants it', async () => {
    const over = new AbortController()
    const there = whenThere(`${scratch}/never`, over.signal)
    over.abort(new Error('enough'))
    await expect(there).rejects.toThrow('enough')
  })
})

describe('teardownVolumes', () => {
  it.skipIf(rootOnly)('removes the pod’s directory and nothing that it links to; twice is fine', async () => {
    const data = (await prepare(emptyDir('data')))('data')
    await mkdir(`${scratch}/precious`)
    await writeFile(`${scratch}/precious/file`, 'still here')
    await symlink(`${scratch}/precious`, `${data}/link`)
    await chmod(data, 0o000)
    expect(await listPodDirectories(rootDir)).toEqual([uid])
    await teardownVolumes(rootDir, uid)
    await teardownVolumes(rootDir, uid)
    expect(await listPodDirectories(rootDir)).toEqual([])
    expect(await readFile(`${scratch}/precious/file`, 'utf8')).toBe('still here')
  })

  it.skipIf(rootOnly)('unmounts what a dead podd left, nested, and through a linked root', async () => {
    const path = (await prepare(emptyDir('fast', 'Memory')))('fast')
    await mkdir(`${path}/in ner`)
    await mountTmpfs(`${path}/in ner`)
    await symlink(rootDir, `${scratch}/linked`)
    await teardownVolumes(`${scratch}/linked`, uid)
    expect(mountsBelow(scratch, readMounts())).toEqual([])
    expect(existsSync(`${rootDir}/pods/${uid}`)).toBe(false)
  })

  it.each(['', '..', 'a/b', '../../etc'])('refuses %j for a UID', async (bad) => {
    await expect(teardownVolumes(rootDir, bad)).rejects.toThrow('not a pod')
  })
})

describe('the hosts file', () => {
  it('is rewritten in place, so that containers see it', async () => {
    const path = await writeEtcHosts(rootDir, uid, 'one\n')
    const { ino, mode } = await stat(path)
    expect(mode & 0o777).toBe(0o644)
    await writeEtcHosts(rootDir, uid, 'two, longer\n')
    expect(await writeEtcHosts(rootDir, uid, 'three\n')).toBe(path)
    expect((await stat(path)).ino).toBe(ino)
    expect(await readFile(path, 'utf8')).toBe('three\n')
  })
})

describe('the termination log', () => {
  const log = () => ({ rootDir, uid, container: 'app', restartCount: 2 })

  it('is empty, writable by anybody, and gone when removed', async () => {
    const path = await prepareTerminationLog(log())
    expect(path).toBe(`${rootDir}/pods/${uid}/containers/app/2`)
    expect((await stat(path)).mode & 0o777).toBe(0o666)
    expect(await readTerminationLog(log())).toBe('')
    await removeTerminationLog(log())
    await removeTerminationLog(log())
    expect(existsSync(path)).toBe(false)
    expect(await readTerminationLog(log())).toBe('')
  })

  it('gives the last 4096 bytes', async () => {
    await writeFile(await prepareTerminationLog(log()), `${'x'.repeat(5000)}the end`)
    const message = await readTerminationLog(log())
    expect(message).toHaveLength(4096)
    expect(message.endsWith('xthe end')).toBe(true)
  })

  it('starts anew for a container that comes to the same number', async () => {
    await writeFile(await prepareTerminationLog(log()), 'old')
    await prepareTerminationLog(log())
    expect(await readTerminationLog(log())).toBe('')
  })
})
