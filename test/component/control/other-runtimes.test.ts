import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
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
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'podd-reach-'))
    const fake = new FakeRuntime({ clock: new ManualClock(), images: [] })
    server = await FakeRuntimeServer.start(fake, {
      socketPath: join(directory, 'cri.sock'),
      nativeEvents: false,
    })
    client = new CriClient({ endpoint: server.endpoint, clock: systemClock })
    reach = new Reach({
      runtime: client.runtime,
      stats: new RuntimeStats(client.runtime),
      connection: client.connection,
      findPod: () => undefined,
      runtimeProblem: () => undefined,
      runDir: directory,
      clock: systemClock,
    })
  })
  afterEach(async () => {
    reach.close()
    client.close()
    server.stop()
    rmSync(directory, { recursive: true, force: true })
  })

  it('is told from one, and the way out is named', async () => {
    const command = { containerId: 'id', command: ['true'], stdin: false, terminal: false }
    await expect(reach.startCommand(command)).rejects.toMatchObject({
      code: 'EXEC_UNSUPPORTED',
      hint: expect.stringContaining('crictl exec'),
    })
    await expect(reach.sweep()).resolves.toBeUndefined()
  })

  it('has no pod that is gone', async () => {
    await expect(reach.restart('uid-gone', undefined)).rejects.toThrow('the pod was removed in the meantime')
  })
})

describe('where a port of a pod is dialled', () => {
  const dialled: string[] = []
  const status = (info: string) => async () =>
    ({ status: null, info: { info } }) as unknown as cri.PodSandboxStatusResponse
  const dial = (pod: Parameters<typeof dialPod>[0], port: number, info = '{"pid":4242}') =>
    dialPod(pod, port, {
      podSandboxStatus: status(info),
      dialers: {
        dial: (path, dialledPort) => {
          dialled.push(`${path} ${dialledPort}`)
          return Promise.reject(new PoddError('PORT_REFUSED', 'nobody'))
        },
      },
    })

  it('is the network namespace of the process that holds the sandbox', async () => {
    const pod = observedPod({ sandboxes: [observedSandbox({ attempt: 1 }), deadSandbox] })
    await expect(dial(pod, 80)).rejects.toMatchObject({ code: 'PORT_REFUSED' })
    expect(dialled).toEqual(['/proc/4242/ns/net 80'])
  })

  it.each([
    ['a pod without a sandbox', observedPod({ sandboxes: [] }), '{"pid":1}'],
    ['a pod whose sandbox has died', observedPod({ sandboxes: [deadSandbox] }), '{"pid":1}'],
    ['a runtime that tells no process', observedPod(), '{"pid":0}'],
    ['a runtime that tells nothing', observedPod(), ''],
  ])('is nowhere for %s', async (_title, pod, info) => {
    await expect(dial(pod, 80, info)).rejects.toMatchObject({ code: 'PORT_FORWARD_FAILED' })
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
