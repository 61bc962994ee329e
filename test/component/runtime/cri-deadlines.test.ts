import { status } from '@grpc/grpc-js'
import { beforeEach, describe, expect, it } from 'vitest'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import type { RpcName } from '../../support/fake-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'

let clock: ManualClock
let fake: FakeRuntime

beforeEach(() => {
  clock = new ManualClock()
  fake = new FakeRuntime({ clock })
})

describe('a call that is not answered', () => {
  it.each<[RpcName, number, (fake: FakeRuntime) => Promise<unknown>]>([
    ['Version', 120_000, ({ runtime }) => runtime.version({})],
    ['RunPodSandbox', 240_000, ({ runtime }) => runtime.runPodSandbox({})],
    ['CreateContainer', 120_000, ({ runtime }) => runtime.createContainer({})],
    ['StopContainer', 150_000, ({ runtime }) => runtime.stopContainer({ timeout: 30 })],
    ['ExecSync', 7000, ({ runtime }) => runtime.execSync({ timeout: 5 })],
    ['ListPodSandbox', 120_000, ({ runtime }) => runtime.listPodSandbox({})],
    ['PodSandboxStats', 120_000, ({ runtime }) => runtime.podSandboxStats({})],
    ['ImageStatus', 120_000, ({ images }) => images.imageStatus({})],
    ['ListImages', 500, ({ images }) => images.listImages({}, { deadlineMs: 500 })],
  ])('%s is given up after %d ms', async (method, deadlineMs, call) => {
    fake.fault(method, { kind: 'hangs' })
    let outcome: unknown
    void call(fake).catch((error: unknown) => (outcome = error))
    await clock.advance(deadlineMs - 1)
    expect(outcome).toBeUndefined()
    await clock.advance(1)
    expect(outcome).toMatchObject({ code: 'RUNTIME_TIMEOUT', method })
    expect(fake.calls(method)[0]?.cancelled).toBe(true)
    expect(clock.pendingTimers).toBe(0)
  })

  it.each<[RpcName, (fake: FakeRuntime, signal: AbortSignal) => Promise<unknown>]>([
    ['PullImage', ({ images }, signal) => images.pullImage({}, { signal })],
    ['ImageFsInfo', ({ images }, signal) => images.imageFsInfo({}, { signal })],
    ['ListContainerStats', ({ runtime }, signal) => runtime.listContainerStats({}, { signal })],
    ['ExecSync', ({ runtime }, signal) => runtime.execSync({ timeout: 0 }, { signal })],
  ])('%s without a bound of its own waits until it is called off', async (method, call) => {
    fake.fault(method, { kind: 'hangs' })
    const off = new AbortController()
    let outcome: unknown
    void call(fake, off.signal).catch((error: unknown) => (outcome = error))
    await clock.advance(86_400_000)
    expect(outcome).toBeUndefined()
    off.abort(new Error('enough'))
    await clock.settle()
    expect(outcome).toMatchObject({ message: 'enough' })
    expect(fake.calls(method)[0]?.cancelled).toBe(true)
  })
})

describe('a caller that stops waiting', () => {
  it.each<[RpcName, boolean, (fake: FakeRuntime, signal: AbortSignal) => Promise<unknown>]>([
    ['ListContainers', true, ({ runtime }, signal) => runtime.listContainers({}, { signal })],
    ['PullImage', true, ({ images }, signal) => images.pullImage({}, { signal })],
    ['ExecSync', true, ({ runtime }, signal) => runtime.execSync({ timeout: 60 }, { signal })],
    ['RunPodSandbox', false, ({ runtime }, signal) => runtime.runPodSandbox({}, { signal })],
    ['StartContainer', false, ({ runtime }, signal) => runtime.startContainer({}, { signal })],
    ['StopContainer', false, ({ runtime }, signal) => runtime.stopContainer({ timeout: 60 }, { signal })],
    ['RemoveContainer', false, ({ runtime }, signal) => runtime.removeContainer({}, { signal })],
    ['RemoveImage', false, ({ images }, signal) => images.removeImage({}, { signal })],
  ])('of %s: the call is cancelled: %s', async (method, cancelled, call) => {
    fake.fault(method, { kind: 'hangs' })
    const off = new AbortController()
    const outcome = call(fake, off.signal).catch((error: unknown) => error)
    await clock.settle()
    off.abort(new Error('enough'))
    expect(await outcome).toMatchObject({ message: 'enough' })
    expect(fake.calls(method).map((entry) => entry.cancelled)).toEqual([cancelled])
  })

  it('before a call went out sends nothing', async () => {
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(fake.runtime.runPodSandbox({}, { signal })).rejects.toThrow('enough')
    expect(fake.journal).toEqual([])
  })
})

