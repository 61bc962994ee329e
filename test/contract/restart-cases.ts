import { expect } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { ContainerdEvents } from '../../src/runtime/events.ts'
import type { RuntimeEvent } from '../../src/pod/state/observed.ts'
import { commands } from '../support/contract-target.ts'
import { slowness } from '../support/slowness.ts'
import type { Contract } from './contract.ts'

/** The events of a runtime, and a runtime that goes away and comes back. */
export function restartCases(contract: Contract): void {
  const nativeEvents = (): ContainerdEvents => new ContainerdEvents(contract.client.connection, systemClock)

  const follow = async (
    stream: ContainerdEvents,
    check: (seen: readonly RuntimeEvent[]) => Promise<void>,
  ): Promise<void> => {
    const seen: RuntimeEvent[] = []
    const stop = new AbortController()
    const run = stream.run((event) => seen.push(event), stop.signal)
    try {
      await expect.poll(() => seen[0]?.kind).toBe('opened')
      await check(seen)
    } finally {
      stop.abort()
      await run
    }
  }
  const kindsOf = (seen: readonly RuntimeEvent[], id: string): string[] =>
    seen.flatMap((event) => ('containerId' in event && event.containerId === id ? [event.kind] : []))

  contract.holds("containerd's own events are served", async () => {
    expect(await nativeEvents().isServed()).toBe(true)
  })

  contract.holds("containerd's own events tell a container's life, and nothing of execs", async () => {
    await follow(nativeEvents(), async (seen) => {
      const pod = await contract.runPod()
      const containerId = await pod.start('sleeps')
      await contract.client.runtime.execSync({ containerId, cmd: commands.speaks, timeout: 5 })
      expect(kindsOf(seen, containerId)).toEqual(['created', 'started'])
      await contract.client.runtime.stopContainer({ containerId, timeout: 1 })
      await expect.poll(() => kindsOf(seen, containerId)[2]).toBe('exited')
      await contract.client.runtime.removePodSandbox({ podSandboxId: pod.id })
      await expect.poll(() => kindsOf(seen, containerId).at(-1)).toBe('deleted')
      await expect
        .poll(() => new Set(kindsOf(seen, pod.id)))
        .toEqual(new Set(['created', 'started', 'exited', 'deleted']))
    })
  })

  contract.holds('a call in flight breaks, the next one waits, and the container lives on', async () => {
    const pod = await contract.runPod()
    const containerId = await pod.begin('ignores')
    const { runtime } = contract.client
    const stop = runtime.stopContainer({ containerId, timeout: 30 }).catch((error: unknown) => error)
    await pod.untilTrue(containerId, 'wasTold')
    await contract.target.kill()
    expect(await stop).toMatchObject({ code: 'RUNTIME_UNAVAILABLE', method: 'StopContainer' })
    const list = runtime.listContainers({ filter: { id: containerId } })
    await contract.target.restart()
    const backMs = performance.now()
    expect((await list).containers.map(({ state }) => state)).toEqual(['CONTAINER_RUNNING'])
    expect(performance.now() - backMs).toBeLessThan(2000 * slowness)
    await runtime.stopContainer({ containerId, timeout: 0 })
    expect((await pod.containerStatus(containerId)).exitCode).toBe(137)
  })

  contract.holds('a change sent while the runtime is away is made when it is back', async () => {
    await contract.target.kill()
    const comesBack = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 200))
      await contract.target.restart()
    }
    const [pod] = await Promise.all([contract.runPod(), comesBack()])
    expect((await pod.sandboxStatus()).state).toBe('SANDBOX_READY')
  })

  contract.holds("containerd's own events are lost and open again, and what follows is told", async () => {
    await follow(nativeEvents(), async (seen) => {
      await contract.target.kill()
      await expect.poll(() => seen.at(-1)?.kind).toBe('lost')
      await contract.target.restart()
      await expect.poll(() => seen.at(-1)?.kind, { timeout: 20_000 * slowness }).toBe('opened')
      const pod = await contract.runPod()
      await expect.poll(() => kindsOf(seen, pod.id)).toEqual(['created', 'started'])
    })
  })
}
