import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { PoddError } from '../../../src/base/errors.ts'
import { RuntimeStats } from '../../../src/control/runtime/runtime-stats.ts'
import { dialPod, Reach } from '../../../src/control/serving/reach.ts'
import type * as cri from '../../../src/cri-types/cri-v1.ts'
import { NamespaceUnreachable } from '../../../src/host/netns-dialer.ts'
import { CriClient } from '../../../src/runtime/cri-client.ts'
import { FakeRuntimeServer } from '../../support/fake-runtime-server.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { deadSandbox, observedPod, observedSandbox } from '../../support/pod-builders.ts'

describe('a runtime that is no containerd', () => {
  let directory: string
  let server: FakeRuntimeServer
  let client: CriClient
  let reach: Reach
  let fake: FakeRuntime
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'podd-reach-'))
    fake = new FakeRuntime({ clock: new ManualClock(), images: ['web:1'] })
    server = await FakeRuntimeServer.start(fake, {
      socketPath: join(directory, 'cri.sock'),
      nativeEvents: false,
    })
    client = new CriClient({ endpoint: server.endpoint, clock: systemClock })
    const { runtime, connection } = client
    const pods = { findPod: () => undefined, runtimeProblem: undefined }
    const places = { rootDir: directory, runDir: directory }
    reach = new Reach({ runtime, connection, stats: new RuntimeStats(runtime) }, pods, places, systemClock)
  })
  afterEach(async () => {
    reach.close()
    client.close()
    server.stop()
    rmSync(directory, { recursive: true, force: true })
  })

  it('is asked for a command by CRI', async () => {
    const pod = await startOne(client)
    const command = { containerId: pod.containerId, command: ['true'], stdin: false, terminal: false }
    // Nobody listens at the address that it gives.
    await expect(reach.startCommand(command, stays)).rejects.toMatchObject({ code: 'EXEC_FAILED' })
    expect(fake.calls('Exec').map(({ request }) => request)).toEqual([
      { containerId: pod.containerId, cmd: ['true'], tty: false, stdin: false, stdout: true, stderr: true },
    ])
    await expect(reach.startCommand({ ...command, containerId: 'id' }, stays)).rejects.toMatchObject({
      code: 'RUNTIME_NOT_FOUND',
    })
    await expect(reach.sweep()).resolves.toBeUndefined()
  })

  it('is asked to write a container into a file that only root can reach', async () => {
    const { containerId } = await startOne(client)
    const target = {
      pod: { namespace: 'shop', name: 'web' },
      container: 'main',
      containerId,
      timeoutSeconds: 3,
    }
    await expect(reach.checkpoint(target)).rejects.toThrow('CRIU binary not found or too old')
    const [call] = fake.calls('CheckpointContainer')
    expect(call?.request).toMatchObject({ containerId, timeout: 3 })
    const named = new RegExp(`^${directory}/checkpoints/checkpoint-web_shop-main-[0-9T:-]+Z\\.tar$`, 'u')
    expect(call?.request.location).toMatch(named)
    expect(statSync(join(directory, 'checkpoints')).mode & 0o777).toBe(0o700)
  })

  it('has no pod that is gone', async () => {
    await expect(reach.restart('uid-gone', undefined)).rejects.toThrow('the pod was removed in the meantime')
  })
})

/** Of a client that stays. */
const stays = new AbortController().signal

/** A pod with one container that runs. */
async function startOne({ runtime }: CriClient): Promise<{ readonly containerId: string }> {
  const metadata = { name: 'web', namespace: 'shop', uid: 'u1', attempt: 0 }
  const { podSandboxId } = await runtime.runPodSandbox({ config: { metadata } })
  const { containerId } = await runtime.createContainer({
    podSandboxId,
    config: { metadata: { name: 'main', attempt: 0 }, image: { image: 'web:1' } },
    sandboxConfig: { metadata },
  })
  await runtime.startContainer({ containerId })
  return { containerId }
}

describe('where a port of a pod is dialled', () => {
  const dialled: string[] = []
  let refusal: PoddError
  const status = (info: string) => async () =>
    ({ status: null, info: { info } }) as unknown as cri.PodSandboxStatusResponse
  const dial = (pod: Parameters<typeof dialPod>[0], port: number, info = '{"pid":4242}') =>
    dialPod(pod, port, {
      podSandboxStatus: status(info),
      dialers: {
        dial: (path, dialledPort) => {
          dialled.push(`${path} ${dialledPort}`)
          return Promise.reject(refusal)
        },
      },
      forward: (sandboxId) => {
        dialled.push(`${sandboxId} by the runtime`)
        return Promise.reject(new PoddError('PORT_FORWARD_FAILED', 'nobody'))
      },
    })
  beforeEach(() => {
    dialled.length = 0
    refusal = new PoddError('PORT_REFUSED', 'nobody')
  })

  it('is the network namespace of the process that holds the sandbox', async () => {
    const pod = observedPod({ sandboxes: [observedSandbox({ attempt: 1 }), deadSandbox] })
    await expect(dial(pod, 80)).rejects.toMatchObject({ code: 'PORT_REFUSED' })
    expect(dialled).toEqual(['/proc/4242/ns/net 80'])
  })

  it.each([
    ['a pod without a sandbox', observedPod({ sandboxes: [] })],
    ['a pod whose sandbox has died', observedPod({ sandboxes: [deadSandbox] })],
  ])('is nowhere for %s', async (_title, pod) => {
    await expect(dial(pod, 80)).rejects.toMatchObject({ code: 'PORT_FORWARD_FAILED' })
    expect(dialled).toEqual([])
  })

  it.each([
    ['tells no process', '{"pid":0}'],
    ['tells nothing', ''],
  ])('is left to a runtime that %s', async (_title, info) => {
    await expect(dial(observedPod(), 80, info)).rejects.toMatchObject({ code: 'PORT_FORWARD_FAILED' })
    expect(dialled).toEqual([`${observedSandbox().id} by the runtime`])
  })

  it('is left to the runtime where podd can’t enter the namespace', async () => {
    refusal = new NamespaceUnreachable('there is no program nsenter on this host')
    await expect(dial(observedPod(), 80)).rejects.toMatchObject({ code: 'PORT_FORWARD_FAILED' })
    expect(dialled).toEqual(['/proc/4242/ns/net 80', `${observedSandbox().id} by the runtime`])
  })

  it("is the host's own loopback device for a pod on the host's network", async () => {
    const pod = observedPod({ sandboxes: [observedSandbox({ hostNetwork: true, ips: [] })] })
    const listener = createServer((socket) => socket.end('hello')).listen(0, '::1')
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    const socket = await dial(pod, port)
    expect(await once(socket, 'data')).toEqual([Buffer.from('hello')])
    socket.destroy()
    await new Promise((resolve) => listener.close(resolve))
    await expect(dial(pod, port)).rejects.toMatchObject({ code: 'PORT_REFUSED' })
  })
})
