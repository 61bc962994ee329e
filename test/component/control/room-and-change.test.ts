import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { openRules } from '../../support/object-rules.ts'
import { plainCgroups } from '../../support/plain-pod-host.ts'
import { PodRig, onHostPort, podManifest } from './pod-rig.ts'

/** A host with two processors. */
function smallHost(): PodRig {
  return new PodRig({ admission: openRules({ maxPods: 110, allocatable: { cpu: '2', memory: '1Gi' } }) })
}

const asking = (name: string, cpu: string, spec: JsonObject = {}): JsonObject =>
  podManifest(name, {
    containers: [{ name: 'main', image: 'app:1', resources: { requests: { cpu } } }],
    ...spec,
  })

const job = (name: string, image = 'app:1', more: JsonObject = {}): JsonObject =>
  podManifest(name, { restartPolicy: 'Never', containers: [{ name: 'main', image }], ...more })

const resizeCondition = (rig: PodRig, name: string): string | undefined =>
  rig.pod(name).status.conditions.find(({ type }) => type === 'PodResizePending')?.reason

describe('after podd was killed', () => {
  // id: counts-no-finished-pod
  it('pods that have finished take no room from those that run, nor from new ones', async () => {
    const rig = smallHost()
    await rig.start()
    rig.fake.script('main', { kind: 'exits', afterMs: 100, exitCode: 0 })
    const jobs = ['job-1', 'job-2', 'job-3']
    await rig.apply(...jobs.map((name) => asking(name, '650m', { restartPolicy: 'Never' })))
    await rig.clock.advance(1000)
    for (const name of jobs) expect(rig.pod(name).status.phase).toBe('Succeeded')
    rig.fake.script('main', { kind: 'runs' })
    await rig.apply(asking('steady', '1'))
    await rig.kill()
    await rig.start()
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['steady/main'])
    await rig.apply(asking('late', '1'))
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['late/main', 'steady/main'])
    for (const name of jobs) expect(rig.pod(name).status.phase).toBe('Succeeded')
  })

  // id: removes-what-ended-meanwhile
  it('a pod that was removed, and whose containers had ended by then, goes', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(job('web', 'app:1', { terminationGracePeriodSeconds: 30 }))
    rig.fake.fault('StopPodSandbox', { kind: 'hangs' })
    await rig.remove('web')
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual([])
    expect(rig.pods('web')).toHaveLength(1)
    await rig.kill()
    rig.fake.clearFaults()
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.pods('web')).toEqual([])
    expect(rig.isEmpty()).toBe(true)
  })

  // id: ends-pod-that-has-no-room
  it('a pod that ran, that nobody wants any more and that would not be admitted again, goes', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(asking('web', '2'))
    await rig.kill()
    await rig.remove('web')
    await rig.apply(asking('other', '2'))
    await rig.start()
    await rig.clock.advance(40_000)
    expect(rig.running()).toEqual(['other/main'])
    expect(rig.pods('web')).toEqual([])
  })
})

describe('a manifest that was changed while podd was down', () => {
  it.each([
    [
      'an image that cannot be had',
      { containers: [{ name: 'main', image: 'gone:1', env: [{ name: 'V' }] }] },
    ],
    ['a port that is taken', onHostPort(8080)],
  ])('costs an error and no outage where it asks for %s', async (_what, spec) => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(podManifest('holder', onHostPort(8080)), podManifest('web'))
    const { uid } = rig.pod('web').metadata
    await rig.terminate()
    await rig.apply(podManifest('web', spec))
    await rig.start()
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['holder/main', 'web/main'])
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.system.problems()).toEqual([
      expect.objectContaining({ message: expect.stringContaining('the old one keeps running') }),
    ])
  })

  it('replaces the pod as soon as the new one can start', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    await rig.kill()
    await rig.apply(
      podManifest('web', { containers: [{ name: 'main', image: 'app:2', env: [{ name: 'V' }] }] }),
    )
    await rig.start()
    await rig.clock.advance(5000)
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
    expect(rig.container('web').image).toBe('app:2')
  })
})

