import { expect } from 'vitest'
import { commands } from '../support/contract-target.ts'
import { slowness } from '../support/slowness.ts'
import type { Contract, ContractPod } from './contract.ts'

/** Containers: made, started, looked at, reached into, changed, stopped and removed. */
export function containerCases(contract: Contract): void {
  const stateOf = async (pod: ContractPod, id: string): Promise<string> =>
    (await pod.containerStatus(id)).state
  const ended = (pod: ContractPod, id: string): Promise<void> =>
    expect.poll(() => stateOf(pod, id), { timeout: 5000 * slowness, interval: 10 }).toBe('CONTAINER_EXITED')

  contract.holds('a container is created, then running, and keeps what it was made from', async () => {
    const pod = await contract.runPod()
    const id = await pod.create('sleeps')
    expect(await stateOf(pod, id)).toBe('CONTAINER_CREATED')
    await contract.client.runtime.startContainer({ containerId: id })
    expect(await pod.containerStatus(id)).toMatchObject({
      id,
      state: 'CONTAINER_RUNNING',
      metadata: { name: 'sleeps', attempt: 0 },
      labels: { program: 'sleeps' },
      annotations: { note: 'kept' },
      imageRef: expect.stringMatching(/^sha256:/),
      logPath: `${pod.sandboxConfig.logDirectory}/sleeps.log`,
      startedAt: expect.toSatisfy((nanos: number) => nanos > 0),
      finishedAt: 0,
    })
  })

  contract.holds('an exit is shown with its code, reason and time', async () => {
    const pod = await contract.runPod()
    const failed = await pod.start('fails')
    const succeeded = await pod.start('succeeds')
    await ended(pod, failed)
    await ended(pod, succeeded)
    expect(await pod.containerStatus(failed)).toMatchObject({ exitCode: 3, reason: 'Error' })
    const { exitCode, reason, createdAt, finishedAt } = await pod.containerStatus(succeeded)
    expect([exitCode, reason]).toEqual([0, 'Completed'])
    // Not later than startedAt: of a very short life containerd may note the end before the beginning.
    expect(finishedAt).toBeGreaterThanOrEqual(createdAt)
  })

  contract.holds('a command that is not there fails the start, and its container is over', async () => {
    const pod = await contract.runPod()
    const id = await pod.create('does-not-exist')
    await expect(contract.client.runtime.startContainer({ containerId: id })).rejects.toMatchObject({
      code: 'RUNTIME_FAILED',
      message: expect.stringContaining('/does/not/exist'),
    })
    expect(await pod.containerStatus(id)).toMatchObject({
      state: 'CONTAINER_EXITED',
      exitCode: 128,
      reason: 'StartError',
    })
  })

  contract.holds('an image that is not there fails the creation', async () => {
    const pod = await contract.runPod()
    const create = pod.create('sleeps', { image: { image: 'localhost/absent:1' } })
    await expect(create).rejects.toMatchObject({ code: 'RUNTIME_NOT_FOUND' })
  })

  contract.holds('a name and attempt can be taken once', async () => {
    const pod = await contract.runPod()
    await pod.create('sleeps')
    await expect(pod.create('sleeps')).rejects.toMatchObject({ code: 'RUNTIME_FAILED' })
    expect(await pod.create('sleeps', { metadata: { name: 'sleeps', attempt: 1 } })).not.toBe('')
  })

  contract.holds('a container starts once', async () => {
    const pod = await contract.runPod()
    const running = await pod.start('sleeps')
    const over = await pod.start('succeeds')
    await ended(pod, over)
    for (const containerId of [running, over]) {
      await expect(contract.client.runtime.startContainer({ containerId })).rejects.toMatchObject({
        code: 'RUNTIME_FAILED',
      })
    }
  })

  contract.holds('nothing starts in a sandbox that is over', async () => {
    const pod = await contract.runPod()
    await contract.client.runtime.stopPodSandbox({ podSandboxId: pod.id })
    await expect(pod.start('sleeps')).rejects.toMatchObject({ name: 'CriError' })
  })

  contract.holds('lists are filtered by id, sandbox, state and label', async () => {
    const one = await contract.runPod()
    const two = await contract.runPod()
    const [sleeps, created, other] = [
      await one.start('sleeps'),
      await one.create('obeys'),
      await two.start('sleeps'),
    ]
    const list = async (filter: object): Promise<string[]> => {
      const { containers } = await contract.client.runtime.listContainers({ filter })
      return containers.map(({ id }) => id).sort()
    }
    expect(await list({})).toEqual([sleeps, created, other].sort())
    expect(await list({ id: sleeps })).toEqual([sleeps])
    expect(await list({ podSandboxId: one.id })).toEqual([sleeps, created].sort())
    expect(await list({ state: { state: 'CONTAINER_CREATED' } })).toEqual([created])
    expect(await list({ labelSelector: { program: 'sleeps' } })).toEqual([sleeps, other].sort())
  })

  contract.holds('a stop ends a container with its own exit code; twice is harmless', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.begin('obeys')
    for (let times = 0; times < 2; times += 1) {
      await contract.client.runtime.stopContainer({ containerId, timeout: 10 })
    }
    expect(await pod.containerStatus(containerId)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 5 })
  })

  contract.holds('a stop without effect becomes a kill after the timeout', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.begin('ignores')
    const startedMs = performance.now()
    await contract.client.runtime.stopContainer({ containerId, timeout: 1 })
    expect(performance.now() - startedMs).toBeGreaterThan(950)
    expect((await pod.containerStatus(containerId)).exitCode).toBe(137)
  })

  contract.holds('a stop whose caller stops waiting is carried out all the same', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.begin('ignores')
    const signal = AbortSignal.timeout(200)
    await expect(
      contract.client.runtime.stopContainer({ containerId, timeout: 1 }, { signal }),
    ).rejects.toThrow()
    await ended(pod, containerId)
    expect((await pod.containerStatus(containerId)).exitCode).toBe(137)
  })

  contract.holds('a container is removed while it runs; twice is harmless', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('ignores')
    for (let times = 0; times < 2; times += 1) await contract.client.runtime.removeContainer({ containerId })
    await expect(pod.containerStatus(containerId)).rejects.toMatchObject({ code: 'RUNTIME_NOT_FOUND' })
  })

  contract.holds('ExecSync gives output and exit code', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('sleeps')
    const reply = await contract.client.runtime.execSync({ containerId, cmd: commands.speaks, timeout: 5 })
    expect([reply.exitCode, String(reply.stdout), String(reply.stderr)]).toEqual([3, 'out\n', 'err\n'])
  })

  contract.holds('ExecSync of a command that is not there fails', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('sleeps')
    const exec = contract.client.runtime.execSync({ containerId, cmd: commands.isMissing, timeout: 5 })
    await expect(exec).rejects.toMatchObject({ code: 'RUNTIME_FAILED', method: 'ExecSync' })
  })

  contract.holds('ExecSync ends at its timeout', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('sleeps')
    const startedMs = performance.now()
    const exec = contract.client.runtime.execSync({ containerId, cmd: commands.lingers, timeout: 1 })
    await expect(exec).rejects.toMatchObject({ code: 'RUNTIME_TIMEOUT', method: 'ExecSync' })
    expect(performance.now() - startedMs).toBeLessThan(2500 * slowness)
  })

  contract.holds('ExecSync is bounded although a grandchild holds its output', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('sleeps')
    const startedMs = performance.now()
    const exec = contract.client.runtime.execSync(
      { containerId, cmd: commands.leavesChild, timeout: 1 },
      { deadlineMs: 1200 },
    )
    await expect(exec).rejects.toMatchObject({ code: 'RUNTIME_TIMEOUT' })
    expect(performance.now() - startedMs).toBeLessThan(2500 * slowness)
  })

  contract.holds('ExecSync needs a running container', async () => {
    const pod = await contract.runPod()
    const created = await pod.create('sleeps')
    const over = await pod.start('succeeds')
    await ended(pod, over)
    for (const containerId of [created, over]) {
      const exec = contract.client.runtime.execSync({ containerId, cmd: ['true'], timeout: 1 })
      await expect(exec).rejects.toMatchObject({ code: 'RUNTIME_FAILED' })
    }
  })

  contract.holds('Exec and Attach give URLs, and Exec wants a stream', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('sleeps')
    const { runtime } = contract.client
    const exec = await runtime.exec({ containerId, cmd: ['true'], stdout: true })
    const attach = await runtime.attach({ containerId, stdout: true })
    expect([exec.url, attach.url].map((url) => new URL(url).protocol)).toEqual(['http:', 'http:'])
    await expect(runtime.exec({ containerId, cmd: ['true'] })).rejects.toMatchObject({
      code: 'RUNTIME_INVALID',
    })
  })

  contract.holds('UpdateContainerResources changes a container that runs, and its status tells', async () => {
    const pod = await contract.runPod()
    const resources = { memoryLimitInBytes: 32 << 20, cpuShares: 100 }
    const containerId = await pod.start('sleeps', { linux: { resources } })
    const linux = { memoryLimitInBytes: 64 << 20, cpuShares: 200 }
    await contract.client.runtime.updateContainerResources({ containerId, linux })
    expect((await pod.containerStatus(containerId)).resources?.linux).toMatchObject(linux)
  })

  contract.holds('ReopenContainerLog works on what runs', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('sleeps')
    expect(await contract.client.runtime.reopenContainerLog({ containerId })).toEqual({})
    const over = await pod.start('succeeds')
    await ended(pod, over)
    await expect(contract.client.runtime.reopenContainerLog({ containerId: over })).rejects.toMatchObject({
      code: 'RUNTIME_FAILED',
    })
  })

  contract.holds('ContainerStats and ListContainerStats measure what runs', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.start('sleeps')
    const { stats } = await contract.client.runtime.containerStats({ containerId })
    expect(stats?.attributes?.id).toBe(containerId)
    expect(stats?.memory?.workingSetBytes?.value).toBeGreaterThan(0)
    const all = await contract.client.runtime.listContainerStats({ filter: { podSandboxId: pod.id } })
    expect(all.stats.map(({ attributes }) => attributes?.id)).toEqual([containerId])
  })
}
