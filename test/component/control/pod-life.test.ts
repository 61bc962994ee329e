import { beforeEach, describe, expect, it } from 'vitest'
import { PodRig, onHostPort, podManifest } from './pod-rig.ts'

let rig: PodRig

beforeEach(async () => {
  rig = new PodRig()
  await rig.start()
})

describe('a pod that starts', () => {
  // id: runs-ready-recorded-before
  it('runs, is Ready, and is recorded before it runs', async () => {
    const savedBefore: (boolean | undefined)[] = []
    rig.fake.listen((event) => {
      if (event.kind === 'started') savedBefore.push(rig.records.named('web') !== undefined)
    })
    await rig.apply(podManifest('web'))
    expect(rig.fake.changes()).toEqual(['RunPodSandbox', 'CreateContainer', 'StartContainer'])
    expect(savedBefore).toEqual([true, true])
    expect(rig.pod('web').status.phase).toBe('Running')
    expect(rig.condition('web', 'Ready')).toBe('True')
    expect(rig.records.named('web')).toMatchObject({ source: 'file', path: '/file/web.yaml' })
    expect(rig.reasons('web')).toEqual(['Pulled', 'Created', 'Started'])
  })

  it('is left alone when nothing changes', async () => {
    await rig.apply(podManifest('web'))
    const calls = rig.fake.journal.length
    const writes = rig.records.history.length
    await rig.offer()
    await rig.offer()
    expect(rig.fake.journal.length).toBe(calls)
    expect(rig.records.history.length).toBe(writes)
  })

  it('costs few calls', async () => {
    await rig.apply(podManifest('web'))
    await rig.clock.advance(50)
    expect(rig.fake.journal.length).toBeLessThanOrEqual(18)
  })

  it('rests when it runs: no calls but the slow relist and look', async () => {
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    const calls = rig.fake.journal.length
    await rig.clock.advance(600_000)
    // Two lists each minute, and whether the runtime is ready.
    expect(rig.fake.journal.length - calls).toBeLessThanOrEqual(36)
  })
})

describe('a pod on the host’s network', () => {
  it('is shown and probed at the host’s address, whichever that is', async () => {
    const asked: unknown[] = []
    rig.probe = (_id, _probe, podIps) => {
      asked.push(podIps[0])
      return { result: 'success', output: '' }
    }
    const readinessProbe = { tcpSocket: { port: 80 }, periodSeconds: 5 }
    const containers = [{ name: 'main', image: 'app:1', readinessProbe }]
    await rig.apply(podManifest('web', { hostNetwork: true, containers }))
    await rig.clock.advance(20_000)
    rig.hostIps = ['198.51.100.7']
    rig.hint()
    await rig.clock.advance(1000)
    expect(rig.pod('web').status).toMatchObject({ hostIP: '198.51.100.7', podIP: '198.51.100.7' })
    await rig.clock.advance(5000)
    expect(new Set(asked)).toEqual(new Set(['192.0.2.1', '198.51.100.7']))
    expect(asked.at(-1)).toBe('198.51.100.7')
  })
})

describe('a pod whose deadline passes', () => {
  it('is told of at once, and is not shown as one that is taken away', async () => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.apply(podManifest('web', { activeDeadlineSeconds: 5 }))
    await rig.clock.advance(6000)
    const { metadata, status } = rig.pod('web')
    expect(metadata.deletionTimestamp).toBeUndefined()
    expect(status).toMatchObject({ phase: 'Running', reason: 'DeadlineExceeded' })
    expect(rig.events.filter(({ reason }) => reason === 'DeadlineExceeded')).toMatchObject([
      { type: 'Normal', message: 'Pod was active on the node longer than the specified deadline' },
    ])
    await rig.clock.advance(40_000)
    expect(rig.pod('web').status).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' })
  })

  it.each([
    ['forward by years, at the first synchronization of a board', 56 * 365 * 86_400_000],
    ['back by years', -30 * 365 * 86_400_000],
  ])('has all its time, and no more, where the wall clock is set %s', async (_title, jumpMs) => {
    await rig.apply(podManifest('web', { activeDeadlineSeconds: 600 }))
    await rig.clock.advance(300_000)
    rig.clock.setWall(rig.clock.wallMs() + jumpMs)
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(200_000)
    const { status } = rig.pod('web')
    expect(status.phase).toBe('Running')
    expect(Date.parse(status.startTime ?? '') - rig.clock.wallMs()).toBeCloseTo(-500_000, -4)
    await rig.clock.advance(110_000)
    expect(rig.pod('web').status).toMatchObject({ reason: 'DeadlineExceeded' })
  })

  it.each([
    ['', 0],
    [', and the timer fires a little early', 0.5],
  ])('ends although it waits for something that takes long%s', async (_title, earlyMs) => {
    rig.clock.earlyMs = earlyMs
    rig.fake.fault('PullImage', { kind: 'delays', delayMs: 3_600_000 })
    await rig.apply(
      podManifest('web', {
        activeDeadlineSeconds: 60,
        containers: [
          { name: 'main', image: 'app:1' },
          { name: 'late', image: 'app:1', imagePullPolicy: 'Always' },
        ],
      }),
    )
    await rig.clock.advance(59_000)
    expect(rig.running()).toEqual(['web/main'])
    await rig.clock.advance(3000)
    expect(rig.running()).toEqual([])
    expect(rig.pod('web').status).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' })
  })
})

