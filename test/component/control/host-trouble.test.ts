import { beforeEach, describe, expect, it } from 'vitest'
import { SystemdError } from '../../../src/host/cgroups/systemd-bus.ts'
import { plainCgroups } from '../../support/plain-pod-host.ts'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig
const full = new Error('ENOSPC: no space left on device')

beforeEach(() => {
  rig = new PodRig()
})

describe('a disk that cannot be written', () => {
  it('leaves pods running, and shows what a new one waits for until it can', async () => {
    await rig.start()
    await rig.apply(podManifest('old'))
    rig.records.failure = full
    await rig.apply(podManifest('web'))
    expect(rig.running()).toEqual(['old/main'])
    expect(rig.pod('web').status).toMatchObject({ phase: 'Pending', reason: 'FailedSync' })
    expect(rig.pod('web').status.message).toContain('no space left')
    expect(rig.reasons('web')).toEqual(['FailedSync'])
    await rig.clock.advance(60_000)
    rig.records.failure = undefined
    await rig.clock.advance(16_000)
    expect(rig.running()).toEqual(['old/main', 'web/main'])
    expect(rig.pod('web').status.reason).toBeUndefined()
  })

  it('does not hide that a container crashed, and it runs again when the disk can be written', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    rig.records.failure = full
    rig.fake.exitContainer('main', 3)
    await rig.clock.advance(100)
    expect(rig.container('web').state.terminated?.exitCode).toBe(3)
    expect(rig.condition('web', 'Ready')).toBe('False')
    rig.records.failure = undefined
    await rig.clock.advance(16_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').restartCount).toBe(1)
  })

  it('does not keep a pod from ending', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    rig.records.failure = full
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual([])
    expect(rig.fake.world.sandboxes.size).toBe(0)
    expect(rig.pod('web').metadata.deletionTimestamp).toBeDefined()
    rig.records.failure = undefined
    await rig.clock.advance(5000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('is written at last, also where nothing else happens', async () => {
    await rig.start()
    const readinessProbe = { exec: { command: ['ready'] }, periodSeconds: 1 }
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'app:1', readinessProbe }] }))
    rig.records.failure = full
    await rig.clock.advance(5000)
    expect(rig.condition('web', 'Ready')).toBe('True')
    expect(rig.records.named('web')?.conditions['Ready']?.status).toBe('False')
    rig.records.failure = undefined
    await rig.clock.advance(20_000)
    expect(rig.records.named('web')?.conditions['Ready']?.status).toBe('True')
  })
})

