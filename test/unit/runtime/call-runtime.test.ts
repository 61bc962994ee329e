import { expect, it } from 'vitest'
import { loadProto } from '../../../src/grpc/load-proto.ts'
import { RuntimeCaller } from '../../../src/runtime/call-runtime.ts'
import type { CallChannel } from '../../../src/runtime/call-runtime.ts'
import { createRuntimeService } from '../../../src/runtime/cri-client.ts'
import { CriError } from '../../../src/runtime/cri-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it.each([
  [true, 1],
  [false, 0],
])('tells of a call that goes out, where the runtime is connected: %s', async (isReady, told) => {
  let sent = 0
  const channel: CallChannel = {
    isReady,
    ready: async () => {},
    suspect: () => {},
    unary: async () => {
      throw new CriError('RUNTIME_UNAVAILABLE', 'no connection')
    },
  }
  const service = loadProto('cri-v1.proto').service('runtime.v1.RuntimeService')
  const { bind } = new RuntimeCaller(channel, service, new ManualClock())
  const onSent = (): void => void (sent += 1)
  await expect(createRuntimeService(bind).execSync({ containerId: 'c' }, { onSent })).rejects.toThrow()
  expect(sent).toBe(told)
})

it('makes sure of the connection again before it repeats a call that found it broken', async () => {
  const steps: string[] = []
  let broken = true
  const channel: CallChannel = {
    isReady: true,
    ready: async () => void steps.push('ready'),
    suspect: () => void steps.push('suspect'),
    unary: async ({ responseDeserialize }) => {
      steps.push(broken ? 'breaks' : 'answers')
      if (broken) {
        broken = false
        throw new CriError('RUNTIME_UNAVAILABLE', 'Connection dropped')
      }
      return responseDeserialize(Buffer.alloc(0))
    },
  }
  const service = loadProto('cri-v1.proto').service('runtime.v1.RuntimeService')
  const { bind } = new RuntimeCaller(channel, service, new ManualClock())
  await createRuntimeService(bind).listContainers({})
  expect(steps).toEqual(['ready', 'breaks', 'suspect', 'ready', 'answers'])
})

it('holds calls about containers back while the gate is closed, and no others', async () => {
  const sent: string[] = []
  const channel: CallChannel = {
    isReady: true,
    ready: async () => void sent.push('ready'),
    suspect: () => {},
    unary: async ({ path, responseDeserialize }) => {
      sent.push(path.slice(path.lastIndexOf('/') + 1))
      return responseDeserialize(Buffer.alloc(0))
    },
  }
  const service = loadProto('cri-v1.proto').service('runtime.v1.RuntimeService')
  const caller = new RuntimeCaller(channel, service, new ManualClock())
  const runtime = createRuntimeService(caller.bind)
  let passes: 'rejects' | 'opens' = 'rejects'
  let isOpen = false
  caller.gateWith({
    isOpen: () => isOpen,
    pass: async () => {
      sent.push(passes)
      if (passes === 'rejects') throw new CriError('RUNTIME_UNAVAILABLE', 'it has forgotten containers')
      isOpen = true
    },
  })
  await expect(runtime.startContainer({ containerId: 'c' })).rejects.toThrow('it has forgotten containers')
  expect(sent).toEqual(['ready', 'rejects'])
  sent.length = 0
  await runtime.updateRuntimeConfig({})
  await runtime.listContainers({}, { isUngated: true })
  expect(sent).toEqual(['ready', 'UpdateRuntimeConfig', 'ready', 'ListContainers'])
  sent.length = 0
  passes = 'opens'
  await runtime.startContainer({ containerId: 'c' })
  await runtime.startContainer({ containerId: 'c' })
  expect(sent).toEqual(['ready', 'opens', 'ready', 'StartContainer', 'ready', 'StartContainer'])
})

it('decodes a long list in turns of the event loop, and as a whole', async () => {
  const service = loadProto('cri-v1.proto').service('runtime.v1.RuntimeService')
  const reply = {
    containers: Array.from({ length: 1000 }, (_, at) => ({ id: `c-${at}`, labels: { at: String(at) } })),
  }
  const channel: CallChannel = {
    isReady: true,
    ready: async () => {},
    suspect: () => {},
    unary: async ({ responseDeserialize }) =>
      responseDeserialize(service['ListContainers']?.responseSerialize(reply) ?? Buffer.alloc(0)),
  }
  let nowMs = 0
  // Each look at the clock finds that a turn is over.
  const clock = Object.defineProperty(new ManualClock(), 'monotonicMs', { value: () => (nowMs += 100) })
  const { bind } = new RuntimeCaller(channel, service, clock)
  let turns = 0
  let isDone = false
  const turn = (): void => {
    turns += 1
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  const { containers } = await createRuntimeService(bind).listContainers({})
  isDone = true
  expect(containers.map(({ id, labels }) => [id, labels])).toEqual(
    reply.containers.map(({ id, labels }) => [id, labels]),
  )
  expect(turns).toBeGreaterThan(20)
})

it('tells of a list that cannot be decoded', async () => {
  const channel: CallChannel = {
    isReady: true,
    ready: async () => {},
    suspect: () => {},
    unary: async ({ responseDeserialize }) => responseDeserialize(Buffer.from([0x0a, 0xff, 0x01, 0x00])),
  }
  const service = loadProto('cri-v1.proto').service('runtime.v1.RuntimeService')
  const { bind } = new RuntimeCaller(channel, service, new ManualClock())
  await expect(createRuntimeService(bind).listContainers({})).rejects.toMatchObject({
    code: 'RUNTIME_FAILED',
  })
})