describe('errors of the runtime', () => {
  it.each([
    [status.NOT_FOUND, 'RUNTIME_NOT_FOUND'],
    [status.ALREADY_EXISTS, 'RUNTIME_EXISTS'],
    [status.INVALID_ARGUMENT, 'RUNTIME_INVALID'],
    [status.OUT_OF_RANGE, 'RUNTIME_INVALID'],
    [status.DEADLINE_EXCEEDED, 'RUNTIME_TIMEOUT'],
    [status.UNIMPLEMENTED, 'RUNTIME_UNSUPPORTED'],
    [status.UNAVAILABLE, 'RUNTIME_UNAVAILABLE'],
    [status.CANCELLED, 'RUNTIME_UNAVAILABLE'],
    [status.UNKNOWN, 'RUNTIME_FAILED'],
    [status.INTERNAL, 'RUNTIME_FAILED'],
    [status.FAILED_PRECONDITION, 'RUNTIME_FAILED'],
    [status.PERMISSION_DENIED, 'RUNTIME_FAILED'],
  ])('gRPC code %d is %s', async (grpcCode, code) => {
    fake.fault('StartContainer', { kind: 'fails', grpcCode, message: 'because' })
    await expect(fake.runtime.startContainer({ containerId: 'c' })).rejects.toMatchObject({
      name: 'CriError',
      code,
      grpcCode,
      method: 'StartContainer',
      message: 'because',
    })
  })

  it.each<[RpcName, (fake: FakeRuntime) => Promise<unknown>]>([
    ['StopContainer', ({ runtime }) => runtime.stopContainer({ containerId: 'c' })],
    ['RemoveContainer', ({ runtime }) => runtime.removeContainer({ containerId: 'c' })],
    ['StopPodSandbox', ({ runtime }) => runtime.stopPodSandbox({ podSandboxId: 's' })],
    ['RemovePodSandbox', ({ runtime }) => runtime.removePodSandbox({ podSandboxId: 's' })],
    ['RemoveImage', ({ images }) => images.removeImage({ image: { image: 'i' } })],
  ])('%s of what is not there is done, as older runtimes say NotFound', async (method, call) => {
    fake.fault(method, { kind: 'fails', grpcCode: status.NOT_FOUND })
    await expect(call(fake)).resolves.toEqual({})
  })

  it('a broken connection repeats what only reads, once', async () => {
    fake.fault('ListContainers', { kind: 'loses-reply' })
    await expect(fake.runtime.listContainers({})).resolves.toEqual({ containers: [] })
    fake.fault('StartContainer', { kind: 'loses-reply' })
    await expect(fake.runtime.startContainer({ containerId: 'c' })).rejects.toMatchObject({
      code: 'RUNTIME_NOT_FOUND',
    })
    const sent = fake.journal.map(({ method }) => method)
    expect(sent).toEqual(['ListContainers', 'ListContainers', 'StartContainer'])
  })

  it('an image without size is a reply not to be believed', async () => {
    fake.addImage('broken', { sizeBytes: 0 })
    await expect(fake.images.imageStatus({ image: { image: 'broken' } })).rejects.toMatchObject({
      code: 'RUNTIME_BAD_REPLY',
      method: 'ImageStatus',
    })
  })
})
