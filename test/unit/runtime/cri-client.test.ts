import protobuf from 'protobufjs'
import { describe, expect, it, vi } from 'vitest'
import { loadProto } from '../../../src/grpc/load-proto.ts'
import {
  askCgroupDriver,
  checkContainerId,
  checkContainerStatus,
  checkImageStatus,
  checkPulledImage,
  checkSandboxId,
  checkSandboxStatus,
  checkStatus,
  checkStreamingUrl,
  checkVersion,
} from '../../../src/runtime/cri-client.ts'
import { CriError } from '../../../src/runtime/cri-runtime.ts'
import type { RuntimeService } from '../../../src/runtime/cri-runtime.ts'

const proto = loadProto('cri-v1.proto')

/** A reply as it comes off the wire: all that isn't given has its default. */
// eslint-disable-next-line typescript/no-explicit-any
function received(method: string, reply: object): any {
  const services = ['runtime.v1.RuntimeService', 'runtime.v1.ImageService']
  const definition = services.map((name) => proto.service(name)[method]).find((found) => found !== undefined)!
  return definition.responseDeserialize(definition.responseSerialize(reply))
}

const version = { version: '0.1.0', runtimeName: 'c', runtimeVersion: '2', runtimeApiVersion: 'v1' }
const sandbox = { id: 's', metadata: { name: 'n', namespace: 'ns', uid: 'u' }, createdAt: 1 }
const container = {
  id: 'c',
  metadata: { name: 'n' },
  createdAt: 1,
  image: { image: 'i' },
  imageRef: 'sha256:1',
}
const conditions = [{ type: 'RuntimeReady' }, { type: 'NetworkReady', status: true }]
const without = (object: object, key: string): object => ({ ...object, [key]: undefined })

describe('a reply is believed when', () => {
  it.each([
    ['it names version and runtime', checkVersion(received('Version', version))],
    ['both conditions are there, true or not', checkStatus(received('Status', { status: { conditions } }))],
    ['a sandbox has an id', checkSandboxId(received('RunPodSandbox', { podSandboxId: 's' }))],
    ['a container has an id', checkContainerId(received('CreateContainer', { containerId: 'c' }))],
    ['a stream has a URL', checkStreamingUrl(received('Exec', { url: 'http://x' }))],
    ['a sandbox has a status', checkSandboxStatus(received('PodSandboxStatus', { status: sandbox }))],
    ['a container has a status', checkContainerStatus(received('ContainerStatus', { status: container }))],
    ['an image has id and size', checkImageStatus(received('ImageStatus', { image: { id: 'i', size: 1 } }))],
    ['there is no such image', checkImageStatus(received('ImageStatus', {}))],
    ['a pull tells what came', checkPulledImage(received('PullImage', { imageRef: 'i' }))],
  ])('%s', (_what, lack) => {
    expect(lack).toBeUndefined()
  })
})

describe('a reply is refused for lack of', () => {
  it.each<readonly [string, string | undefined]>([
    ...Object.keys(version).map(
      (key) => [key, checkVersion(received('Version', without(version, key)))] as const,
    ),
    ['status', checkContainerStatus(received('ContainerStatus', {}))],
    ['status', checkSandboxStatus(received('PodSandboxStatus', {}))],
    ['RuntimeReady and NetworkReady', checkStatus(received('Status', {}))],
    ['NetworkReady', checkStatus(received('Status', { status: { conditions: conditions.slice(0, 1) } }))],
    ['podSandboxId', checkSandboxId(received('RunPodSandbox', {}))],
    ['containerId', checkContainerId(received('CreateContainer', {}))],
    ['url', checkStreamingUrl(received('PortForward', {}))],
    ['id', checkSandboxStatus(received('PodSandboxStatus', { status: without(sandbox, 'id') }))],
    [
      'metadata.name',
      checkSandboxStatus(received('PodSandboxStatus', { status: without(sandbox, 'metadata') })),
    ],
    [
      'createdAt',
      checkSandboxStatus(received('PodSandboxStatus', { status: without(sandbox, 'createdAt') })),
    ],
    ...['id', 'metadata', 'createdAt', 'image', 'imageRef'].map(
      (key) =>
        [
          key,
          checkContainerStatus(received('ContainerStatus', { status: without(container, key) })),
        ] as const,
    ),
    ['image.id', checkImageStatus(received('ImageStatus', { image: { size: 1 } }))],
    ['image.size', checkImageStatus(received('ImageStatus', { image: { id: 'i' } }))],
    ['imageRef', checkPulledImage(received('PullImage', {}))],
  ])('%s', (what, lack) => {
    expect(lack).toContain(what)
  })
})

