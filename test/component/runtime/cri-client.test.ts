import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { CriClient } from '../../../src/runtime/cri-client.ts'
import type { CriClientOptions } from '../../../src/runtime/cri-client.ts'
import { FakeRuntimeServer } from '../../support/fake-runtime-server.ts'
import type { FakeRuntimeServerOptions } from '../../support/fake-runtime-server.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { slowness } from '../../support/slowness.ts'

let dir: string
let fake: FakeRuntime
const cleanups: (() => void)[] = []

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'podd-cri-'))
  fake = new FakeRuntime({ clock: systemClock, images: ['app'] })
  cleanups.push(() => rmSync(dir, { recursive: true }))
})

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

async function serve(options: Partial<FakeRuntimeServerOptions> = {}): Promise<FakeRuntimeServer> {
  const server = await FakeRuntimeServer.start(fake, { socketPath: join(dir, 'cri.sock'), ...options })
  cleanups.push(() => server.stop())
  return server
}

function connectTo(endpoint: string, options: Partial<CriClientOptions> = {}): CriClient {
  const client = new CriClient({ endpoint, clock: systemClock, ...options })
  cleanups.push(() => client.close())
  return client
}

const bigText = 'x'.repeat(6 * 1024 * 1024)
const sandboxConfig = { metadata: { name: 'pod', namespace: 'ns', uid: 'u' } }

describe('a connection that is kept', () => {
  it('is there from the first container on, for StartContainer alone, and is released with the client', async () => {
    const server = await serve()
    let opened = 0
    let released = 0
    const client = connectTo(server.endpoint, {
      keep: () => {
        opened += 1
        return () => void (released += 1)
      },
    })
    const { podSandboxId } = await client.runtime.runPodSandbox({ config: sandboxConfig })
    expect(opened).toBe(0)
    for (const name of ['a', 'b']) {
      const config = { metadata: { name, attempt: 0 }, image: { image: 'app' } }
      const { containerId } = await client.runtime.createContainer({ podSandboxId, config, sandboxConfig })
      await client.runtime.startContainer({ containerId })
    }
    expect(opened).toBe(1)
    server.stop()
    await expect.poll(() => released).toBe(1)
    await expect(client.runtime.startContainer({ containerId: 'c' }, { deadlineMs: 10 })).rejects.toThrow()
    client.close()
    await expect.poll(() => opened - released).toBe(0)
  })
})

describe('connecting', () => {
  it('says which runtime answers', async () => {
    const client = connectTo((await serve()).endpoint)
    await expect(client.connect()).resolves.toMatchObject({
      runtimeName: 'containerd',
      runtimeVersion: '2.1.9',
    })
  })

  it.each(['tcp://127.0.0.1:1', '/run/containerd.sock', 'unix://', 'unix://relative.sock', ''])(
    'refuses %j as an endpoint',
    (endpoint) => {
      expect(() => connectTo(endpoint)).toThrow(
        expect.objectContaining({ code: 'RUNTIME_ENDPOINT', hint: expect.stringContaining('unix:///') }),
      )
    },
  )

  it('to an older CRI says so', async () => {
    const client = connectTo((await serve({ packageName: 'runtime.v1alpha2' })).endpoint)
    await expect(client.connect()).rejects.toMatchObject({
      code: 'RUNTIME_API_VERSION',
      message: expect.stringContaining('no CRI v1'),
      hint: expect.stringContaining('1.6'),
    })
  })

  it('to a containerd whose CRI plugin is off says so', async () => {
    const client = connectTo((await serve({ services: [] })).endpoint)
    await expect(client.connect()).rejects.toMatchObject({
      code: 'RUNTIME_API_VERSION',
      message: expect.stringContaining('no CRI'),
      hint: expect.stringContaining('disabled_plugins'),
    })
  })

  it("to a socket that isn't there fails when the wait is over", async () => {
    const client = connectTo(`unix://${dir}/none.sock`, { reconnectWaitMs: 100 })
    const startedMs = performance.now()
    await expect(client.connect()).rejects.toMatchObject({
      code: 'RUNTIME_UNAVAILABLE',
      message: expect.stringContaining('ENOENT'),
    })
    expect(performance.now() - startedMs).toBeLessThan(1000 * slowness)
  })
})

