import { beforeEach, describe, expect, it } from 'vitest'
import { judgeHealth } from '../../../src/decide/node/judge-health.ts'
import type { FakeRuntime } from '../../support/fake-runtime.ts'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig

beforeEach(() => {
  rig = new PodRig()
})

/** The checks that fail. */
function failing(): readonly string[] {
  return judgeHealth(rig.system.healthFacts).flatMap(({ name, failure }) =>
    failure === undefined ? [] : [name],
  )
}

type Method = Parameters<FakeRuntime['fault']>[0]

/** What a request is about: the sandbox or the container of a pod. */
interface About {
  readonly podSandboxId?: string
  readonly containerId?: string
  readonly config?: { readonly metadata?: { readonly name?: string } }
}

describe('a call for one pod that never returns', () => {
  const stuck = podManifest('stuck', { containers: [{ name: 'stuck', image: 'app:1' }] })

  function hang(method: Method): () => boolean {
    const { world } = rig.fake
    let hasHung = false
    const isStuck = ({ podSandboxId = '', containerId = '', config }: About): boolean =>
      [
        config?.metadata?.name,
        world.sandboxes.get(podSandboxId)?.config.metadata?.name,
        world.containers.get(containerId)?.config.metadata?.name,
      ].includes('stuck')
    const when = (request: About): boolean => {
      hasHung ||= isStuck(request)
      return isStuck(request)
    }
    rig.fake.fault(method, { kind: 'hangs' }, { times: 1000, when })
    return () => hasHung
  }

  /** Another pod restarts, one begins, and one ends; podd stays well. */
  async function expectLife(): Promise<void> {
    await rig.apply(podManifest('fresh'))
    await rig.clock.advance(1000)
    expect(rig.running()).toContain('fresh/main')
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    expect(rig.running()).toContain('fresh/main')
    expect(rig.container('fresh').restartCount).toBe(1)
    for (let minute = 0; minute < 10; minute += 1) {
      await rig.clock.advance(60_000)
      expect(failing()).toEqual([])
    }
    await rig.remove('fresh')
    await rig.clock.advance(40_000)
    expect(rig.pods('fresh')).toEqual([])
  }

  it.each<Method>([
    'RunPodSandbox',
    'CreateContainer',
    'StartContainer',
    'PodSandboxStatus',
    'ContainerStatus',
  ])('%s, at its start, holds up no other pod', async (method) => {
    await rig.start()
    const hasHung = hang(method)
    await rig.apply(stuck)
    await rig.clock.advance(1000)
    await expectLife()
    expect(hasHung()).toBe(true)
  })

  it.each<[method: Method, left: number]>([
    // Its sandbox is stopped all the same.
    ['StopContainer', 0],
    ['StopPodSandbox', 1],
    ['RemovePodSandbox', 1],
    ['RemoveContainer', 1],
  ])('%s, at its end, holds up no other pod', async (method, left) => {
    await rig.start()
    await rig.apply(stuck)
    const hasHung = hang(method)
    await rig.remove('stuck')
    await rig.clock.advance(1000)
    await expectLife()
    expect(hasHung()).toBe(true)
    expect(rig.pods('stuck')).toHaveLength(left)
  })
})

describe('podd checks itself', () => {
  it('and is well while its runtime is down, though not ready', async () => {
    await rig.start()
    expect(failing()).toEqual([])
    rig.fake.goDown()
    await rig.clock.advance(3_600_000)
    expect(failing()).toEqual(['runtime'])
    rig.fake.comeUp()
    await rig.clock.advance(2000)
    expect(failing()).toEqual([])
  })

  it('and is not ready before the runtime was listed', async () => {
    rig.fake.goDown()
    await rig.start()
    expect(failing()).toEqual(['runtime'])
  })

  it('and fails where the list of the runtime never ends', async () => {
    await rig.start()
    rig.fake.fault('ListContainers', { kind: 'hangs' }, { times: 1000, when: () => true })
    rig.system.reportRuntime(undefined)
    await rig.clock.advance(3_600_000)
    expect(failing()).toEqual(['runtime'])
  })

  it('and fails for a moment after it was stopped', async () => {
    await rig.start()
    await rig.clock.freeze(40_000)
    expect(failing()).toEqual(['event-loop'])
    await rig.clock.advance(31_000)
    expect(failing()).toEqual([])
  })
})