describe('a container of which only a log is left', () => {
  it('counts on from that log, and the next one from there', async () => {
    rig.logged.set('main', 4)
    await rig.apply(podManifest('web'))
    expect(rig.container('web').restartCount).toBe(5)
    rig.fake.exitContainer('main', 1)
    await rig.settle()
    expect(rig.container('web').restartCount).toBe(6)
  })

  it('counts from the beginning where there is no log in its directory', async () => {
    rig.logged.set('main', undefined)
    await rig.apply(podManifest('web'))
    expect(rig.container('web').restartCount).toBe(0)
  })
})

describe('a container that crashes', () => {
  it('runs again at once the first time, then after 10 s doubling to 300 s', async () => {
    await rig.apply(podManifest('web'))
    const delays: number[] = []
    for (let crash = 0; crash < 8; crash += 1) {
      await rig.clock.advance(1000)
      rig.fake.exitContainer('main', 1)
      const atMs = rig.clock.monotonicMs()
      await rig.settle()
      while (rig.running().length === 0) await rig.clock.advanceToNextTimer()
      delays.push(rig.clock.monotonicMs() - atMs)
    }
    expect(delays).toEqual([0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000])
    expect(rig.container('web').restartCount).toBe(8)
  })

  it('shows CrashLoopBackOff, its last end, and one event for each wait', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(100)
    rig.fake.exitContainer('main', 3)
    await rig.clock.advance(100)
    expect(rig.container('web')).toMatchObject({
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { exitCode: 3 } },
      restartCount: 1,
    })
    expect(rig.pod('web').status.phase).toBe('Running')
    expect(rig.reasons('web').filter((reason) => reason === 'BackOff')).toHaveLength(1)
  })

  it('is not held up by a wall clock that was set back, nor by one set forward', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(100)
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(100)
    rig.clock.setWall(rig.clock.wallMs() - 86_400_000)
    await rig.clock.advance(21_000)
    expect(rig.running()).toEqual(['web/main'])
  })

  it('keeps one dead container beside the one that runs', async () => {
    await rig.apply(podManifest('web'))
    for (let crash = 0; crash < 4; crash += 1) {
      rig.fake.exitContainer('main', 1)
      await rig.clock.advance(60_000)
    }
    expect(rig.fake.containersNamed('main')).toHaveLength(2)
  })
})

describe('a pod that ends by itself', () => {
  it('has its sandbox stopped, and costs no call from then on', async () => {
    await rig.apply(podManifest('job', { restartPolicy: 'Never' }))
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(100)
    expect(rig.pod('job').status.phase).toBe('Failed')
    expect(rig.fake.sandboxesOf('job').some(({ ready }) => ready)).toBe(false)
    const calls = rig.fake.changes().length
    await rig.clock.advance(600_000)
    expect(rig.fake.changes().length).toBe(calls)
  })

  it('gives its host ports to the pod that waits for them', async () => {
    await rig.apply(podManifest('first', { ...onHostPort(80), restartPolicy: 'Never' }))
    await rig.apply(podManifest('second', onHostPort(80)))
    expect(rig.pod('second').status).toMatchObject({ phase: 'Pending', reason: 'Blocked' })
    rig.fake.exitContainer('main', 0)
    await rig.clock.advance(100)
    expect(rig.pod('first').status.phase).toBe('Succeeded')
    expect(rig.pod('second').status.phase).toBe('Running')
    const stopped = rig.fake.calls('StopPodSandbox')[0]?.endedAtMs ?? Infinity
    expect(rig.fake.calls('RunPodSandbox')[1]?.atMs).toBeGreaterThanOrEqual(stopped)
  })

  it('gives its host ports away when its deadline has passed, too', async () => {
    await rig.apply(podManifest('first', { ...onHostPort(80), activeDeadlineSeconds: 60 }))
    await rig.apply(podManifest('second', onHostPort(80)))
    await rig.clock.advance(61_000)
    expect(rig.pod('first').status).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' })
    expect(rig.pod('second').status.phase).toBe('Running')
  })
})