describe('a pod that ended while podd was down', () => {
  it('holds no room against those that come', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(asking('job', '2', { restartPolicy: 'Never' }))
    await rig.terminate()
    rig.fake.exitContainer('main', 0)
    await rig.apply(asking('next', '1'))
    await rig.start()
    await rig.clock.advance(2000)
    expect(rig.pod('job').status.phase).toBe('Succeeded')
    expect(rig.running()).toEqual(['next/main'])
  })
})

describe('a pod that asks for more than there is', () => {
  it('takes nothing from others meanwhile, and is made anew with what it was let in with', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(asking('web', '100m'))
    await rig.apply(asking('web', '50'))
    expect(resizeCondition(rig, 'web')).toBe('Infeasible')
    await rig.apply(asking('other', '1'))
    expect(rig.running()).toEqual(['other/main', 'web/main'])

    const shares = (): unknown[] =>
      rig.fake.calls('CreateContainer').map(({ request }) => {
        const { config } = request as { config: { linux: { resources: { cpuShares: number } } } }
        return config.linux.resources.cpuShares
      })
    rig.fake.world.kill(
      [...rig.fake.world.containers.values()].find(({ sandbox }) => sandbox.config.metadata?.name === 'web')!,
    )
    await rig.clock.advance(30_000)
    expect(rig.container('web').restartCount).toBe(1)
    expect(shares()).toEqual([102, 1024, 102])
    expect(resizeCondition(rig, 'web')).toBe('Infeasible')

    // The next podd knows what was admitted.
    await rig.kill()
    await rig.start()
    await rig.apply(asking('third', '500m'))
    expect(rig.running()).toEqual(['other/main', 'third/main', 'web/main'])
    expect(resizeCondition(rig, 'web')).toBe('Infeasible')
    expect(rig.records.named('web')?.allocated).toEqual({ main: { limits: {}, requests: { cpu: '100m' } } })
  })

  it('is given it when there is room, before anybody who comes later', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(asking('web', '100m'), asking('other', '1500m'))
    await rig.apply(asking('web', '1'))
    expect(resizeCondition(rig, 'web')).toBe('Deferred')
    await rig.remove('other')
    await rig.clock.advance(35_000)
    expect(resizeCondition(rig, 'web')).toBeUndefined()
    expect(rig.container('web').allocatedResources).toEqual({ cpu: '1' })
    expect(rig.records.named('web')?.allocated).toBeUndefined()
    await rig.apply(asking('late', '1500m'))
    expect(rig.pod('late').status).toMatchObject({ phase: 'Pending', reason: 'Blocked' })
  })

  it('counts what was let in at once, in the same reading of the manifests', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(asking('web', '100m'))
    await rig.apply(asking('web', '50'), asking('zeta', '1'))
    expect(rig.running()).toEqual(['web/main', 'zeta/main'])
  })

  // id: keeps-old-pod-running-host
  it('in a version that needs a new pod leaves the old one running, with the reason shown, until there is room', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(asking('web', '100m'))
    const { uid } = rig.pod('web').metadata
    await rig.apply(asking('web', '50', { hostname: 'other' }))
    await rig.clock.advance(5000)
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.container('web').restartCount).toBe(0)
    expect(rig.system.problems()[0]?.message).toMatch(/the old one keeps running.*cpu/iu)
    await rig.apply(asking('web', '200m', { hostname: 'other' }))
    await rig.clock.advance(5000)
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.system.problems()).toEqual([])
  })

  it('and goes back on that has what it had', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(asking('web', '100m'))
    await rig.apply(asking('web', '50'))
    await rig.apply(asking('web', '100m'))
    expect(resizeCondition(rig, 'web')).toBeUndefined()
    expect(rig.records.named('web')?.allocated).toBeUndefined()
    expect(rig.container('web').restartCount).toBe(0)
  })

  it('that waits for room runs when it is told to ask for less', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(asking('web', '4'))
    expect(rig.pod('web').status).toMatchObject({ phase: 'Pending', reason: 'Blocked' })
    await rig.apply(asking('web', '1'))
    await rig.clock.advance(1000)
    expect(rig.pod('web').status.phase).toBe('Running')
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('a pod that asks for more as a whole', () => {
  const whole = (name: string, cpu: string): JsonObject =>
    podManifest(name, { resources: { limits: { cpu }, requests: { cpu } } })
  const cpuOf = (rig: PodRig, name: string) => {
    const { allocatedResources, resources } = rig.pod(name).status
    return [allocatedResources?.['cpu'], resources?.limits?.['cpu']]
  }

  it('is given it in place when there is room, by a podd that came later, too', async () => {
    const rig = smallHost()
    await rig.start()
    await rig.apply(whole('web', '100m'), asking('other', '1500m'))
    const { uid } = rig.pod('web').metadata
    await rig.apply(whole('web', '1'))
    expect(resizeCondition(rig, 'web')).toBe('Deferred')
    expect(cpuOf(rig, 'web')).toEqual(['100m', '100m'])
    await rig.kill()
    await rig.start()
    expect(resizeCondition(rig, 'web')).toBe('Deferred')
    expect(cpuOf(rig, 'web')).toEqual(['100m', '100m'])
    await rig.remove('other')
    await rig.clock.advance(35_000)
    expect(resizeCondition(rig, 'web')).toBeUndefined()
    expect(cpuOf(rig, 'web')).toEqual(['1', '1'])
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.container('web').restartCount).toBe(0)
    const [update] = rig.fake.calls('UpdateContainerResources')
    expect(update?.request).toMatchObject({ linux: { cpuQuota: 100_000 } })
  })

  it('has its cgroup grow before its containers, and shrink after them', async () => {
    const rig = smallHost()
    const quotas: unknown[] = []
    rig.host = {
      cgroups: {
        ...plainCgroups,
        ensure: async (uid, pod, before = pod) => {
          quotas.push([before, pod].map(({ spec }) => spec.resources?.limits['cpu']))
          return plainCgroups.ensure(uid, pod, before)
        },
      },
    }
    await rig.start()
    await rig.apply(whole('web', '500m'))
    quotas.splice(0)
    await rig.apply(whole('web', '1'))
    await rig.clock.advance(2000)
    await rig.apply(whole('web', '200m'))
    await rig.clock.advance(2000)
    expect(quotas).toEqual([
      ['500m', '1'],
      ['1', '1'],
      ['1', '200m'],
      ['200m', '200m'],
    ])
    expect(rig.fake.calls('UpdateContainerResources')).toHaveLength(2)
  })

  it('is tried again where its cgroup cannot be changed', async () => {
    const rig = smallHost()
    let problem: Error | undefined
    rig.host = {
      cgroups: {
        ...plainCgroups,
        ensure: async (...given) => {
          if (problem !== undefined) throw problem
          return plainCgroups.ensure(...given)
        },
      },
    }
    await rig.start()
    await rig.apply(whole('web', '500m'))
    problem = new Error('EBUSY')
    await rig.apply(whole('web', '1'))
    const inProgress = () =>
      rig.pod('web').status.conditions.find(({ type }) => type === 'PodResizeInProgress')?.message
    expect(inProgress()).toBe('EBUSY')
    expect(cpuOf(rig, 'web')).toEqual(['1', '500m'])
    problem = undefined
    await rig.clock.advance(30_000)
    expect(inProgress()).toBeUndefined()
    expect(cpuOf(rig, 'web')).toEqual(['1', '1'])
  })
})

