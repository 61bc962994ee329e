import { existsSync } from 'node:fs'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  chown,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { PoddError } from '../../../src/base/errors.ts'
import { formatTar } from '../../../src/images/tar.ts'
import type { PodReach } from '../../../src/server/requests/readers.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli, startCli } from '../../support/cli-rig.ts'
import { containerStatus, podObject } from '../../support/pod-objects.ts'

let rig: ApiRig
let directory: string
let inside: string
beforeEach(async () => {
  rig = await ApiRig.start()
  directory = await mkdtemp(join(tmpdir(), 'podd-copy-'))
  inside = join(directory, 'container')
  await mkdir(inside)
  rig.pods.put(
    podObject({ status: { containerStatuses: [containerStatus('main', { containerID: 'c://1' })] } }),
  )
  // The commands run on this host, in a directory that stands for the container's.
  rig.reach = { ...rig.reach, startCommand: startInner }
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await rig[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

const startInner: PodReach['startCommand'] = async ({ command: [program = '', ...words] }) => {
  const child = spawn(program, words, { cwd: inside, env: { PATH: process.env['PATH'] } })
  child.stdin.on('error', () => {})
  const ended = once(child, 'close').then(([code]) => Number(code))
  return {
    stdout: child.stdout,
    stderr: child.stderr,
    ended,
    write: (chunk) =>
      new Promise((resolve) => {
        child.stdin.write(chunk, () => resolve())
      }),
    closeStdin: async () => void child.stdin.end(),
    resize: async () => {},
    hangUp: async () => void child.kill(),
  }
}

const shell = (script: string): readonly string[] => ['/bin/sh', '-c', script]

const cp = (...words: readonly string[]) => callCli(['cp', '--socket', rig.socketPath, ...words])

/** Stands before the daemon; a request for tar in the container waits for `open`, which may cut the connection. */
async function delayTar(open: (client: Socket) => Promise<unknown>) {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    sockets.add(client.on('error', () => {}))
    client.once('data', (head: Buffer) => {
      client.pause()
      void (head.includes('command=tar') ? open(client) : Promise.resolve()).then(() => {
        if (client.destroyed) return
        const daemon = connect(rig.socketPath).on('error', () => {})
        sockets.add(daemon)
        daemon.write(head)
        client.pipe(daemon).pipe(client)
      })
    })
  })
  const socketPath = join(rig.directory, 'slow.sock')
  await once(server.listen(socketPath), 'listening')
  return {
    socketPath,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Starts this in place of the container's tar. */
function replaceInnerTar(start: PodReach['startCommand']): void {
  rig.reach = {
    ...rig.reach,
    startCommand: (request, signal) =>
      request.command[0] === 'tar' ? start(request, signal) : startInner(request, signal),
  }
}

describe('podd cp', () => {
  it.each([10, 3_000_000])('copies %d bytes in when the connection opens late', async (sizeBytes) => {
    const file = join(directory, 'file')
    await writeFile(file, 'x'.repeat(sizeBytes))
    await using slow = await delayTar(() => sleep(500))
    expect(await callCli(['cp', '--socket', slow.socketPath, file, 'web:copy'])).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: '',
    })
    expect(await readFile(join(inside, 'copy'), 'utf8')).toHaveLength(sizeBytes)
  })

  it.each(['in', 'out'])('copying %s leaves nothing when the connection does not open', async (way) => {
    await using slow = await delayTar(async (client) => client.destroy())
    const words = way === 'in' ? [inside, 'web:copy'] : ['web:/etc/hosts', join(directory, 'out')]
    expect((await callCli(['cp', '--socket', slow.socketPath, ...words])).exitCode).toBe(1)
    expect(await readdir(directory)).toEqual(['container'])
  })

  it.each(['in', 'out'])('copying %s leaves nothing when it is interrupted', async (way) => {
    const started = join(directory, 'started')
    replaceInnerTar((request, signal) =>
      startInner({ ...request, command: shell(`: > ${started}; exec sleep 600`) }, signal),
    )
    const words = way === 'in' ? [inside, 'web:copy'] : ['web:/etc/hosts', join(directory, 'out')]
    const call = startCli(['cp', '--socket', rig.socketPath, ...words])
    await expect.poll(() => existsSync(started)).toBe(true)
    call.interrupt()
    expect((await call.outcome).exitCode).toBe(130)
    expect((await readdir(directory)).toSorted()).toEqual(['container', 'started'])
  })

  it.each<[what: string, start: PodReach['startCommand'], message: string, isHinted: boolean]>([
    [
      'the runtime finds no tar',
      async () => {
        throw new PoddError('EXEC_FAILED', 'exec: "tar": executable file not found in $PATH')
      },
      'executable file not found',
      true,
    ],
    [
      'tar is not found',
      (request, signal) => startInner({ ...request, command: shell('exit 127') }, signal),
      'exit code 127',
      true,
    ],
    [
      'tar is not executable',
      (request, signal) => startInner({ ...request, command: shell('exit 126') }, signal),
      'exit code 126',
      true,
    ],
    [
      'tar fails',
      (request, signal) => startInner({ ...request, command: shell('echo no space >&2; exit 1') }, signal),
      'tar in the container: no space',
      false,
    ],
  ])('hints at a missing tar only for one: %s', async (_what, start, message, isHinted) => {
    replaceInnerTar(start)
    const file = join(directory, 'file')
    // More than the pipes hold, so that this host's tar is cut off.
    await writeFile(file, 'x'.repeat(3_000_000))
    for (const words of [
      [file, 'web:copy'],
      ['web:/no-such-file', join(directory, 'out')],
    ]) {
      const { exitCode, stderr } = await cp(...words)
      expect(exitCode).toBe(1)
      expect(stderr).toContain(message)
      expect(stderr.includes('needs tar in the image')).toBe(isHinted)
    }
  })

  it('says what this host cannot read', async () => {
    // Of 4096 bytes, says its size; it ends after some few.
    const { exitCode, stderr } = await cp('/sys/kernel/uevent_seqnum', 'web:copy')
    expect(stderr).toContain('reading /sys/kernel/uevent_seqnum: encountered unexpected EOF')
    expect(exitCode).toBe(1)
  })

  it('says what tar says of a path that the container does not have', async () => {
    const { stderr } = await cp('web:/no-such-file', '.')
    expect(stderr).toContain(
      'tar in the container: tar: no-such-file: Cannot stat: No such file or directory',
    )
    expect(stderr).not.toContain('needs tar')
  })

  it('copies a directory in under another name and out again', async () => {
    const site = join(directory, 'site')
    await mkdir(join(site, 'deep'), { recursive: true })
    await writeFile(join(site, 'deep', 'page&1'), 'x'.repeat(500_000))
    await symlink('deep/page&1', join(site, 'link'))
    expect(await cp(site, 'web:www&co')).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    expect((await readdir(join(inside, 'www&co'))).toSorted()).toEqual(['deep', 'link'])
    // An existing directory takes it under its own name.
    await mkdir(join(inside, 'there'))
    expect((await cp(site, 'default/web:there')).exitCode).toBe(0)
    expect(await readdir(join(inside, 'there'))).toEqual(['site'])
    const out = join(directory, 'out')
    expect(await cp('web:www&co', out)).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    expect(await readFile(join(out, 'link'), 'utf8')).toHaveLength(500_000)
    expect((await readdir(directory)).toSorted()).toEqual(['container', 'out', 'site'])
  })

  it('keeps hard links and names of any length when it copies a directory', async () => {
    const site = join(directory, 'site')
    const long = join(site, 'long/'.repeat(60), 'ü'.repeat(100))
    await mkdir(dirname(long), { recursive: true })
    await writeFile(long, 'text')
    await link(long, join(site, 'same'))
    expect(await cp(site, 'web:www')).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    expect(await cp('web:www', join(directory, 'out'))).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    for (const copy of [join(inside, 'www'), join(directory, 'out')]) {
      expect(await readFile(join(copy, relative(site, long)), 'utf8')).toBe('text')
      expect((await stat(join(copy, 'same'))).nlink).toBe(2)
    }
  })

  it('copies the links of a ConfigMap volume', async () => {
    const volume = join(inside, 'config')
    await mkdir(join(volume, '..2026'), { recursive: true })
    await writeFile(join(volume, '..2026', 'key'), 'value')
    await symlink('..2026', join(volume, '..data'))
    await symlink('..data/key', join(volume, 'key'))
    expect(await cp('web:config', join(directory, 'out'))).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    expect(await readlink(join(directory, 'out', 'key'))).toBe('..data/key')
    expect(await readFile(join(directory, 'out', 'key'), 'utf8')).toBe('value')
  })

  it('takes neither set-user-ID nor owners from a container', async () => {
    const tool = join(inside, 'tools', 'tool')
    await mkdir(dirname(tool))
    await writeFile(tool, 'x')
    await chown(tool, 1234, 1234)
    await chmod(tool, 0o6755)
    await chmod(dirname(tool), 0o3755)
    expect(await cp('web:tools', join(directory, 'out'))).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    const found = await stat(join(directory, 'out', 'tool'))
    expect({ mode: found.mode & 0o7777, uid: found.uid, gid: found.gid }).toEqual({
      mode: 0o755,
      uid: process.getuid?.(),
      gid: process.getgid?.(),
    })
    expect((await stat(join(directory, 'out'))).mode & 0o7777).toBe(0o755)
  })

  it('leaves out devices, pipes and links to other places, and names them', async () => {
    await mkdir(join(inside, 'evil', 'deep'), { recursive: true })
    spawnSync('mkfifo', [join(inside, 'evil', 'pipe')])
    spawnSync('mknod', [join(inside, 'evil', 'null'), 'c', '1', '3'])
    await link(join(inside, 'evil', 'null'), join(inside, 'evil', 'null-again'))
    await symlink('/etc/shadow', join(inside, 'evil', 'absolute'))
    await symlink('../../etc', join(inside, 'evil', 'deep', 'up'))
    await symlink('up/../..', join(inside, 'evil', 'deep', 'through'))
    await symlink('../deep', join(inside, 'evil', 'deep', 'inside'))
    await writeFile(join(inside, 'evil', 'file'), 'x')
    const { exitCode, stderr } = await cp('web:evil', join(directory, 'out'))
    expect(stderr.trim().split('\n').toSorted()).toEqual([
      'left out evil/absolute: a link to /etc/shadow, which is not copied with it',
      'left out evil/deep/through: a link to up/../.., which is not copied with it',
      'left out evil/deep/up: a link to ../../etc, which is not copied with it',
      'left out evil/null-again: a device',
      'left out evil/null: a device',
      'left out evil/pipe: a named pipe',
    ])
    expect(exitCode).toBe(0)
    expect(findPaths('out')).toEqual(['out', 'out/deep', 'out/deep/inside', 'out/file'])
  })

  it('does not copy a device or a link by its own name', async () => {
    await symlink('/etc/shadow', join(inside, 'link'))
    const { exitCode, stderr } = await cp('web:link', join(directory, 'out'))
    expect(stderr).toContain('link in the container is a link to /etc/shadow')
    expect(exitCode).toBe(1)
    expect(await readdir(directory)).toEqual(['container'])
  })

  /** What these entries make of `podd cp web:evil`, as an archive that the container's tar writes. */
  async function copyArchive(...entries: readonly Buffer[]) {
    await writeFile(join(inside, 'archive'), Buffer.concat([...entries, Buffer.alloc(1024)]))
    replaceInnerTar((request, signal) =>
      startInner({ ...request, command: shell('exec cat archive') }, signal),
    )
    return cp('web:evil', join(directory, 'out'))
  }

  /** All that lies in a directory, without a step through a link. */
  const findPaths = (name: string): readonly string[] =>
    spawnSync('find', [name], { cwd: directory }).stdout.toString().split('\n').filter(Boolean).toSorted()

  const tarLink = (path: string, target: string) =>
    formatTar([{ kind: 'link', path, target }]).subarray(0, 512)
  const tarFile = (path: string) =>
    formatTar([{ kind: 'file', path, mode: 0o644, data: Buffer.from('x') }]).subarray(0, 1024)
  const tarDirectory = (path: string) =>
    formatTar([{ kind: 'directory', path, mode: 0o755 }]).subarray(0, 512)

  it.each<[what: string, entries: readonly Buffer[]]>([
    ['a file behind a link', [tarDirectory('evil/'), tarLink('evil/a', '..'), tarFile('evil/a/b')]],
    [
      'a link behind a link',
      [tarDirectory('evil/'), tarLink('evil/a', '.'), tarLink('evil/a/a/b', '../..'), tarFile('evil/c')],
    ],
    ['a link that seems to lie deeper', [tarDirectory('evil/'), tarLink('evil/////././b', '../..')]],
    ['a link that takes the place of a directory', [tarDirectory('evil/d/'), tarLink('evil/d', '../..')]],
    ['a path that leads up', [tarDirectory('evil/'), tarFile('evil/../../stolen')]],
    ['a link at a path that leads up', [tarDirectory('evil/'), tarLink('evil/../../stolen', 'x')]],
    ['an absolute path', [tarDirectory('evil/'), tarFile(join(tmpdir(), 'podd-stolen'))]],
    ['another name', [tarDirectory('evil/'), tarFile('evil2')]],
  ])('of a hostile archive leaves nothing that leads out: %s', async (_what, entries) => {
    await copyArchive(...entries)
    expect((await readdir(directory)).filter((name) => name !== 'out')).toEqual(['container'])
    for (const path of findPaths('out'))
      expect(`${await realpath(join(directory, path))}/`).toMatch(new RegExp(`^${directory}/out/`, 'u'))
    await expect(stat(join(tmpdir(), 'podd-stolen'))).rejects.toThrow('ENOENT')
  })

  it.each<[what: string, entries: readonly Buffer[], message: string]>([
    ['is cut off', [tarFile('evil').subarray(0, 512)], 'what tar in the container wrote: '],
    ['is none', [Buffer.alloc(2048, 'x')], 'what tar in the container wrote: '],
  ])('says that the archive of a container %s', async (_what, entries, message) => {
    await writeFile(join(inside, 'archive'), Buffer.concat([...entries]))
    replaceInnerTar((request, signal) =>
      startInner({ ...request, command: shell('exec cat archive') }, signal),
    )
    const { exitCode, stderr } = await cp('web:evil', join(directory, 'out'))
    expect(stderr).toContain(message)
    expect(exitCode).toBe(1)
    expect(await readdir(directory)).toEqual(['container'])
  })

  it.each<[words: readonly string[], exitCode: number, message: string]>([
    [['one'], 2, 'cp needs a source and a destination'],
    [['one', 'two'], 2, 'one of source and destination must be [NAMESPACE/]POD:PATH'],
    [['web:a', 'web:b'], 2, 'one of source and destination must be [NAMESPACE/]POD:PATH'],
    [['/no-such-file', 'web:/tmp'], 1, '/no-such-file: ENOENT'],
    [['web:/no-such-file', '.'], 1, 'tar in the container: '],
    [['web:/', '.'], 2, 'cp needs a path with a name at its end'],
    [['gone:/etc/hosts', '.'], 1, 'pods "gone" not found'],
  ])('of %j says what is wrong', async (words, exitCode, message) => {
    const outcome = await cp(...words)
    expect(outcome.stderr).toContain(message)
    expect(outcome.exitCode).toBe(exitCode)
  })
})
