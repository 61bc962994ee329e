import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { checkMountKinds } from '../../../src/volumes/sub-path.ts'

const pid = 4711
let scratch: string

beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'podd-mounts-'))
  const root = join(scratch, `proc/${pid}/root`)
  mkdirSync(join(root, 'etc/app'), { recursive: true })
  writeFileSync(join(root, 'etc/app/app.conf'), '')
  symlinkSync('/etc', join(root, 'conf'))
  mkdirSync(join(root, 'data'))
  writeFileSync(join(root, 'data/file'), '')
  const mounts = ['/', '/data'].map(
    (point, at) => `${at + 1} 0 0:${at + 1} / ${point} rw - ext4 /dev/sda rw\n`,
  )
  writeFileSync(join(scratch, `proc/${pid}/mountinfo`), mounts.join(''))
  writeFileSync(join(scratch, 'plain'), '')
  mkdirSync(join(scratch, 'dir'))
})

afterEach(() => rmSync(scratch, { recursive: true }))

function check(mountPath: string, volume: object, mount: object = {}): Promise<void> {
  const { spec } = podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: {
      containers: [{ name: 'main', image: 'app:1', volumeMounts: [{ name: 'v', mountPath, ...mount }] }],
      volumes: [{ name: 'v', ...volume }],
    },
  })
  const [container] = spec.containers
  if (container === undefined) throw new Error('there is no container')
  return checkMountKinds(container, spec.volumes, pid, join(scratch, 'proc'))
}

const host = (name: string, type = ''): object => ({ hostPath: { path: join(scratch, name), type } })

describe('a mount over what the image has', () => {
  it.each([
    [
      'a missing path of the host over a file',
      '/etc/app/app.conf',
      'none',
      '',
      'does not exist, and a directory',
    ],
    ['a directory to make over a file', '/etc/app/app.conf', 'none', 'DirectoryOrCreate', 'does not exist'],
    ['a directory over a file', '/etc/app/app.conf', 'dir', '', 'is a directory'],
    ['a file over a directory', '/etc/app', 'plain', '', 'is a file'],
    ['a file to make over a directory', '/etc/app', 'none', 'FileOrCreate', 'does not exist, and a file'],
  ])('is refused before anything ends: %s', async (_what, mountPath, name, type, words) => {
    await expect(check(mountPath, host(name, type))).rejects.toThrow(words)
  })

  it('is refused for other volumes too, which are directories', async () => {
    await expect(check('/etc/app/app.conf', { emptyDir: {} })).rejects.toThrow(
      "volume v is a directory, and container main has a file at /etc/app/app.conf in its image: a directory can't be mounted over that",
    )
  })

  it.each([
    ['a file over a file', '/etc/app/app.conf', 'plain'],
    ['a directory over a directory', '/etc/app', 'dir'],
    ['what the image does not have', '/srv/new', 'none'],
    ['behind a link, which leads elsewhere in the container', '/conf/app/app.conf', 'none'],
    ['what the container that runs mounts itself', '/data/file', 'none'],
  ])('is taken where it fits, or nothing is known: %s', async (_what, mountPath, name) => {
    await expect(check(mountPath, host(name))).resolves.toBeUndefined()
  })

  it('is taken of a part of a volume, which may be a file', async () => {
    await expect(check('/etc/app/app.conf', host('dir'), { subPath: 'x' })).resolves.toBeUndefined()
  })
})