describe('a pod that has ended', () => {
  it('runs again, as a new pod, when its image or its deadline changes', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(job('once'))
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    const { uid } = rig.pod('once').metadata
    await rig.apply(job('once', 'app:2'))
    await rig.clock.advance(3000)
    expect(rig.running()).toEqual(['once/main'])
    expect(rig.container('once')).toMatchObject({ image: 'app:2', restartCount: 0 })
    expect(rig.pod('once').metadata.uid).not.toBe(uid)

    await rig.apply(job('late', 'app:1', { activeDeadlineSeconds: 5 }))
    await rig.clock.advance(40_000)
    expect(rig.pod('late').status).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' })
    await rig.apply(job('late', 'app:1', { activeDeadlineSeconds: 500 }))
    await rig.clock.advance(3000)
    expect(rig.running()).toContain('late/main')
  })

  it('stays ended when only labels change', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(job('once'))
    rig.fake.exitContainer('main', 0)
    await rig.clock.advance(1000)
    await rig.apply({ ...job('once'), metadata: { name: 'once', labels: { a: 'b' } } })
    await rig.clock.advance(3000)
    expect(rig.pod('once').status.phase).toBe('Succeeded')
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
  })

  it('gives back its volumes and its cgroup once, whatever changes later', async () => {
    const rig = new PodRig()
    const removed: string[] = []
    rig.host = {
      cgroups: {
        ...plainCgroups,
        remove: async (uid) => void removed.push(uid),
      },
    }
    await rig.start()
    await rig.apply(job('once'), podManifest('web'))
    const { uid } = rig.pod('once').metadata
    await rig.clock.advance(1000)
    expect(rig.tornDown).toEqual([])
    rig.fake.world.kill(
      [...rig.fake.world.containers.values()].find(
        ({ sandbox }) => sandbox.config.metadata?.name === 'once',
      )!,
    )
    await rig.clock.advance(120_000)
    expect([rig.tornDown, removed]).toEqual([[uid], [uid]])
    expect(rig.pod('once').status.phase).toBe('Failed')

    rig.prepared.splice(0)
    await rig.apply({ ...job('once'), metadata: { name: 'once', labels: { a: 'b' } } })
    await rig.clock.advance(120_000)
    expect(rig.tornDown).toEqual([uid])
    expect(rig.prepared).not.toContain(uid)
  })

  it('gives them back after its eviction or deadline, too', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(job('late', 'app:1', { activeDeadlineSeconds: 5, terminationGracePeriodSeconds: 1 }))
    const { uid } = rig.pod('late').metadata
    await rig.clock.advance(40_000)
    expect(rig.tornDown).toEqual([uid])
    expect(rig.pod('late').status.phase).toBe('Failed')
  })
})

