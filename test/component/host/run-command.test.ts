import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { commandChunks, commandOutput, runCommand } from '../../../src/host/run-command.ts'

let directory = ''

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-run-command-'))
})

afterEach(() => {
  const pid = readPid()
  if (pid !== undefined && isAlive(pid)) process.kill(pid, 'SIGKILL')
  rmSync(directory, { recursive: true, force: true })
})

/** That of the process which the program has left behind. */
function readPid(): number | undefined {
  try {
    return Number(readFileSync(join(directory, 'pid'), 'utf8').trim() || undefined) || undefined
  } catch {
    return undefined
  }
}

async function untilPid(): Promise<number> {
  await expect.poll(readPid, { interval: 5 }).toBeDefined()
  return readPid() ?? 0
}

/** A zombie is not. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/mu.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function untilDead(pid: number): Promise<void> {
  await expect.poll(() => isAlive(pid), { interval: 5 }).toBe(false)
}

/** It leaves a process that holds its output open for minutes. */
const script = (then: string): readonly string[] => [
  '-c',
  `sleep 600 & echo $! > ${join(directory, 'pid')}; ${then}`,
]

describe('a program that leaves a process with its output', () => {
  it('is given up at its timeout, and what it has started is killed', async () => {
    const result = await runCommand('/bin/sh', script('echo begun; wait'), { timeoutMs: 300 })
    expect(result).toMatchObject({ exitCode: null })
    await untilDead(await untilPid())
    await expect(commandOutput('/bin/sh', ['-c', 'sleep 600'], { timeoutMs: 100 })).rejects.toThrow(
      'did not end within 0.1 s',
    )
  })

  it('gives its result once it has ended itself, and the process lives on', async () => {
    const result = await runCommand('/bin/sh', script('echo done; exit 3'))
    expect(result).toEqual({ exitCode: 3, stdout: 'done\n', stderr: '' })
    expect(isAlive(await untilPid())).toBe(true)
  })

  it('is killed with that process when the call is cancelled', async () => {
    const abort = new AbortController()
    const run = runCommand('/bin/sh', script('wait'), { signal: abort.signal })
    const pid = await untilPid()
    abort.abort(new Error('nobody waits'))
    await expect(run).rejects.toThrow('was cancelled')
    await untilDead(pid)
  })

  it('ends its stream of output when it ends', async () => {
    const chunks: string[] = []
    const never = new AbortController().signal
    for await (const chunk of commandChunks('/bin/sh', script('echo done'), never)) chunks.push(String(chunk))
    expect(chunks.join('')).toBe('done\n')
  })

  it('is killed with that process when nobody reads its stream of output any more', async () => {
    const never = new AbortController().signal
    const chunks = commandChunks('/bin/sh', script('echo begun; wait'), never)
    expect(String((await chunks.next()).value)).toBe('begun\n')
    const pid = await untilPid()
    await chunks.return()
    await untilDead(pid)
  })
})

it('ends a program that writes without end', async () => {
  await expect(runCommand('/bin/cat', ['/dev/zero'])).rejects.toThrow('wrote more than')
})

it('tells of an input that failed, and of a program that is not there', async () => {
  const input = new PassThrough()
  const run = runCommand('/bin/cat', [], { inputFrom: input })
  input.write('some')
  input.destroy(new Error('the disk is gone'))
  await expect(run).rejects.toThrow('the disk is gone')
  await expect(runCommand('/no/such/program', [])).rejects.toThrow('cannot run /no/such/program')
})
