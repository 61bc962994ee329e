import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli } from '../../support/cli-rig.ts'
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
  rig.reach = {
    ...rig.reach,
    startCommand: async ({ command: [program = '', ...words] }) => {
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
    },
  }
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

const cp = (...words: readonly string[]) => callCli(['cp', '--socket', rig.socketPath, ...words])

describe('podd cp', () => {
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