describe('a container that is stopped to be changed', () => {
  it.each(['Never', 'OnFailure'])(
    'runs again under the policy %s though the manifest changed once more',
    async (restartPolicy) => {
      const rig = new PodRig()
      await rig.start()
      const version = (image: string): JsonObject => job('web', image, { restartPolicy })
      await rig.apply(version('app:1'))
      rig.fake.fault('StopContainer', { kind: 'delays', delayMs: 5000 })
      await rig.apply(version('app:2'))
      await rig.clock.advance(1000)
      await rig.apply(version('side:1'))
      await rig.clock.advance(30_000)
      expect(rig.running()).toEqual(['web/main'])
      expect(rig.container('web')).toMatchObject({ image: 'side:1', restartCount: 1 })
      expect(rig.records.named('web')?.restartRequested).toBeUndefined()
    },
  )

  it('runs again though podd was killed meanwhile', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(job('web'))
    rig.fake.fault('CreateContainer', { kind: 'delays', delayMs: 5000 })
    await rig.apply(job('web', 'app:2'))
    await rig.clock.advance(1000)
    await rig.kill()
    await rig.start()
    await rig.clock.advance(30_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').image).toBe('app:2')
  })
})

describe('a pod that runs once', () => {
  it('has failed where its sandbox died before its work began, and says so', async () => {
    const rig = new PodRig()
    await rig.start()
    rig.fake.addRemoteImage('big:1')
    rig.fake.fault('PullImage', { kind: 'delays', delayMs: 60_000 })
    await rig.apply(job('once', 'big:1', { initContainers: [{ name: 'init', image: 'app:1' }] }))
    rig.fake.exitContainer('init', 0)
    await rig.clock.advance(2000)
    await rig.kill()
    for (const sandbox of rig.fake.world.sandboxes.values()) rig.fake.world.stopSandbox(sandbox)
    await rig.start()
    await rig.clock.advance(120_000)
    expect(rig.running()).toEqual([])
    expect(rig.pod('once').status).toMatchObject({
      phase: 'Failed',
      reason: 'SandboxLost',
      message: expect.stringContaining('restart policy'),
    })
    expect(rig.reasons('once')).toContain('SandboxLost')
    // Whoever changes it gets a new pod.
    await rig.apply(job('once'))
    await rig.clock.advance(3000)
    expect(rig.running()).toEqual(['once/main'])
  })
})

