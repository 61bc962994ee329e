import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { NodeObject } from '../../src/api/cluster-objects.ts'
import type { EventListObject, PodListObject } from '../../src/api/resource.ts'
import { callCli, startCli } from '../support/cli-rig.ts'
import type { CliOutcome } from '../support/cli-rig.ts'
import { callApi } from '../support/call-api.ts'
import { CriOnlyProxy } from '../support/cri-only-proxy.ts'
import { freePort } from '../support/free-port.ts'
import { ContainerdRig } from '../support/containerd-rig.ts'
import { chooseContainerds } from '../support/containerd-versions.ts'
import type { ContainerdInstall } from '../support/containerd-versions.ts'
import { shellImageName } from '../support/oci-image.ts'
import { poddProgram } from '../support/podd-program.ts'
import { slowness } from '../support/slowness.ts'

const configHead = { apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration' }

/** A podd that runs its pods on a containerd that isn't its own. */
class ExternalRig {
  readonly containerd: ContainerdRig
  readonly #podd: ChildProcess
  readonly #dir: string
  /** The config of the pods' network. */
  #network: string | undefined

  /** @param endpoint of what stands before it */
  constructor(containerd: ContainerdRig, endpoint = containerd.endpoint) {
    this.containerd = containerd
    this.#dir = join(containerd.dir, 'podd')
    mkdirSync(join(this.#dir, 'pods'), { recursive: true })
    const log = openSync(join(this.#dir, 'podd.log'), 'a')
    writeFileSync(join(this.#dir, 'config.yaml'), JSON.stringify({ ...configHead, evictionHard: {} }))
    const flags = Object.entries({
      config: join(this.#dir, 'config.yaml'),
      'container-runtime-endpoint': endpoint,
      'root-dir': join(this.#dir, 'root'),
      'run-dir': join(this.#dir, 'run'),
      'pod-logs-dir': join(this.#dir, 'logs'),
      'container-logs-dir': join(this.#dir, 'links'),
      'pod-manifest-path': join(this.#dir, 'pods'),
      'cgroup-root': containerd.cgroupParent,
      'hostname-override': 'box',
    }).flatMap(([flag, value]) => [`--${flag}`, value])
    this.#podd = spawn(poddProgram(), ['run', ...flags], { stdio: ['ignore', log, log] })
    closeSync(log)
  }

  drop(name: string, spec: object = {}): void {
    const command = ['sh', '-c', 'trap "exit 0" TERM; sleep 1000000 & wait']
    const containers = [{ name: 'main', image: shellImageName, command, imagePullPolicy: 'Never' }]
    const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers, ...spec } }
    writeFileSync(join(this.#dir, 'new'), JSON.stringify(manifest))
    renameSync(join(this.#dir, 'new'), join(this.#dir, `pods/${name}.yaml`))
  }

  removeManifest(name: string): void {
    rmSync(join(this.#dir, `pods/${name}.yaml`))
  }

  /** Takes the pods' network away from containerd, or gives it back. */
  setNetwork(isThere: boolean): void {
    const path = join(this.containerd.dir, 'cni-conf/10-podd-test.conflist')
    this.#network ??= readFileSync(path, 'utf8')
    if (isThere) writeFileSync(path, this.#network)
    else rmSync(path)
  }

  get socket(): string {
    return join(this.#dir, 'run/podd.sock')
  }

  async cli(args: readonly string[], stdin = ''): Promise<CliOutcome> {
    const [verb = '', ...rest] = args
    return callCli([verb, '--socket', this.socket, ...rest], { stdin })
  }

  async get<T>(path: string): Promise<T> {
    const { stdout } = await this.cli(['get', '--raw', path])
    return JSON.parse(stdout) as T
  }

  async untilReady(name: string): Promise<void> {
    await this.until(`${name} to be ready`, async () => {
      const { items } = await this.get<PodListObject>('/api/v1/pods')
      const found = items.find(({ metadata }) => metadata.name === name)
      return found?.status.containerStatuses?.every(({ ready }) => ready) === true
    })
  }

  async phaseOf(name: string): Promise<string | undefined> {
    const { items } = await this.get<PodListObject>('/api/v1/pods')
    return items.find(({ metadata }) => metadata.name === name)?.status.phase
  }

  async eventsOf(name: string): Promise<readonly string[]> {
    const { items } = await this.get<EventListObject>('/api/v1/events')
    return items.filter(({ involvedObject }) => involvedObject.name === name).map(({ reason }) => reason)
  }

  async nodeReady(): Promise<NodeObject['status']['conditions'][number] | undefined> {
    const { status } = await this.get<NodeObject>('/api/v1/nodes/box')
    return status.conditions.find(({ type }) => type === 'Ready')
  }

  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const giveUpAtMs = performance.now() + 60_000 * slowness
    while (!(await holds().catch(() => false))) {
      if (performance.now() > giveUpAtMs || this.#podd.exitCode !== null)
        throw new Error(`waited in vain for ${what}\n${readFileSync(join(this.#dir, 'podd.log'), 'utf8')}`)
      await sleep(200)
    }
  }

  async remove(): Promise<void> {
    const ended = new Promise((resolve) => this.#podd.once('exit', resolve))
    this.#podd.kill('SIGTERM')
    await ended
    await this.containerd.remove()
  }
}

const choice = chooseContainerds()
const installs: readonly ContainerdInstall[] = choice.kind === 'use' ? choice.installs : []

describe.each(installs)('a containerd that is not podd’s own, $version', (install) => {
  let rig: ExternalRig
  beforeAll(async () => {
    rig = new ExternalRig(await ContainerdRig.start({ install }))
  })
  afterAll(async () => rig.remove())

  it(
    'has pods wait for a network, told what to do, and gives it to them; removed ones end without it',
    { tags: ['nightly'] },
    async () => {
      rig.setNetwork(false)
      rig.drop('host', { hostNetwork: true })
      rig.drop('web')
      await rig.until('the pod on the host’s network', async () => (await rig.phaseOf('host')) === 'Running')
      await rig.until('its word', async () => (await rig.eventsOf('web')).includes('NetworkNotReady'))
      const message = expect.stringContaining('Put a CNI network config into ') as string
      await rig.until('the node', async () => (await rig.nodeReady())?.status === 'False')
      expect(await rig.nodeReady()).toMatchObject({ reason: 'KubeletNotReady', message })
      expect(await rig.eventsOf('web')).not.toContain('FailedCreatePodSandBox')
      rig.removeManifest('web')
      await rig.until('the end of the pod', async () => (await rig.phaseOf('web')) === undefined)

      rig.setNetwork(true)
      rig.drop('web')
      await rig.until('the pod', async () => (await rig.phaseOf('web')) === 'Running')
      await rig.until('the node', async () => (await rig.nodeReady())?.status === 'True')

      rig.setNetwork(false)
      await rig.until('the node', async () => (await rig.nodeReady())?.status === 'False')
      rig.removeManifest('web')
      await rig.until('the end of the pod', async () => (await rig.phaseOf('web')) === undefined)
      rig.setNetwork(true)
      rig.removeManifest('host')
      await rig.until('the end of the other', async () => (await rig.phaseOf('host')) === undefined)
    },
  )
})

describe.each(installs)('a runtime that serves CRI alone, on containerd $version', (install) => {
  let rig: ExternalRig
  let proxy: CriOnlyProxy
  let shared: string
  beforeAll(async () => {
    const containerd = await ContainerdRig.start({ install })
    shared = join(containerd.dir, 'shared')
    mkdirSync(shared)
    proxy = await CriOnlyProxy.start(join(containerd.dir, 'cri-only.sock'), containerd.socketPath)
    rig = new ExternalRig(containerd, proxy.endpoint)
    const write = (text: string): object => ({
      exec: { command: ['sh', '-c', `echo ${text} >> /shared/hooks`] },
    })
    const script = [
      'trap "exit 0" TERM',
      'while :; do nc -l -p 8081 -e sh -c "read -r line; echo \\${#line}"; done &',
      'while read -r word; do echo "got $word"; done',
      'touch /tmp/over',
      'sleep 1000000 & wait',
    ]
    const main = {
      name: 'main',
      image: shellImageName,
      imagePullPolicy: 'Never',
      command: ['sh', '-c', script.join('\n')],
      stdin: true,
      stdinOnce: true,
      lifecycle: { postStart: write('begun'), preStop: write('ends') },
      readinessProbe: { exec: { command: ['cat', '/etc/passwd'] }, periodSeconds: 1 },
      volumeMounts: [{ name: 'shared', mountPath: '/shared' }],
    }
    rig.drop('web', {
      containers: [main],
      volumes: [{ name: 'shared', hostPath: { path: shared } }],
    })
    await rig.untilReady('web')
  })
  afterAll(async () => {
    await rig.remove()
    await proxy.close()
  })

  it('runs exec hooks and exec probes by ExecSync', async () => {
    expect(readFileSync(join(shared, 'hooks'), 'utf8')).toBe('begun\n')
    expect(proxy.refused.join(' ')).toContain('/containerd.services.containers.v1.Containers/')
    expect(proxy.served.has('/runtime.v1.RuntimeService/ExecSync')).toBe(true)
  })

  it('gives both streams of a command, its exit code, and the end of its input', async () => {
    const exec = (script: string, stdin?: string): Promise<CliOutcome> =>
      rig.cli(['exec', 'web', ...(stdin === undefined ? [] : ['-i']), '--', 'sh', '-c', script], stdin)
    expect(await exec('echo out; echo err >&2; exit 7')).toMatchObject({ exitCode: 7, stdout: 'out\n' })
    expect((await exec('echo err >&2')).stderr).toContain('err\n')
    expect(await exec('wc -c', 'x'.repeat(1_000_000))).toMatchObject({ exitCode: 0, stdout: '1000000\n' })
    const large = await exec('head -c 3000000 /dev/zero | tr "\\0" x')
    expect([large.exitCode, large.stdout.length]).toEqual([0, 3_000_000])
    expect(await rig.cli(['exec', 'web', '--', 'no-such-program'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('no-such-program') as string,
    })
    expect(proxy.served.has('/runtime.v1.RuntimeService/Exec')).toBe(true)
  })

  it('gives a command a terminal of the size of its caller’s', async () => {
    const words = `${poddProgram()} exec --socket ${rig.socket} -it web -- sh`
    const child = spawn('script', [
      '--quiet',
      '--return',
      '--command',
      `stty rows 31 cols 97; ${words}`,
      '/dev/null',
    ])
    let shown = ''
    child.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()))
    const ended = new Promise((resolve) => child.once('close', resolve))
    // The size may arrive after what is typed first.
    await rig.until('the size', async () => {
      if (/^31 97\r$/mu.test(shown)) return true
      child.stdin.write('stty size\n')
      return false
    })
    child.stdin.write('exit 5\n')
    expect(await ended).toBe(5)
  })

  it('attaches to a container, and passes the end of the input on', async () => {
    using call = startCli(['attach', '--socket', rig.socket, '-i', 'web'], { stdin: 'one\ntwo\n' })
    await rig.until('the output', async () => call.stdout().includes('got one\ngot two\n'))
    await rig.until('the end of the input', async () => {
      const { exitCode } = await rig.cli(['exec', 'web', '--', 'test', '-e', '/tmp/over'])
      return exitCode === 0
    })
    call.interrupt()
    expect(await call.outcome).toMatchObject({ stderr: '' })
  })

  it('forwards to a port of a pod, whose network namespace it does not tell, and says what it cannot reach', async () => {
    const [open, closed] = [await freePort(), await freePort()]
    const argv = ['port-forward', '--socket', rig.socket, 'web', `${open}:8081`, `${closed}:8082`]
    using call = startCli(argv)
    await rig.until('the ports', async () => call.stdout().includes(`127.0.0.1:${closed} -> 8082`))
    expect(await talk(open, `${'x'.repeat(100_000)}\n`)).toBe('100000\n')
    expect(await talk(closed, 'hello\n')).toBe('')
    await rig.until('the reason', async () => /8082: .*connection refused/u.test(call.stderr()))
    call.interrupt()
    await call.outcome
    expect(proxy.served.has('/runtime.v1.RuntimeService/PortForward')).toBe(true)
  })

  it('is asked for a checkpoint, and its refusal is told', async () => {
    const checkpoint = (path: string) => callApi(rig.socket, 'POST', `/checkpoint/${path}`)
    expect(await checkpoint('default/absent/main')).toMatchObject({ code: 404 })
    expect(await checkpoint('default/web/absent')).toMatchObject({ code: 404 })
    const answer = await checkpoint('default/web/main?timeout=5')
    const [file = ''] = Array.isArray(answer.body['items']) ? answer.body['items'] : []
    const refusal = {
      code: 500,
      message: expect.stringMatching(/^checkpointing of default\/web\/main failed \(/u),
    }
    // Most hosts have no criu.
    expect(existsSync(String(file)) ? refusal : answer.body).toMatchObject(refusal)
  })

  it('tells what its images use in the summary', async () => {
    const used = async (): Promise<number> => {
      const { node } = await rig.get<{ node: { runtime: { imageFs: { usedBytes: number } } } }>(
        '/stats/summary',
      )
      return node.runtime.imageFs.usedBytes
    }
    // containerd adds up from time to time.
    await rig.until('the images', async () => (await used()) > 1_000_000)
    expect(await used()).toBeLessThan(50_000_000)
  })

  it('runs a preStop hook by ExecSync before a pod ends', async () => {
    rig.removeManifest('web')
    await rig.until('the end of the pod', async () => (await rig.phaseOf('web')) === undefined)
    expect(readFileSync(join(shared, 'hooks'), 'utf8')).toBe('begun\nends\n')
  })
})

/** What a server at a local port answers to this until it ends the connection. */
function talk(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    let answer = ''
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
    socket.once('error', reject)
    socket.once('close', () => resolve(answer))
    socket.write(text)
  })
}
