import { mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { ContainerdExec } from '../../src/runtime/containerd/exec.ts'
import type { ContainerCommand } from '../../src/runtime/containerd/exec.ts'
import type { ExecProcess } from '../../src/runtime/containerd/exec-process.ts'
import { CriClient } from '../../src/runtime/cri-client.ts'
import { ContainerdRig, waitFor } from '../support/containerd-rig.ts'
import { chooseContainerds } from '../support/containerd-versions.ts'
import type { ContainerdInstall } from '../support/containerd-versions.ts'
import { shellImageName } from '../support/oci-image.ts'
import { slowness } from '../support/slowness.ts'

const choice = chooseContainerds()
const none: ContainerdInstall = { version: 'none', release: 'none', binDir: '', cniBinDir: '' }
const installs = choice.kind === 'use' ? choice.installs : [none]

/** A containerd with one container that runs `sleep` as nobody, and podd's exec beside it. */
class ExecRig {
  readonly containerd: ContainerdRig
  readonly client: CriClient
  readonly exec: ContainerdExec
  containerId = ''

  private constructor(containerd: ContainerdRig) {
    this.containerd = containerd
    this.client = new CriClient({ endpoint: containerd.endpoint, clock: systemClock })
    this.exec = this.another()
  }

  /** The directories of commands that are not cleared away yet. */
  left(): readonly string[] {
    return readdirSync(this.directory)
  }

  get directory(): string {
    return join(this.containerd.dir, 'exec')
  }

  static async start(install: ContainerdInstall): Promise<ExecRig> {
    const rig = new ExecRig(await ContainerdRig.start({ install }))
    rig.containerId = await rig.run()
    return rig
  }

  /** As a restarted podd has it. */
  another(client = this.client): ContainerdExec {
    return new ContainerdExec(client.connection, this.directory, systemClock)
  }

  async run(): Promise<string> {
    const { runtime } = this.client
    const logDirectory = join(this.containerd.dir, 'pod-logs')
    mkdirSync(logDirectory, { recursive: true })
    const name = `exec-${Math.floor(performance.now())}`
    const sandboxConfig = {
      metadata: { name, namespace: 'test', uid: name, attempt: 0 },
      logDirectory,
      linux: {
        cgroupParent: this.containerd.cgroupParent,
        securityContext: { namespaceOptions: { network: 'NODE' as const } },
      },
    }
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig })
    const { containerId } = await runtime.createContainer({
      podSandboxId,
      sandboxConfig,
      config: {
        metadata: { name: 'main', attempt: 0 },
        image: { image: shellImageName },
        command: ['sleep', '1000000'],
        workingDir: '/var/tmp',
        envs: [{ key: 'COLOUR', value: Buffer.from('blue') }],
        logPath: 'main.log',
        linux: {
          securityContext: {
            runAsUser: { value: 65_534 },
            runAsGroup: { value: 65_534 },
            supplementalGroups: [4242],
            noNewPrivs: true,
            capabilities: { dropCapabilities: ['ALL'] },
          },
        },
      },
    })
    await runtime.startContainer({ containerId })
    return containerId
  }

  start(command: readonly string[], more: Partial<ContainerCommand> = {}): Promise<ExecProcess> {
    return this.exec.start({
      containerId: this.containerId,
      command,
      stdin: false,
      terminal: false,
      ...more,
    })
  }

  async shell(script: string, input?: string): Promise<Outcome> {
    const process = await this.start(['sh', '-c', script], { stdin: input !== undefined })
    const output = collect(process)
    if (input !== undefined) await process.write(Buffer.from(input))
    if (input !== undefined) await process.closeStdin()
    return output
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close()
    await this.containerd.remove()
  }
}

interface Outcome {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

async function collect(process: ExecProcess): Promise<Outcome> {
  const [exitCode, stdout, stderr] = await Promise.all([
    process.ended,
    textOf(process.stdout),
    process.stderr === undefined ? '' : textOf(process.stderr),
  ])
  return { exitCode, stdout, stderr }
}

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of stream) chunks.push(chunk as Buffer)
  } catch {
    // What was left open when the command had ended was closed.
  }
  return Buffer.concat(chunks).toString('utf8')
}

