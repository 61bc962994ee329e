import { describe, expect, it } from 'vitest'
import {
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
import { loadProto } from '../../../src/grpc/load-proto.ts'

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