describe('a pod whose record was lost', () => {
  it('keeps the runtime handler of its class', async () => {
    const rig = new PodRig({
      admission: {
        ...openRules({ maxPods: 110 }),
        runtimeClasses: new Map([['plain', { handler: 'runc' }]]),
      },
    })
    await rig.start()
    await rig.apply(podManifest('web', { runtimeClassName: 'plain' }))
    await rig.kill()
    rig.records.saved.clear()
    await rig.start()
    for (const sandbox of rig.fake.world.sandboxes.values()) rig.fake.world.stopSandbox(sandbox)
    await rig.clock.advance(90_000)
    const handlers = rig.fake.calls('RunPodSandbox').map(({ request }) => {
      const { runtimeHandler } = request as { runtimeHandler?: string }
      return runtimeHandler
    })
    expect(handlers).toEqual(['runc', 'runc'])
  })
})

describe('a source that gives more pods than could ever run here', () => {
  const many = (from: number, to: number): readonly JsonObject[] =>
    Array.from({ length: to - from }, (_, index) =>
      podManifest(`web-${String(from + index).padStart(5, '0')}`),
    )
  const told = (rig: PodRig): readonly string[] =>
    rig.system.problems().flatMap(({ message }) => (message.includes('at most') ? [message] : []))

  it('has twice as many followed, and of the others there are no records, no status and one problem', async () => {
    const rig = new PodRig({ settings: { maxPods: 3 } })
    await rig.start()
    await rig.apply(...many(0, 2000))
    expect(rig.running()).toHaveLength(3)
    expect(rig.system.statuses.list()).toHaveLength(6)
    expect(rig.records.saved.size).toBe(6)
    const names = Array.from(
      { length: 10 },
      (_, index) => `default/web-${String(index + 6).padStart(5, '0')}`,
    )
    expect(told(rig)).toEqual([
      `gives 2000 pods, and at most 3 run here: 6 are followed, and these are not: ${names.join(', ')} and 1984 more`,
    ])
    await rig.kill()
    await rig.start()
    expect(rig.running()).toHaveLength(3)
    expect(rig.records.saved.size).toBe(6)
    await rig.replaceAll()
    await rig.clock.advance(60_000)
    expect(rig.isEmpty()).toBe(true)
    expect(told(rig)).toEqual([])
  })

  it('ends none that runs for one that stands before it', async () => {
    const rig = new PodRig({ settings: { maxPods: 3 } })
    await rig.start()
    await rig.apply(...many(100, 106))
    const running = rig.running()
    expect(running).toHaveLength(3)
    await rig.replaceAll(...many(0, 100), ...many(100, 106))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(running)
    expect(rig.fake.calls('StopContainer')).toHaveLength(0)
    expect(rig.system.statuses.list()).toHaveLength(6)
  })

  it('has more of them followed within a sync period when others have ended', async () => {
    const rig = new PodRig({ settings: { maxPods: 3 } })
    await rig.start()
    const jobs = Array.from({ length: 9 }, (_, at) => podManifest(`job-${at}`, { restartPolicy: 'Never' }))
    await rig.apply(...jobs)
    expect(rig.system.statuses.list()).toHaveLength(6)
    rig.fake.script('main', { kind: 'exits', afterMs: 1000, exitCode: 0 })
    for (const container of rig.fake.world.containers.values()) rig.fake.world.exit(container, 0)
    await rig.clock.advance(125_000)
    expect(rig.system.statuses.list().map(({ status }) => status.phase)).toEqual(
      Array.from({ length: 9 }, () => 'Succeeded'),
    )
    expect(told(rig)).toEqual([])
    await rig.kill()
    await rig.start()
    await rig.clock.advance(10_000)
    expect(rig.system.statuses.list()).toHaveLength(9)
    expect(rig.fake.calls('StartContainer')).toHaveLength(9)
  })

  it('has more of them followed when others go', async () => {
    const rig = new PodRig({ settings: { maxPods: 3 } })
    await rig.start()
    await rig.apply(...many(0, 8))
    await rig.replaceAll(...many(4, 8))
    await rig.clock.advance(60_000)
    expect(rig.system.statuses.list().map(({ metadata }) => metadata.name)).toEqual([
      'web-00004',
      'web-00005',
      'web-00006',
      'web-00007',
    ])
    expect(told(rig)).toEqual([])
  })
})