describe('calls over a socket', () => {
  it('take requests and replies of more than 4 MiB', async () => {
    const client = connectTo((await serve()).endpoint)
    const config = { ...sandboxConfig, annotations: { big: bigText } }
    await client.runtime.runPodSandbox({ config })
    const { items } = await client.runtime.listPodSandbox({})
    expect(items[0]?.annotations['big']).toHaveLength(bigText.length)
  })

  it('share one connection for both services unless the image service is elsewhere', async () => {
    const { endpoint } = await serve({ services: ['RuntimeService'] })
    const images = await serve({ services: ['ImageService'], socketPath: join(dir, 'images.sock') })
    await expect(connectTo(endpoint).images.listImages({})).rejects.toMatchObject({
      code: 'RUNTIME_UNSUPPORTED',
    })
    const both = connectTo(endpoint, { imageEndpoint: images.endpoint })
    expect((await both.images.listImages({})).images).toHaveLength(1)
    await expect(both.runtime.version({})).resolves.toBeDefined()
  })

  it('cancel in the runtime what only reads, and leave alone what changes something', async () => {
    const client = connectTo((await serve()).endpoint)
    await client.connect()
    fake.fault('ListContainers', { kind: 'hangs' })
    fake.fault('RunPodSandbox', { kind: 'delays', delayMs: 60 * slowness })
    const off = new AbortController()
    const list = client.runtime.listContainers({}, { signal: off.signal }).catch((error: unknown) => error)
    const run = client.runtime
      .runPodSandbox({ config: sandboxConfig }, { signal: off.signal })
      .catch((error: unknown) => error)
    await expect
      .poll(() => [...fake.calls('ListContainers'), ...fake.calls('RunPodSandbox')], { interval: 5 })
      .toHaveLength(2)
    off.abort(new Error('enough'))
    expect(await list).toMatchObject({ message: 'enough' })
    expect(await run).toMatchObject({ message: 'enough' })
    await expect.poll(() => fake.calls('ListContainers')[0]).toMatchObject({ cancelled: true })
    await expect.poll(() => fake.calls('RunPodSandbox')[0]).toMatchObject({ cancelled: false, outcome: 'ok' })
  })

  it('are counted by the observer', async () => {
    const seen: [string, boolean][] = []
    const { endpoint } = await serve()
    const client = connectTo(endpoint, { onCall: (method, _durationMs, ok) => seen.push([method, ok]) })
    await client.runtime.version({})
    await client.runtime.containerStatus({ containerId: 'none' }).catch(() => undefined)
    expect(seen).toEqual([
      ['Version', true],
      ['ContainerStatus', false],
    ])
  })

  it('are no errors of the runtime where their caller stops waiting', async () => {
    const seen: [string, boolean][] = []
    const { endpoint } = await serve()
    const client = connectTo(endpoint, { onCall: (method, _durationMs, ok) => seen.push([method, ok]) })
    await client.runtime.version({})
    fake.fault('ListContainers', { kind: 'hangs' })
    const off = new AbortController()
    const list = client.runtime.listContainers({}, { signal: off.signal }).catch(() => undefined)
    await expect.poll(() => fake.calls('ListContainers'), { interval: 5 }).toHaveLength(1)
    off.abort(new Error('enough'))
    await list
    expect(seen).toEqual([['Version', true]])
  })

  it('tell what the runtime calls unavailable from a runtime that is away', async () => {
    const client = connectTo((await serve()).endpoint)
    fake.fault('PodSandboxStats', { kind: 'fails', grpcCode: status.UNAVAILABLE, message: 'not ready' })
    await expect(client.runtime.podSandboxStats({ podSandboxId: 's' })).rejects.toMatchObject({
      code: 'RUNTIME_FAILED',
      grpcCode: status.UNAVAILABLE,
      message: 'not ready',
    })
    expect(fake.calls('PodSandboxStats')).toHaveLength(1)
  })
})

describe('a runtime that restarts', () => {
  it('breaks the call under way and serves the next one as soon as it is back', async () => {
    const server = await serve()
    const client = connectTo(server.endpoint)
    await client.runtime.runPodSandbox({ config: sandboxConfig })
    fake.fault('StopPodSandbox', { kind: 'hangs' })
    const stop = client.runtime.stopPodSandbox({}).catch((error: unknown) => error)
    await expect.poll(() => fake.calls('StopPodSandbox')).toHaveLength(1)
    server.stop()
    expect(await stop).toMatchObject({ code: 'RUNTIME_UNAVAILABLE' })
    const list = client.runtime.listPodSandbox({})
    const change = client.runtime.createContainer({}).catch((error: unknown) => error)
    await systemClock.sleep(200)
    await server.start()
    const backMs = performance.now()
    expect((await list).items).toHaveLength(1)
    expect(await change).toMatchObject({ code: 'RUNTIME_NOT_FOUND' })
    expect(performance.now() - backMs).toBeLessThan(500 * slowness)
  })

  it('answers late what only reads and was sent just as it went', async () => {
    const server = await serve()
    const client = connectTo(server.endpoint)
    await client.connect()
    server.stop()
    const list = client.runtime.listPodSandbox({})
    await systemClock.sleep(200)
    await server.start()
    await expect(list).resolves.toEqual({ items: [] })
  })

  it('is waited for no longer than told, and then calls fail at once', async () => {
    const server = await serve()
    const client = connectTo(server.endpoint, { reconnectWaitMs: 150 })
    await client.connect()
    server.stop()
    await expect(client.runtime.version({})).rejects.toMatchObject({ code: 'RUNTIME_UNAVAILABLE' })
    const startedMs = performance.now()
    await expect(client.runtime.version({})).rejects.toMatchObject({ code: 'RUNTIME_UNAVAILABLE' })
    expect(performance.now() - startedMs).toBeLessThan(100 * slowness)
    await server.start()
    await expect
      .poll(() =>
        client.runtime.version({}).then(
          () => 'back',
          () => 'away',
        ),
      )
      .toBe('back')
  })

  it('gets no calls while it says that it is still starting', async () => {
    fake.fault('Status', { kind: 'fails', message: 'server is not initialized yet' }, { times: 3 })
    const client = connectTo((await serve()).endpoint)
    await expect(client.runtime.listContainers({})).resolves.toEqual({ containers: [] })
    const sent = fake.journal.map(({ method }) => method)
    expect(sent).toEqual(['Status', 'Status', 'Status', 'Status', 'ListContainers'])
  })
})