describe.skipIf(choice.kind === 'skip').each(installs)('exec on containerd $version', (install) => {
  let rig: ExecRig
  beforeAll(async () => {
    rig = await ExecRig.start(install)
  })
  afterAll(async () => rig?.[Symbol.asyncDispose]())

  it('gives both streams and the exit code', async () => {
    expect(await rig.shell('echo out; echo err >&2; exit 7')).toEqual({
      exitCode: 7,
      stdout: 'out\n',
      stderr: 'err\n',
    })
  })

  it("runs as the container's own process does", async () => {
    const { stdout } = await rig.shell(
      'id -u; id -G; pwd; echo $COLOUR; grep -E "CapEff|NoNewPrivs" /proc/self/status; cat /proc/self/oom_score_adj',
    )
    const own = readFileSync(`/proc/${await mainPid(rig)}/status`, 'utf8')
    const line = (name: string): string => new RegExp(`^${name}:.*$`, 'mu').exec(own)?.[0] ?? ''
    expect(stdout.split('\n').slice(0, 6)).toEqual([
      '65534',
      '65534 4242',
      '/var/tmp',
      'blue',
      line('CapEff'),
      line('NoNewPrivs'),
    ])
  })

  it('ends standard input', async () => {
    expect(await rig.shell('wc -c', 'twelve bytes')).toMatchObject({ exitCode: 0, stdout: '12\n' })
    expect(await rig.shell('cat', '')).toMatchObject({ exitCode: 0, stdout: '' })
  })

  it('carries more than any pipe holds, both ways at once', async () => {
    const process = await rig.start(['cat'], { stdin: true })
    const output = collect(process)
    const chunk = Buffer.alloc(100_000, 'abcdefghij')
    for (let count = 0; count < 50; count += 1) await process.write(chunk)
    await process.closeStdin()
    const { stdout, exitCode } = await output
    expect(exitCode).toBe(0)
    expect(stdout).toBe(chunk.toString().repeat(50))
  })

  it('waits with what it takes in until the process has read it', async () => {
    const process = await rig.start(['sleep', '1000'], { stdin: true })
    const output = collect(process)
    let written = 0
    void (async () => {
      for (;;) {
        await process.write(Buffer.alloc(65_536))
        written += 1
        if (written > 1000) return
      }
    })()
    await systemClock.sleep(300)
    expect(written).toBeLessThan(10)
    await process.hangUp()
    expect(await output).toMatchObject({ exitCode: 143 })
  })

  it('gives a terminal of the size that was asked for, and of each later one', async () => {
    const process = await rig.start(
      [
        'sh',
        '-c',
        'stty size; trap "stty size; exit 3" WINCH; tty; echo $TERM; while :; do sleep 0.05; done',
      ],
      { stdin: true, terminal: true, size: { columns: 111, rows: 22 } },
    )
    let seen = ''
    process.stdout.on('data', (chunk: Buffer) => (seen += chunk.toString()))
    await waitFor('the terminal', () => seen.includes('xterm'))
    await process.resize({ columns: 99, rows: 33 })
    expect(await process.ended).toBe(3)
    expect(process.stderr).toBeUndefined()
    expect(seen.replaceAll('\r', '')).toMatch(/^22 111\n\/dev\/pts\/\d+\nxterm\n33 99\n$/u)
  })

  it('takes what is typed on a terminal, control characters too', async () => {
    const process = await rig.start(['sh'], { stdin: true, terminal: true })
    const output = collect(process)
    await process.write(Buffer.from('sleep 666\n'))
    await waitFor('what was typed', async () => (await rig.shell('ps')).stdout.includes('sleep 666'))
    await process.write(Buffer.from('\x03'))
    await process.write(Buffer.from('echo sum $((40 + 2)); exit 5\n'))
    const { stdout, exitCode } = await output
    expect(exitCode).toBe(5)
    expect(stdout).toContain('sum 42')
  })

  it('hangs up a terminal', async () => {
    const process = await rig.start(['sh'], { stdin: true, terminal: true })
    const output = collect(process)
    await process.write(Buffer.from('sleep 777\n'))
    await waitFor('what was typed', async () => (await rig.shell('ps')).stdout.includes('sleep 777'))
    await process.hangUp()
    expect((await output).exitCode).toBeGreaterThan(0)
    await waitFor('the end of what it ran', async () => !(await rig.shell('ps')).stdout.includes('sleep 777'))
  })

  it('ends a process by force that will not end', async () => {
    const process = await rig.start(['sh', '-c', 'trap "" TERM; echo ready; while :; do sleep 1; done'])
    let stdout = ''
    process.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    process.stderr?.resume()
    await waitFor('its trap', () => stdout.includes('ready'))
    await process.hangUp()
    expect(await process.ended).toBe(137)
    expect(stdout).toBe('ready\n')
  })

  it('does not wait for what a command leaves behind', async () => {
    const beganMs = performance.now()
    const { exitCode, stdout } = await rig.shell('sleep 888 & echo begun')
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'begun\n' })
    expect(performance.now() - beganMs).toBeLessThan(6000 * slowness)
    await rig.shell('pkill -f "sleep 888"')
  })

  it('says why a command does not run, and leaves nothing of it', async () => {
    await expect(rig.start(['no-such-program'])).rejects.toMatchObject({
      code: 'EXEC_FAILED',
      message: expect.stringContaining('no-such-program'),
    })
    await expect(rig.start(['true'], { containerId: 'nobody' })).rejects.toMatchObject({
      code: 'RUNTIME_NOT_FOUND',
    })
    await waitFor('the end of all pipes', () => rig.left().length === 0)
  })

  it('runs many at a time', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, index) => rig.shell(`echo ${index}; exit ${index}`)),
    )
    expect(outcomes.map(({ exitCode }) => exitCode)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    await waitFor('the end of all pipes', () => rig.left().length === 0)
  })

  it('clears what a podd left behind that was killed', async () => {
    const process = await rig.start(['sh', '-c', 'exec sleep 999'])
    process.stdout.on('data', () => {})
    process.stderr?.on('data', () => {})
    await rig.another().sweep()
    expect(await process.ended).toBe(137)
    expect((await rig.shell('ps')).stdout).not.toContain('sleep 999')
    await waitFor('the end of all pipes', () => rig.left().length === 0)
  })

  it('goes on while containerd is restarted', async () => {
    const process = await rig.start(['sh', '-c', 'echo first; read word; echo $word; exit 9'], {
      stdin: true,
    })
    const output = collect(process)
    await rig.containerd.stopContainerd('SIGKILL')
    await rig.containerd.startContainerd()
    await process.write(Buffer.from('second\n'))
    expect(await output).toMatchObject({ exitCode: 9, stdout: 'first\nsecond\n' })
  })

  it('is left to the next podd by one that ends', async () => {
    const client = new CriClient({ endpoint: rig.containerd.endpoint, clock: systemClock })
    const ending = rig.another(client)
    const process = await ending.start({
      containerId: rig.containerId,
      command: ['sleep', '1001'],
      stdin: false,
      terminal: false,
    })
    ending.close()
    client.close()
    await expect(process.ended).rejects.toMatchObject({ message: 'podd is stopping' })
    await process.removed
    expect(rig.left()).toHaveLength(1)
    await rig.another().sweep()
    expect((await rig.shell('ps')).stdout).not.toContain('sleep 1001')
    await waitFor('the end of all pipes', () => rig.left().length === 0)
  })

  it('ends with its container', async () => {
    const containerId = await rig.run()
    const process = await rig.start(['sleep', '1000'], { containerId })
    const output = collect(process)
    await rig.client.runtime.stopContainer({ containerId, timeout: 0 })
    expect(await output).toMatchObject({ exitCode: 137 })
    await waitFor('the end of all pipes', () => rig.left().length === 0)
  })
})

async function mainPid(rig: ExecRig): Promise<number> {
  const { info } = await rig.client.runtime.containerStatus({ containerId: rig.containerId, verbose: true })
  const parsed: unknown = JSON.parse(info['info'] ?? '{}')
  return (parsed as { pid: number }).pid
}
