import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { NodeObject } from '../../src/api/cluster-objects.ts'
import type { EventListObject, PodListObject } from '../../src/api/resource.ts'
import { callCli } from '../support/cli-rig.ts'
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

  constructor(containerd: ContainerdRig) {
    this.containerd = containerd
    this.#dir = join(containerd.dir, 'podd')
    mkdirSync(join(this.#dir, 'pods'), { recursive: true })
    const log = openSync(join(this.#dir, 'podd.log'), 'a')
    writeFileSync(join(this.#dir, 'config.yaml'), JSON.stringify({ ...configHead, evictionHard: {} }))
    const flags = Object.entries({
      config: join(this.#dir, 'config.yaml'),
      'container-runtime-endpoint': containerd.endpoint,
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

  async get<T>(path: string): Promise<T> {
    const socket = join(this.#dir, 'run/podd.sock')
    const { stdout } = await callCli(['--socket', socket, 'get', '--raw', path])
    return JSON.parse(stdout) as T
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

  it('has pods wait for a network, told what to do, and gives it to them; removed ones end without it', async () => {
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
  })
})