describe('what goes wrong for one pod', () => {
  it.each([
    ['a plain error', () => new TypeError('x is not a function')],
    ['no error at all', () => undefined],
  ])('%s of the host does not matter to others, and is tried again', async (_, make) => {
    let broken = true
    let bad: string | undefined
    rig.host = {
      cgroups: {
        ...plainCgroups,
        ensure: async (uid, { metadata }) => {
          if (metadata.name === 'bad') bad = uid
          if (broken && uid === bad) throw make()
          return `/kubepods/pod${uid}`
        },
        remove: async (uid) => {
          if (broken && uid === bad) throw make()
        },
      },
    }
    await rig.start()
    await rig.apply(podManifest('bad'), podManifest('web'))
    expect(rig.running()).toEqual(['web/main'])
    await rig.clock.advance(60_000)
    broken = false
    await rig.clock.advance(16_000)
    expect(rig.running()).toEqual(['bad/main', 'web/main'])
    broken = true
    await rig.remove('bad')
    await rig.clock.advance(10_000)
    expect(rig.pod('bad').metadata.deletionTimestamp).toBeDefined()
    broken = false
    await rig.clock.advance(10_000)
    expect(rig.pods('bad')).toEqual([])
    expect(rig.failures).toEqual([])
  })

  describe('where systemd makes no cgroup because the host is stopping', () => {
    let isStopping: boolean

    beforeEach(() => {
      rig.host = {
        cgroups: {
          ...plainCgroups,
          ensure: async (uid) => {
            if (!isStopping) return `/kubepods/pod${uid}`
            const message = 'Transaction for kubepods.slice/start is destructive'
            const busName = 'org.freedesktop.systemd1.TransactionIsDestructive'
            throw new SystemdError('StartTransientUnit', busName, message)
          },
        },
      }
    })

    it('a new pod gets no sandbox and no warning, and starts when systemd makes cgroups again', async () => {
      isStopping = true
      await rig.start()
      await rig.apply(podManifest('web'))
      await rig.clock.advance(60_000)
      expect(rig.fake.world.sandboxes.size).toBe(0)
      expect(rig.reasons('web')).toEqual([])
      expect(rig.pod('web').status.reason).toBeUndefined()
      isStopping = false
      await rig.clock.advance(16_000)
      expect(rig.running()).toEqual(['web/main'])
    })

    it('a container that ends is not started again, which is no failed sync, until systemd makes cgroups again', async () => {
      isStopping = false
      await rig.start()
      await rig.apply(podManifest('web'))
      isStopping = true
      rig.fake.exitContainer('main', 143)
      await rig.clock.advance(60_000)
      expect(rig.running()).toEqual([])
      expect(rig.reasons('web')).not.toContain('FailedSync')
      expect(rig.pod('web').status.reason).toBeUndefined()
      isStopping = false
      // The back-off of a container that ended goes on.
      await rig.clock.advance(60_000)
      expect(rig.running()).toEqual(['web/main'])
    })
  })

  describe('while the host is going down', () => {
    beforeEach(async () => {
      rig.hostState = 'running'
      await rig.start()
      await rig.apply(podManifest('web'))
      expect(rig.running()).toEqual(['web/main'])
    })

    it('a container that was killed is not started again, and starts when the shutdown is called off', async () => {
      rig.hostState = 'stopping'
      rig.fake.exitContainer('main', 143)
      await rig.clock.advance(600_000)
      expect(rig.running()).toEqual([])
      expect(rig.fake.calls('CreateContainer')).toHaveLength(1)
      expect(rig.container('web').state.terminated?.exitCode).toBe(143)
      rig.hostState = 'running'
      await rig.clock.advance(60_000)
      expect(rig.running()).toEqual(['web/main'])
    })

    it('a new pod gets no sandbox and waits, and starts when the shutdown is called off', async () => {
      rig.hostState = 'stopping'
      await rig.apply(podManifest('late'))
      await rig.clock.advance(60_000)
      expect(rig.running()).toEqual(['web/main'])
      expect(rig.fake.world.sandboxes.size).toBe(1)
      expect(rig.reasons('late')).toEqual([])
      // One that comes after podd knows is not admitted.
      await rig.apply(podManifest('later'))
      await rig.clock.advance(60_000)
      expect(rig.pod('later').status.message).toContain('the node is shutting down')
      rig.hostState = 'running'
      await rig.clock.advance(60_000)
      expect(rig.running()).toEqual(['late/main', 'later/main', 'web/main'])
    })

    it('a failing liveness probe stops no container', async () => {
      const livenessProbe = { exec: { command: ['true'] }, periodSeconds: 1, failureThreshold: 1 }
      await rig.apply(
        podManifest('probed', { containers: [{ name: 'probed', image: 'app:1', livenessProbe }] }),
      )
      await rig.clock.advance(5000)
      rig.hostState = 'stopping'
      rig.probe = () => ({ result: 'failure', output: 'gone' })
      await rig.clock.advance(60_000)
      expect(rig.running()).toEqual(['probed/probed', 'web/main'])
      expect(rig.reasons('probed')).not.toContain('Killing')
    })

    it('a pod is ended at once though the answer whether it is lets wait', async () => {
      rig.hostState = 'busy'
      rig.fake.exitContainer('main', 143)
      await rig.settle()
      await rig.remove('web')
      await rig.settle()
      expect(rig.pods('web')).toEqual([])
      expect(rig.fake.calls('CreateContainer')).toHaveLength(1)
    })

    it('podd goes on as ever where nobody answers whether it is', async () => {
      rig.hostState = 'silent'
      rig.fake.exitContainer('main', 143)
      await rig.clock.advance(60_000)
      expect(rig.running()).toEqual(['web/main'])
    })
  })

  it('whose watchers fail: the pod runs all the same', async () => {
    await rig.start()
    rig.system.statuses.subscribe(() => {
      throw new Error('the client is gone')
    })
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.failures).toEqual([])
  })

  it('of which the record cannot be used: the others are taken up', async () => {
    await rig.start()
    await rig.apply(podManifest('web'), podManifest('bad'))
    const bad = rig.records.named('bad')!
    await rig.kill()
    rig.records.saved.set(bad.uid, { ...bad, manifest: { kind: 'Pod' } })
    const before = rig.fake.changes().length
    await rig.start()
    expect(rig.pod('web').status.phase).toBe('Running')
    expect(rig.pod('bad').status.phase).toBe('Running')
    expect(rig.fake.changes().length).toBe(before)
    expect(rig.failures).toEqual([])
  })

  it('that nobody knows and that tells little of itself: it is ended', async () => {
    await rig.fake.runtime.runPodSandbox({
      config: {
        metadata: { name: 'Odd_Name', uid: 'odd', namespace: 'default', attempt: 0 },
        labels: {
          'io.kubernetes.pod.name': 'Odd_Name',
          'io.kubernetes.pod.namespace': 'default',
          'io.kubernetes.pod.uid': 'odd',
        },
      },
    })
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.fake.sandboxesOf('Odd_Name')).toEqual([])
  })
})