describe('a pod whose manifest goes', () => {
  // id: leaves-nothing-behind
  it('leaves nothing behind', async () => {
    await rig.apply(podManifest('web'))
    await rig.remove('web')
    await rig.clock.advance(100)
    expect(rig.pods('web')).toEqual([])
    expect(rig.isEmpty()).toBe(true)
  })

  // id: stays-gone-though-events
  it('stays gone, though events of its end come late', async () => {
    await rig.apply(podManifest('web'))
    await rig.clock.advance(61_000)
    await rig.remove('web')
    const shown: string[] = []
    rig.system.statuses.subscribe(({ type }) => shown.push(type))
    await rig.clock.advance(130_000)
    expect(shown).toEqual([])
    expect(rig.isEmpty()).toBe(true)
  })

  it('comes back under a new UID', async () => {
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    // So that a full list has seen it.
    await rig.clock.advance(61_000)
    await rig.remove('web')
    await rig.clock.advance(5000)
    await rig.apply(podManifest('web'))
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
    expect(rig.pod('web').status.startTime).toBe(rig.pod('web').metadata.creationTimestamp)
    expect(rig.running()).toEqual(['web/main'])
  })

  // id: comes-back-still-ends
  it('and comes back while it still ends, starts when it has ended', async () => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.apply(podManifest('web'))
    await rig.remove('web')
    await rig.clock.advance(1000)
    await rig.apply(podManifest('web'))
    await rig.clock.advance(10_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.fake.calls('RunPodSandbox')).toHaveLength(1)
    await rig.clock.advance(20_000)
    expect(rig.fake.calls('RunPodSandbox')).toHaveLength(2)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web').metadata.deletionTimestamp).toBeUndefined()
  })

  it('with a grace beyond all time is ended all the same', async () => {
    await rig.apply(podManifest('web', { terminationGracePeriodSeconds: 9_000_000_000_000 }))
    await rig.remove('web')
    await rig.clock.advance(1000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('while its sandbox is being made is not started', async () => {
    rig.fake.fault('RunPodSandbox', { kind: 'delays', delayMs: 5000 })
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    await rig.remove('web')
    await rig.clock.advance(60_000)
    expect(rig.fake.calls('StartContainer')).toEqual([])
    expect(rig.isEmpty()).toBe(true)
  })

  it('while its container is being made has none started', async () => {
    rig.fake.fault('CreateContainer', { kind: 'delays', delayMs: 5000 })
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    await rig.remove('web')
    await rig.clock.advance(60_000)
    expect(rig.fake.calls('StartContainer')).toEqual([])
    expect(rig.isEmpty()).toBe(true)
  })
})

describe('a container that ended for its memory', () => {
  it.each([
    ['Never', (rig: PodRig) => rig.container('web').state],
    ['Always', (rig: PodRig) => rig.container('web').lastState],
  ])('is shown so under %s, although the runtime tells it after the end', async (restartPolicy, shown) => {
    await rig.apply(podManifest('web', { restartPolicy }))
    const container = rig.fake.container('main')
    rig.fake.exitContainer('main', 137)
    await rig.clock.advance(1000)
    expect(shown(rig).terminated).toMatchObject({ exitCode: 137, reason: 'Error' })
    rig.fake.world.tellOom(container)
    await rig.clock.advance(1000)
    expect(shown(rig).terminated).toMatchObject({ exitCode: 137, reason: 'OOMKilled' })
  })
})

describe('on a board without a battery, whose clock is set after it has booted', () => {
  const bootedAtMs = Date.UTC(1970, 0, 1)
  const trueMs = Date.UTC(2026, 6, 1)
  const shownTimes = (name: string) => {
    const { metadata, status } = rig.pod(name)
    const { state, lastState } = rig.container(name)
    return {
      created: metadata.creationTimestamp,
      started: status.startTime,
      ready: status.conditions.find(({ type }) => type === 'Ready')?.lastTransitionTime,
      running: state.running?.startedAt,
      ended: lastState.terminated?.finishedAt,
    }
  }
  const setClock = async (wallMs: number) => {
    rig.clock.setWall(wallMs)
    await rig.clock.advance(10_000)
  }
  /** podd begins a minute after the boot. */
  const boot = async () => {
    rig.clock.boot(60_000)
    rig.clock.setWall(bootedAtMs + 60_000)
    await rig.start()
  }

  it('a pod of this boot has all its times by the clock as it is now, also for the next podd', async () => {
    await rig.terminate()
    await boot()
    await rig.apply(podManifest('web', { activeDeadlineSeconds: 600 }))
    await rig.clock.advance(60_000)
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    await setClock(trueMs)
    const shown = {
      created: '2026-06-30T23:58:59Z',
      started: '2026-06-30T23:58:59Z',
      ready: '2026-06-30T23:59:59Z',
      running: '2026-06-30T23:59:59Z',
      ended: '2026-06-30T23:59:59Z',
    }
    expect(shownTimes('web')).toEqual(shown)
    await rig.kill()
    await rig.start()
    expect(shownTimes('web')).toEqual(shown)
    // It has been active for 71 s, whatever the clock said.
    await rig.clock.advance(500_000)
    expect(rig.pod('web').status.phase).toBe('Running')
    await rig.clock.advance(60_000)
    expect(rig.pod('web').status).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' })
  })

  it('a pod that was shown while the runtime started has its age by the clock as it is now, also on disk', async () => {
    await rig.terminate()
    rig.fake.goDown()
    await boot()
    await rig.apply(podManifest('web'))
    expect(shownTimes('web').created).toBe('1970-01-01T00:01:00Z')
    await setClock(trueMs)
    expect(shownTimes('web').created).toBe('2026-07-01T00:00:00Z')
    expect(rig.pod('web').status.conditions[0]?.lastTransitionTime).toBe('2026-07-01T00:00:00Z')
    rig.fake.comeUp()
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(shownTimes('web').created).toBe('2026-07-01T00:00:00Z')
    await rig.kill()
    await rig.start()
    expect(shownTimes('web').created).toBe('2026-07-01T00:00:00Z')
  })

  it('a container has its times by the clock as it is now, where that was set again before a new podd saw the runtime', async () => {
    await rig.terminate()
    await boot()
    await rig.apply(podManifest('web'))
    await setClock(trueMs)
    const { running } = shownTimes('web')
    expect(running).toBe('2026-07-01T00:00:00Z')
    await rig.kill()
    rig.fake.goDown()
    await rig.start()
    await rig.clock.advance(10_000)
    await setClock(rig.clock.wallMs() + 3_600_000)
    rig.fake.comeUp()
    await rig.clock.advance(60_000)
    expect(shownTimes('web').running).toBe('2026-07-01T01:00:00Z')
    await rig.kill()
    await rig.start()
    expect(shownTimes('web').running).toBe('2026-07-01T01:00:00Z')
    expect(rig.container('web').restartCount).toBe(0)
  })

  it('a pod of an earlier boot is as old as this boot at least, and as old as it is once the clock is right', async () => {
    await rig.terminate()
    rig.clock.setWall(trueMs)
    await rig.start()
    await rig.apply(podManifest('web', { activeDeadlineSeconds: 1_000_000 }))
    const { created, started } = shownTimes('web')
    expect(created).toBe('2026-07-01T00:00:00Z')
    await rig.kill()
    rig.fake.endSandbox('web')
    await boot()
    await rig.clock.advance(1000)
    expect(shownTimes('web')).toMatchObject({
      created: '1970-01-01T00:00:00Z',
      started: '1970-01-01T00:00:00Z',
      running: expect.stringMatching(/^1970-01-01T00:01:0/u) as string,
    })
    await setClock(trueMs + 3_600_000)
    expect(shownTimes('web')).toMatchObject({
      created,
      started,
      running: expect.stringMatching(/^2026-07-01T00:59:59/u) as string,
    })
    expect(rig.pod('web').status.phase).toBe('Running')
  })

  it('a pod of a boot with a clock in the future is none of the future once that was set back', async () => {
    await rig.terminate()
    rig.clock.setWall(Date.UTC(2099, 0, 1))
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.clock.advance(60_000)
    await setClock(trueMs)
    expect(shownTimes('web')).toMatchObject({
      created: '2026-06-30T23:59:00Z',
      ready: '2026-06-30T23:59:00Z',
      running: '2026-06-30T23:59:00Z',
    })
  })
})
