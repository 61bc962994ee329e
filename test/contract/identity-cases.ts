import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { CriClient } from '../../src/runtime/cri-client.ts'
import { shellImageName } from '../support/oci-image.ts'
import type { Contract } from './contract.ts'

const absent = 'no-such-id'

type Call = (client: CriClient) => Promise<unknown>

/** What a runtime says of itself, of its images, and of what isn't there. */
export function identityCases(contract: Contract): void {
  contract.holds('Version tells runtime, version and API', async () => {
    const version = await contract.client.connect()
    expect(version).toMatchObject({ runtimeName: 'containerd', runtimeApiVersion: 'v1' })
    expect(version.runtimeVersion).toMatch(`${contract.target.release}.`)
  })

  contract.holds('Status tells both conditions, and details when asked', async () => {
    const { status, info } = await contract.client.runtime.status({ verbose: true })
    const conditions = status?.conditions.map((condition) => [condition.type, condition.status])
    expect(conditions).toEqual(
      expect.arrayContaining([
        ['RuntimeReady', true],
        ['NetworkReady', true],
      ]),
    )
    expect(JSON.parse(info['config'] ?? '')).toBeTypeOf('object')
  })

  contract.holds('UpdateRuntimeConfig takes a pod network', async () => {
    const request = { runtimeConfig: { networkConfig: { podCidr: '10.99.0.0/24' } } }
    expect(await contract.client.runtime.updateRuntimeConfig(request)).toEqual({})
  })

  contract.holds('RuntimeConfig tells the cgroup driver from 2.0 on, and is missing before', async () => {
    const reply = contract.client.runtime.runtimeConfig({})
    if (contract.isFrom('2.0')) expect((await reply).linux?.cgroupDriver).toBe('CGROUPFS')
    else await expect(reply).rejects.toMatchObject({ code: 'RUNTIME_UNSUPPORTED' })
  })

  const missing: readonly [string, Call][] = [
    ['ListMetricDescriptors', ({ runtime }) => runtime.listMetricDescriptors({})],
    ['ListPodSandboxMetrics', ({ runtime }) => runtime.listPodSandboxMetrics({})],
  ]
  for (const [method, call] of missing) {
    contract.holds(`${method} is missing, by name`, async () => {
      await expect(call(contract.client)).rejects.toMatchObject({ code: 'RUNTIME_UNSUPPORTED', method })
    })
  }

  contract.holds(
    'CheckpointContainer is missing before 2.0, and makes nothing of what is not there',
    async () => {
      const location = join(tmpdir(), 'podd-never-written.tar')
      const reply = contract.client.runtime.checkpointContainer({ containerId: absent, location })
      const error: unknown = await reply.then(() => undefined).catch((reason: unknown) => reason)
      expect(error).toMatchObject({ method: 'CheckpointContainer' })
      // From 2.0 on it looks for CRIU first, which most hosts lack: what it says then depends on the host.
      if (!contract.isFrom('2.0')) expect(error).toMatchObject({ code: 'RUNTIME_UNSUPPORTED' })
      expect(existsSync(location)).toBe(false)
    },
  )

  const notFound: readonly [string, Call][] = [
    ['PodSandboxStatus', ({ runtime }) => runtime.podSandboxStatus({ podSandboxId: absent })],
    ['CreateContainer', ({ runtime }) => runtime.createContainer(inSandbox(absent))],
    ['StartContainer', ({ runtime }) => runtime.startContainer({ containerId: absent })],
    ['ContainerStatus', ({ runtime }) => runtime.containerStatus({ containerId: absent })],
    [
      'UpdateContainerResources',
      ({ runtime }) => runtime.updateContainerResources({ containerId: absent, linux: { cpuShares: 2 } }),
    ],
    ['ReopenContainerLog', ({ runtime }) => runtime.reopenContainerLog({ containerId: absent })],
    ['ExecSync', ({ runtime }) => runtime.execSync({ containerId: absent, cmd: ['true'], timeout: 1 })],
    ['Exec', ({ runtime }) => runtime.exec({ containerId: absent, cmd: ['true'], stdout: true })],
    ['Attach', ({ runtime }) => runtime.attach({ containerId: absent, stdout: true })],
    ['PortForward', ({ runtime }) => runtime.portForward({ podSandboxId: absent, port: [80] })],
    ['ContainerStats', ({ runtime }) => runtime.containerStats({ containerId: absent })],
    ['PodSandboxStats', ({ runtime }) => runtime.podSandboxStats({ podSandboxId: absent })],
  ]
  for (const [method, call] of notFound) {
    contract.holds(`${method} of what is not there is not found`, async () => {
      await expect(call(contract.client)).rejects.toMatchObject({ code: 'RUNTIME_NOT_FOUND', method })
    })
  }

  const done: readonly [string, Call][] = [
    ['StopPodSandbox', ({ runtime }) => runtime.stopPodSandbox({ podSandboxId: absent })],
    ['RemovePodSandbox', ({ runtime }) => runtime.removePodSandbox({ podSandboxId: absent })],
    ['StopContainer', ({ runtime }) => runtime.stopContainer({ containerId: absent, timeout: 1 })],
    ['RemoveContainer', ({ runtime }) => runtime.removeContainer({ containerId: absent })],
    ['RemoveImage', ({ images }) => images.removeImage({ image: { image: 'localhost/absent:1' } })],
  ]
  for (const [method, call] of done) {
    contract.holds(`${method} of what is not there is done`, async () => {
      expect(await call(contract.client)).toEqual({})
    })
  }

  const empty: readonly [string, Call][] = [
    ['ListPodSandbox', ({ runtime }) => runtime.listPodSandbox({ filter: { id: absent } })],
    ['ListContainers', ({ runtime }) => runtime.listContainers({ filter: { id: absent } })],
    ['ListContainerStats', ({ runtime }) => runtime.listContainerStats({ filter: { id: absent } })],
    ['ListPodSandboxStats', ({ runtime }) => runtime.listPodSandboxStats({ filter: { id: absent } })],
  ]
  for (const [method, call] of empty) {
    contract.holds(`${method} of what is not there is empty`, async () => {
      const [list] = Object.values(Object(await call(contract.client)))
      expect(list).toEqual([])
    })
  }

  contract.holds('ListImages and ImageStatus know an image by its name and by its id', async () => {
    const { images } = await contract.client.images.listImages({})
    const shell = images.find(({ repoTags }) => repoTags.includes(shellImageName))
    expect(shell).toMatchObject({ id: expect.stringMatching(/^sha256:/), size: expect.any(Number) })
    for (const name of [shellImageName, shell?.id ?? '']) {
      const { image } = await contract.client.images.imageStatus({ image: { image: name } })
      expect(image?.id).toBe(shell?.id)
    }
  })

  contract.holds('ImageStatus of an absent image is no image', async () => {
    const { image } = await contract.client.images.imageStatus({ image: { image: 'localhost/absent:1' } })
    expect(image).toBeNull()
  })

  contract.holds('PullImage that finds nothing fails', async () => {
    const pull = contract.client.images.pullImage({ image: { image: 'localhost:1/absent:1' } })
    await expect(pull).rejects.toMatchObject({ name: 'CriError', method: 'PullImage' })
  })

  contract.holds('ImageFsInfo tells where images are', async () => {
    const { imageFilesystems } = await contract.client.images.imageFsInfo({})
    expect(imageFilesystems[0]?.fsId?.mountpoint).toMatch(/^\//)
  })
}

function inSandbox(podSandboxId: string): object {
  const config = { metadata: { name: 'c' }, image: { image: shellImageName } }
  return { podSandboxId, config, sandboxConfig: { metadata: { name: 'p', namespace: 'n', uid: 'u' } } }
}
