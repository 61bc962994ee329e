import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { PoddError } from '../../../src/base/errors.ts'
import type { PodReach } from '../../../src/server/requests/pod-reach.ts'
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

/** The PATH of the container, whatever this host's tar is. */
const innerPath = process.env['PATH']

const startInner: PodReach['startCommand'] = async ({ command: [program = '', ...words] }) => {
  const child = spawn(program, words, { cwd: inside, env: { PATH: innerPath } })
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

/** What this host's tar is until the test's end; its `started` file says that it ran. */
async function replaceTar(script: string): Promise<void> {
  const bin = join(directory, 'bin')
  await mkdir(bin)
  await writeFile(join(bin, 'tar'), `#!/bin/sh\n: > ${join(bin, 'started')}\n${script}\n`, { mode: 0o755 })
  vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`)
}

/** Starts this in place of the container's tar. */
function replaceInnerTar(start: PodReach['startCommand']): void {
  rig.reach = {
    ...rig.reach,
    startCommand: (request) => (request.command[0] === 'tar' ? start(request) : startInner(request)),
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

  it.each(['in', 'out'])('copying %s leaves no tar behind when the connection does not open', async (way) => {
    await using slow = await delayTar(async (client) => client.destroy())
    await replaceTar('exec sleep 600')
    const words = way === 'in' ? [inside, 'web:copy'] : ['web:/etc/hosts', join(directory, 'out')]
    expect((await callCli(['cp', '--socket', slow.socketPath, ...words])).exitCode).toBe(1)
    expect(await readdir(join(directory, 'bin'))).toEqual(['tar'])
    expect((await readdir(directory)).toSorted()).toEqual(['bin', 'container'])
  })

  it.each(['in', 'out'])('ends the tar of this host when copying %s is interrupted', async (way) => {
    replaceInnerTar((request) => startInner({ ...request, command: shell('exec sleep 600') }))
    await replaceTar(`echo $$ > ${join(directory, 'bin', 'pid')}; exec sleep 600`)
    const words = way === 'in' ? [inside, 'web:copy'] : ['web:/etc/hosts', join(directory, 'out')]
    const call = startCli(['cp', '--socket', rig.socketPath, ...words])
    const pid = await vi.waitFor(async () => {
      const text = await readFile(join(directory, 'bin', 'pid'), 'utf8')
      expect(text).toMatch(/^\d+\n$/u)
      return Number(text)
    })
    call.interrupt()
    expect((await call.outcome).exitCode).toBe(130)
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
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
      (request) => startInner({ ...request, command: shell('exit 127') }),
      'exit code 127',
      true,
    ],
    [
      'tar is not executable',
      (request) => startInner({ ...request, command: shell('exit 126') }),
      'exit code 126',
      true,
    ],
    [
      'tar fails',
      (request) => startInner({ ...request, command: shell('echo no space >&2; exit 1') }),
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

  it('says that this host has no tar', async () => {
    replaceInnerTar((request) => startInner({ ...request, command: shell('cat; exit 1') }))
    vi.stubEnv('PATH', inside)
    const { exitCode, stderr } = await cp(inside, 'web:copy')
    expect(stderr).toContain('tar on this host: there is none')
    expect(exitCode).toBe(1)
  })

  it.each([10, 3_000_000])('says what this host cannot read, with %d bytes before it', async (sizeBytes) => {
    await replaceTar('/bin/tar "$@"; echo unreadable >&2; exit 2')
    const file = join(directory, 'file')
    await writeFile(file, 'x'.repeat(sizeBytes))
    const { exitCode, stderr } = await cp(file, 'web:copy')
    expect(stderr).toContain('tar on this host: unreadable')
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

  it('writes nothing beside its destination, whatever the archive holds', async () => {
    // A container's tar that answers with another file's name, and a link out of the directory.
    await writeFile(
      join(inside, 'tar'),
      `#!/bin/sh\ncd ${inside} && mkdir -p evil && ln -sfn ${directory} evil/out && echo x > stolen && exec /bin/tar -cPf - evil ../container/stolen\n`,
      { mode: 0o755 },
    )
    const before = rig.reach
    rig.reach = {
      ...rig.reach,
      startCommand: (request) =>
        before.startCommand({ ...request, command: [join(inside, 'tar'), ...request.command.slice(1)] }),
    }
    const target = join(directory, 'target')
    await mkdir(target)
    await cp('web:/evil', target)
    expect((await readdir(directory)).toSorted()).toEqual(['container', 'target'])
    for (const name of await readdir(target)) expect(name).toBe('evil')
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
