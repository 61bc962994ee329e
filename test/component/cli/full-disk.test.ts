import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { poddProgram } from '../../support/podd-program.ts'
import { slowness } from '../../support/slowness.ts'

const program = poddProgram()
let directory: string
const children: ChildProcess[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-full-'))
})
afterEach(async () => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL')
  await rm(directory, { recursive: true })
})

interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Started {
  readonly child: ChildProcess
  readonly outcome: Promise<Outcome>
}

/** Starts podd; every write to `full` fails as on a full disk. */
async function start(
  full: 'stdout' | 'stderr' | undefined,
  args: readonly string[],
  nodeOptions = '',
): Promise<Started> {
  const device = await open('/dev/full', 'w')
  const place = (name: 'stdout' | 'stderr'): 'pipe' | number => (name === full ? device.fd : 'pipe')
  const stdio = ['ignore', place('stdout'), place('stderr')] as const
  const env = { ...process.env, NODE_OPTIONS: nodeOptions }
  const child = spawn(program, args, { stdio: [...stdio], env })
  children.push(child)
  await device.close()
  const written = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk) => (written.stdout += String(chunk)))
  child.stderr?.on('data', (chunk) => (written.stderr += String(chunk)))
  return {
    child,
    outcome: once(child, 'close').then(() => ({ code: child.exitCode, ...written })),
  }
}

describe('a daemon whose log can’t be written', () => {
  let flags: readonly string[]
  beforeEach(async () => {
    const config = join(directory, 'config.yaml')
    await writeFile(config, 'apiVersion: podd.dev/v1\nkind: PoddConfiguration\nfailSwapOn: true\n')
    await mkdir(join(directory, 'pods'))
    flags = [
      `--config=${config}`,
      `--pod-manifest-path=${directory}/pods`,
      `--root-dir=${directory}/root`,
      `--run-dir=${directory}/run`,
      `--pod-logs-dir=${directory}/logs`,
      `--container-logs-dir=${directory}/links`,
      `--container-runtime-endpoint=unix://${directory}/nobody.sock`,
    ]
  })
  const answers = async (): Promise<boolean> => {
    const { outcome } = await start(undefined, ['get', 'pods', '--socket', join(directory, 'run/podd.sock')])
    return (await outcome).code === 0
  }

  it('runs, and ends when it is told to', async () => {
    const { child, outcome } = await start('stderr', ['run', ...flags])
    await expect.poll(answers, { timeout: 60_000 * slowness }).toBe(true)
    child.kill('SIGTERM')
    expect(await outcome).toMatchObject({ code: 0 })
  })

  it.each([
    ['stderr', ''],
    [undefined, 'no handlers here'],
  ] as const)('ends by itself where its start fails (full: %s)', async (full, told) => {
    // By then it holds its locks and listens.
    const script = `process.once = () => { throw new Error('no handlers here') }`
    const { outcome } = await start(full, ['run', ...flags], `--import="data:text/javascript,${script}"`)
    const { code, stderr } = await outcome
    expect(code).toBe(1)
    expect(stderr).toContain(told)
  })
})

describe('a command whose output can’t be written', () => {
  it.each([['version --client'], ['--help'], ['run --help']])('fails and says why: %s', async (line) => {
    const { outcome } = await start('stdout', line.split(' '))
    expect(await outcome).toEqual({
      code: 1,
      stdout: '',
      stderr: 'podd: write error: no space left on device\n',
    })
  })

  it('ends as ever where it is its messages that can’t be', async () => {
    expect((await (await start('stderr', ['version', '--client'])).outcome).code).toBe(0)
    expect((await (await start('stderr', ['nonsense'])).outcome).code).toBe(2)
  })
})