type Reply = Awaited<ReturnType<RuntimeService['runtimeConfig']>>

const saying = (driver: 'SYSTEMD' | 'CGROUPFS' | undefined): Reply => ({
  linux: driver === undefined ? null : { cgroupDriver: driver },
})

function ask(runtimeConfig: () => Promise<Reply>, config = ''): ReturnType<typeof askCgroupDriver> {
  return askCgroupDriver({
    runtimeConfig,
    status: async () => ({ status: null, info: { config }, runtimeHandlers: [] }) as never,
  })
}

const lacking = async (): Promise<Reply> => {
  throw new CriError('RUNTIME_UNSUPPORTED', 'unknown method RuntimeConfig')
}
const configOf = (options: object, name = 'runc'): string =>
  JSON.stringify({
    containerd: {
      defaultRuntimeName: name,
      runtimes: { [name]: { runtimeType: 'io.containerd.runc.v2', options } },
    },
  })

describe("a runtime's cgroup driver", () => {
  it('is what the runtime says of it', async () => {
    expect(await ask(async () => saying('SYSTEMD'))).toBe('systemd')
    expect(await ask(async () => saying('CGROUPFS'))).toBe('cgroupfs')
  })

  it('stands in the config of an older containerd, for the runtime that is its default', async () => {
    expect(await ask(lacking, configOf({ SystemdCgroup: true }))).toBe('systemd')
    expect(await ask(lacking, configOf({ SystemdCgroup: false }))).toBe('cgroupfs')
    expect(await ask(lacking, configOf({}, 'crun'))).toBe('cgroupfs')
  })

  it('is unknown where nothing tells', async () => {
    expect(await ask(lacking, '')).toBeUndefined()
    expect(await ask(lacking, '{"containerd":{}}')).toBeUndefined()
    expect(await ask(async () => saying(undefined))).toBeUndefined()
  })

  it('is not guessed where the runtime could not be asked', async () => {
    const away = async (): Promise<Reply> => {
      throw new CriError('RUNTIME_UNAVAILABLE', 'no connection')
    }
    await expect(ask(away)).rejects.toMatchObject({ code: 'RUNTIME_UNAVAILABLE' })
  })
})

describe('A 64-bit integer of the runtime', () => {
  const numbers = [0, 1, -1, -999, 2 ** 31, 2 ** 32 + 1, 2 ** 53 - 1, -(2 ** 53 - 1), 2 ** 60 + 2 ** 12]

  function inBothDirections(loaded: ReturnType<typeof loadProto>) {
    const { responseSerialize, responseDeserialize } =
      loaded.service('runtime.v1.RuntimeService')['ListPodSandbox']!
    return numbers.map((createdAt) => {
      const bytes = responseSerialize({ items: [{ createdAt }] })
      return { bytes: bytes.toString('hex'), reply: responseDeserialize(bytes) }
    })
  }

  it('is the same without the library for them, which the built program has left out', async () => {
    const withLibrary = inBothDirections(proto)
    expect(withLibrary.map(({ reply }) => reply)).toMatchObject(
      numbers.map((createdAt) => ({ items: [{ createdAt }] })),
    )
    const { Long } = protobuf.util
    try {
      Object.assign(protobuf.util, { Long: null })
      protobuf.configure()
      vi.resetModules()
      const again = await import('../../../src/grpc/load-proto.ts')
      expect(inBothDirections(again.loadProto('cri-v1.proto'))).toEqual(withLibrary)
    } finally {
      protobuf.util.Long = Long
      protobuf.configure()
    }
  })
})