describe('probes', () => {
  const probe = { exec: { command: ['ask'] }, periodSeconds: 1, failureThreshold: 1 }

  it('turn a pod ready and unready, at once', async () => {
    await rig.start()
    rig.probe = () => ({ result: 'failure', output: 'not yet' })
    await rig.apply(
      podManifest('web', { containers: [{ name: 'main', image: 'app:1', readinessProbe: probe }] }),
    )
    await rig.clock.advance(5000)
    expect(rig.condition('web', 'Ready')).toBe('False')
    rig.probe = () => ({ result: 'success', output: '' })
    await rig.clock.advance(1000)
    expect(rig.condition('web', 'Ready')).toBe('True')
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
  })

  it('restart a container that is not alive, with backoff', async () => {
    await rig.start()
    rig.probe = () => ({ result: 'failure', output: 'dead' })
    await rig.apply(
      podManifest('web', { containers: [{ name: 'main', image: 'app:1', livenessProbe: probe }] }),
    )
    await rig.clock.advance(60_000)
    const starts = rig.fake.calls('StartContainer').map(({ atMs }) => atMs)
    expect(starts.length).toBeGreaterThanOrEqual(3)
    expect(starts.length).toBeLessThanOrEqual(5)
    expect(rig.reasons('web')).toContain('Unhealthy')
  })
})

describe('a restart that somebody asks for', () => {
  it('is refused where it cannot be written down, and does not come later', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    const restart = () => rig.system.findPod(rig.pod('web').metadata.uid)?.restart(undefined)
    rig.records.failure = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
    await expect(restart()).rejects.toThrow('no space left')
    rig.records.failure = undefined
    await rig.clock.advance(60_000)
    expect(rig.container('web').restartCount).toBe(0)
    expect(await restart()).toEqual(['main'])
    await rig.clock.advance(35_000)
    expect(rig.container('web').restartCount).toBe(1)
  })

  it('is refused each time while the disk is full, and none of those comes later', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    const restart = () => rig.system.findPod(rig.pod('web').metadata.uid)?.restart(undefined)
    rig.records.failure = full
    const refused = Array.from({ length: 6 }, () => expect(restart()).rejects.toThrow('no space left'))
    await Promise.all(refused)
    rig.records.failure = undefined
    await rig.apply(podManifest('web', {}, { labels: { any: 'change' } }))
    await rig.clock.advance(60_000)
    expect(rig.container('web').restartCount).toBe(0)
    expect(rig.records.named('web')?.restartRequested).toBeUndefined()
  })

  it('is carried out although one beside it was refused', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    const restart = () => rig.system.findPod(rig.pod('web').metadata.uid)?.restart(undefined)
    let writes = 0
    rig.records.beforeSave = async () => {
      writes += 1
      if (writes === 1) throw full
    }
    const [first, second] = await Promise.allSettled([restart(), restart()])
    expect([first.status, second.status]).toEqual(['rejected', 'fulfilled'])
    await rig.clock.advance(60_000)
    expect(rig.container('web').restartCount).toBe(1)
  })
})
