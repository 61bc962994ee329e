import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { RuntimeEvent } from '../../../src/pod/state/observed.ts'
import { CriClient } from '../../../src/runtime/cri-client.ts'
import { ContainerdEvents } from '../../../src/runtime/events.ts'
import { FakeRuntimeServer } from '../../support/fake-runtime-server.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'

const cleanups: (() => void | Promise<void>)[] = []
let dir: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'podd-events-'))
  cleanups.push(() => rmSync(dir, { recursive: true }))
})

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Rig {
  readonly fake: FakeRuntime
  readonly server: FakeRuntimeServer
  readonly native: ContainerdEvents
}

async function start({ nativeEvents = true }: { nativeEvents?: boolean } = {}): Promise<Rig> {
  const fake = new FakeRuntime({ clock: systemClock, images: ['app'] })
  const server = await FakeRuntimeServer.start(fake, { socketPath: join(dir, 'cri.sock'), nativeEvents })
  cleanups.push(() => server.stop())
  const client = new CriClient({ endpoint: server.endpoint, clock: systemClock, reconnectWaitMs: 300 })
  cleanups.push(() => client.close())
  const native = new ContainerdEvents(client.connection, systemClock)
  return { fake, server, native }
}

function follow(stream: ContainerdEvents): RuntimeEvent[] {
  const seen: RuntimeEvent[] = []
  const stop = new AbortController()
  const ended = stream.run((event) => seen.push(event), stop.signal)
  cleanups.push(() => {
    stop.abort()
    return ended
  })
  return seen
}

async function runContainer({ runtime }: FakeRuntime): Promise<{ sandboxId: string; containerId: string }> {
  const config = { metadata: { name: 'pod', namespace: 'ns', uid: 'u' } }
  const { podSandboxId } = await runtime.runPodSandbox({ config })
  const { containerId } = await runtime.createContainer({
    podSandboxId,
    config: { metadata: { name: 'web' }, image: { image: 'app' } },
  })
  await runtime.startContainer({ containerId })
  return { sandboxId: podSandboxId, containerId }
}

describe("containerd's own events", () => {
  it('tell what happens to sandboxes and containers', async () => {
    const rig = await start()
    const seen = follow(rig.native)
    await expect.poll(() => seen).toEqual([{ kind: 'opened' }])
    const { sandboxId, containerId } = await runContainer(rig.fake)
    rig.fake.exitContainer('web', 3)
    await rig.fake.runtime.removePodSandbox({ podSandboxId: sandboxId })
    await expect
      .poll(() => seen.slice(1))
      .toEqual([
        { kind: 'created', containerId: sandboxId },
        { kind: 'started', containerId: sandboxId },
        { kind: 'created', containerId },
        { kind: 'started', containerId },
        { kind: 'exited', containerId },
        { kind: 'exited', containerId: sandboxId },
        { kind: 'deleted', containerId },
        { kind: 'deleted', containerId: sandboxId },
      ])
  })

  it('are lost when the runtime goes away and open again when it is back', async () => {
    const rig = await start()
    const seen = follow(rig.native)
    await expect.poll(() => seen).toHaveLength(1)
    rig.server.stop()
    await expect.poll(() => seen.map(({ kind }) => kind)).toEqual(['opened', 'lost'])
    await systemClock.sleep(150)
    await rig.server.start()
    await expect.poll(() => seen.map(({ kind }) => kind)).toEqual(['opened', 'lost', 'opened'])
    await runContainer(rig.fake)
    await expect.poll(() => seen).toHaveLength(7)
  })

  it('are said to be lost once when they cannot be opened at all', async () => {
    const rig = await start()
    rig.server.stop()
    const seen = follow(rig.native)
    await expect.poll(() => seen.length).toBe(1)
    expect(seen[0]).toMatchObject({ kind: 'lost', reason: expect.stringContaining('ENOENT') })
    await systemClock.sleep(200)
    expect(seen).toHaveLength(1)
  })

  it('leave out the ends of execs, other topics and payloads that cannot be read', async () => {
    const rig = await start()
    const seen = follow(rig.native)
    await expect.poll(() => seen).toHaveLength(1)
    const text = (field: number, value: string): Buffer =>
      Buffer.concat([Buffer.from([(field << 3) | 2, value.length]), Buffer.from(value)])
    rig.server.sendNative('/tasks/exit', Buffer.concat([text(1, 'c1'), text(2, 'exec1')]))
    rig.server.sendNative('/tasks/delete', Buffer.concat([text(1, 'c1'), text(5, 'exec1')]))
    rig.server.sendNative('/tasks/paused', text(1, 'c1'))
    rig.server.sendNative('/tasks/delete', text(1, 'c1'))
    rig.server.sendNative('/tasks/oom', text(1, 'c2'))
    await expect
      .poll(() => seen.slice(1))
      .toEqual([
        { kind: 'exited', containerId: 'c1' },
        { kind: 'oom', containerId: 'c2' },
      ])
  })

  it.each([true, false])('are known to be served, or not: %j', async (nativeEvents) => {
    const { native } = await start({ nativeEvents })
    expect(await native.isServed()).toBe(nativeEvents)
  })
})
