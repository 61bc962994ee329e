import { expect } from 'vitest'
import type { Contract } from './contract.ts'
import { slowness } from '../support/slowness.ts'

/** Sandboxes: from their start, also one that fails, to their removal. */
export function sandboxCases(contract: Contract): void {
  const list = async (request = {}): Promise<string[]> => {
    const { items } = await contract.client.runtime.listPodSandbox(request)
    return items.map(({ id }) => id)
  }

  contract.holds('a sandbox is ready, has an address, and keeps its labels and annotations', async () => {
    const pod = await contract.runPod(contract.podConfig({ annotations: { note: 'kept' } }))
    const status = await pod.sandboxStatus()
    expect(status).toMatchObject({
      id: pod.id,
      state: 'SANDBOX_READY',
      metadata: pod.sandboxConfig.metadata,
      labels: pod.sandboxConfig.labels,
      annotations: { note: 'kept' },
      network: { ip: expect.stringMatching(/^10\./) },
    })
    expect(Math.abs(status.createdAt / 1e6 - Date.now())).toBeLessThan(60_000)
  })

  contract.holds("a sandbox on the host's network has no address of its own", async () => {
    // Its host name is the host's as well: runc refuses to set another.
    const config = contract.podConfig({ hostname: '' })
    const securityContext = { namespaceOptions: { network: 'NODE' } } as const
    const pod = await contract.runPod({ ...config, linux: { ...config.linux, securityContext } })
    const status = await pod.sandboxStatus()
    expect(status.network?.ip ?? '').toBe('')
    expect(status.state).toBe('SANDBOX_READY')
  })

  contract.holds('a name can be taken once, and again after removal', async () => {
    const pod = await contract.runPod()
    await expect(contract.runPod(pod.sandboxConfig)).rejects.toMatchObject({ code: 'RUNTIME_FAILED' })
    await contract.client.runtime.removePodSandbox({ podSandboxId: pod.id })
    const again = await contract.runPod(pod.sandboxConfig)
    expect(again.id).not.toBe(pod.id)
  })

  contract.holds('lists are filtered by id, state and label', async () => {
    const one = await contract.runPod()
    const two = await contract.runPod()
    await contract.client.runtime.stopPodSandbox({ podSandboxId: two.id })
    expect((await list()).sort()).toEqual([one.id, two.id].sort())
    expect(await list({ filter: { id: one.id } })).toEqual([one.id])
    expect(await list({ filter: { state: { state: 'SANDBOX_NOTREADY' } } })).toEqual([two.id])
    expect(await list({ filter: { labelSelector: one.sandboxConfig.labels } })).toEqual([one.id])
    expect(await list({ filter: { labelSelector: { app: 'other' } } })).toEqual([])
  })

  contract.holds(
    'stopping a sandbox kills its containers and gives its address back; twice is harmless',
    async () => {
      const pod = await contract.runPod()
      const containerId = await pod.start('ignores')
      const podSandboxId = pod.id
      for (let times = 0; times < 2; times += 1)
        await contract.client.runtime.stopPodSandbox({ podSandboxId })
      const status = await pod.sandboxStatus()
      expect([status.state, status.network?.ip ?? '']).toEqual(['SANDBOX_NOTREADY', ''])
      expect(await pod.containerStatus(containerId)).toMatchObject({
        state: 'CONTAINER_EXITED',
        exitCode: 137,
      })
      await expect(contract.client.runtime.portForward({ podSandboxId, port: [80] })).rejects.toMatchObject({
        code: 'RUNTIME_FAILED',
      })
      await expect(contract.client.runtime.podSandboxStats({ podSandboxId })).rejects.toMatchObject({
        code: 'RUNTIME_FAILED',
      })
    },
  )

  contract.holds('removing a sandbox that still runs takes all of it away; twice is harmless', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('sleeps')
    const podSandboxId = pod.id
    for (let times = 0; times < 2; times += 1)
      await contract.client.runtime.removePodSandbox({ podSandboxId })
    expect(await list()).toEqual([])
    await expect(pod.sandboxStatus()).rejects.toMatchObject({ code: 'RUNTIME_NOT_FOUND' })
    await expect(pod.containerStatus(containerId)).rejects.toMatchObject({ code: 'RUNTIME_NOT_FOUND' })
  })

  contract.holds('a failing network leaves nothing behind, and the next try works', async () => {
    const config = contract.podConfig()
    contract.target.setCni('fails')
    await expect(contract.runPod(config)).rejects.toMatchObject({
      code: 'RUNTIME_FAILED',
      message: expect.stringContaining('out of order'),
    })
    expect(await list()).toEqual([])
    contract.target.setCni('works')
    expect((await (await contract.runPod(config)).sandboxStatus()).state).toBe('SANDBOX_READY')
  })

  contract.holds('a network that hangs is given up at the deadline, and the next try works', async () => {
    const config = contract.podConfig()
    contract.target.setCni('hangs')
    const run = contract.client.runtime.runPodSandbox({ config }, { deadlineMs: 600 })
    await expect(run).rejects.toMatchObject({ code: 'RUNTIME_TIMEOUT', method: 'RunPodSandbox' })
    contract.target.setCni('works')
    const retry = (): Promise<string> => contract.runPod(config).then(() => 'ready', String)
    await expect.poll(retry, { timeout: 30_000 * slowness, interval: 100 }).toBe('ready')
  })

  contract.holds('an unknown runtime handler is refused', async () => {
    const run = contract.client.runtime.runPodSandbox({
      config: contract.podConfig(),
      runtimeHandler: 'none',
    })
    await expect(run).rejects.toMatchObject({ code: 'RUNTIME_FAILED' })
    expect(await list()).toEqual([])
  })

  contract.holds('PortForward gives a URL', async () => {
    const pod = await contract.runPod()
    const { url } = await contract.client.runtime.portForward({ podSandboxId: pod.id, port: [80] })
    expect(new URL(url).protocol).toBe('http:')
  })

  contract.holds('stats of a sandbox cover its containers', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('sleeps')
    const { stats } = await contract.client.runtime.podSandboxStats({ podSandboxId: pod.id })
    expect(stats?.linux?.containers.map(({ attributes }) => attributes?.id)).toEqual([containerId])
    expect(stats?.linux?.memory?.workingSetBytes?.value).toBeGreaterThan(0)
    const all = await contract.client.runtime.listPodSandboxStats({ filter: { id: pod.id } })
    expect(all.stats.map(({ attributes }) => attributes?.id)).toEqual([pod.id])
  })
}
