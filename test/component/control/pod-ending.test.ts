import { beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { MakingCalls } from '../../../src/control/runtime/runtime-access.ts'
import { plainCgroups } from '../../support/plain-pod-host.ts'
import type { FakeContainer } from '../../support/fake-runtime-world.ts'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig
let preStops: { readonly container: string; readonly atMs: number }[]

const preStop = { lifecycle: { preStop: { exec: { command: ['bye'] } } } }
const withPreStop = (spec: object = {}) => ({
  containers: [{ name: 'main', image: 'app:1', ...preStop }],
  ...spec,
})

function hookTakes(afterMs: number): void {
  rig.fake.onExec((container: FakeContainer) => {
    preStops.push({ container: container.config.metadata?.name ?? '', atMs: rig.clock.monotonicMs() })
    return { afterMs }
  })
}

beforeEach(async () => {
  rig = new PodRig()
  preStops = []
  hookTakes(0)
  await rig.start()
})

const stops = () =>
  rig.fake.calls('StopContainer').map(({ request, atMs }) => ({ timeout: request.timeout, atMs }))

describe('the grace of a pod that ends', () => {
  it('holds the preStop hook, and StopContainer gets what is left of it', async () => {
    hookTakes(10_000)
    await rig.apply(podManifest('web', withPreStop()))
    await rig.remove('web')
    await rig.clock.advance(60_000)
    expect(preStops).toHaveLength(1)
    expect(stops()).toEqual([{ timeout: 20, atMs: 10_000 }])
    expect(rig.isEmpty()).toBe(true)
  })

  it('leaves StopContainer 2 s after a hook that used it up', async () => {
    hookTakes(100_000)
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 5 })))
    await rig.remove('web')
    await rig.clock.advance(60_000)
    expect(stops()).toEqual([{ timeout: 2, atMs: 5000 }])
    expect(rig.isEmpty()).toBe(true)
  })

  it('is one second for StopContainer too, where a hard eviction gives the pod one second', async () => {
    await rig.apply(podManifest('web'))
    rig.evict(rig.pod('web').metadata.uid, { reason: 'Evicted', message: '', graceSeconds: 1 })
    await rig.clock.advance(5000)
    expect(stops()).toEqual([{ timeout: 1, atMs: 0 }])
  })

  it('is none where all containers of the pod restart', async () => {
    const rule = { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [9] } }
    const containers = [
      { name: 'main', image: 'app:1', restartPolicy: 'Never', restartPolicyRules: [rule] },
      { name: 'other', image: 'side:1' },
    ]
    await rig.apply(podManifest('web', { containers }))
    rig.fake.exitContainer('main', 9)
    await rig.clock.advance(5000)
    expect(stops().map(({ timeout }) => timeout)).toEqual([0])
    expect(rig.running()).toEqual(['web/main', 'web/other'])
  })

  it('bounds a hook whose runtime forgets to end it', async () => {
    rig.fake.onExec(() => ({ afterMs: 300_000, outlivesTimeout: true }))
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 5 })))
    await rig.remove('web')
    await rig.clock.advance(60_000)
    expect(stops()[0]?.atMs).toBeLessThanOrEqual(7000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('is shown at once, also while a sandbox is being made', async () => {
    rig.fake.fault('RunPodSandbox', { kind: 'delays', delayMs: 60_000 })
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    await rig.remove('web')
    expect(rig.pod('web').metadata.deletionTimestamp).toBeDefined()
  })

  it('can only shrink, and the hook is not run again for that', async () => {
    hookTakes(1000)
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 100 })))
    await rig.remove('web')
    await rig.clock.advance(5000)
    const ended = rig.system.endAll({ graceSeconds: 3, signal: new AbortController().signal })
    await rig.clock.advance(2900)
    expect(rig.running()).toEqual(['web/main'])
    await rig.clock.advance(200)
    expect((await ended).ended).toBe(1)
    expect(preStops).toHaveLength(1)
    expect(stops()).toEqual([
      { timeout: 99, atMs: 1000 },
      { timeout: 3, atMs: 5000 },
    ])
  })

  it('does not grow when it is told again with more', async () => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.apply(podManifest('web', { terminationGracePeriodSeconds: 10 }))
    await rig.remove('web')
    await rig.clock.advance(5000)
    const ended = rig.system.endAll({ graceSeconds: 500, signal: new AbortController().signal })
    await rig.clock.advance(5100)
    expect((await ended).ended).toBe(1)
  })
})

describe('a postStart hook', () => {
  it('has its container wait until it is done, in its first life and in later ones', async () => {
    const lifecycle = { postStart: { exec: { command: ['hello'] } } }
    const containers = [
      { name: 'side', image: 'app:1' },
      { name: 'main', image: 'app:1', lifecycle },
    ]
    hookTakes(10_000)
    await rig.apply(podManifest('web', { containers }))
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['web/main', 'web/side'])
    expect(rig.container('web')).toMatchObject({ ready: false, started: false })
    expect(rig.container('web').state.running).toBeUndefined()
    expect(rig.pod('web').status.phase).toBe('Pending')
    await rig.clock.advance(6000)
    expect(rig.condition('web', 'Ready')).toBe('True')
    expect(rig.pod('web').status.phase).toBe('Running')

    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    // News of another container is shown meanwhile.
    rig.fake.exitContainer('side', 1)
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web', 'side').state.running).toBeUndefined()
    expect(rig.container('web')).toMatchObject({ ready: false, started: false, restartCount: 1 })
    expect(rig.container('web').state.running).toBeUndefined()
    expect(rig.condition('web', 'Ready')).toBe('False')
    await rig.clock.advance(6000)
    expect(rig.container('web').ready).toBe(true)
  })

  // id: starts-container-only-poststart
  it('holds up the containers after its own until it is done', async () => {
    const lifecycle = { postStart: { exec: { command: ['hello'] } } }
    const containers = [
      { name: 'main', image: 'app:1', lifecycle },
      { name: 'next', image: 'app:1' },
    ]
    hookTakes(10_000)
    await rig.apply(podManifest('web', { containers }))
    await rig.clock.advance(9000)
    expect(rig.running()).toEqual(['web/main'])
    await rig.clock.advance(2000)
    expect(rig.running()).toEqual(['web/main', 'web/next'])
  })

  it('is done before any probe begins', async () => {
    const lifecycle = { postStart: { exec: { command: ['hello'] } } }
    const livenessProbe = { exec: { command: ['alive'] }, periodSeconds: 1, failureThreshold: 1 }
    const containers = [
      { name: 'side', image: 'app:1' },
      { name: 'main', image: 'app:1', lifecycle, livenessProbe },
    ]
    const probedAtMs: number[] = []
    rig.probe = () => {
      probedAtMs.push(rig.clock.monotonicMs())
      return { result: 'success', output: '' }
    }
    await rig.apply(podManifest('web', { containers }))
    await rig.clock.advance(5000)
    expect(probedAtMs).not.toEqual([])
    hookTakes(20_000)
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(100)
    probedAtMs.splice(0)
    // News of another container has the pod looked at meanwhile.
    rig.fake.exitContainer('side', 1)
    await rig.clock.advance(15_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(probedAtMs).toEqual([])
    await rig.clock.advance(10_000)
    expect(probedAtMs).not.toEqual([])
  })

  it('takes as long as it takes, and is given up when the pod ends', async () => {
    hookTakes(3_600_000)
    const lifecycle = { postStart: { exec: { command: ['hello'] } } }
    const containers = [{ name: 'main', image: 'app:1', lifecycle }]
    await rig.apply(podManifest('web', { containers }))
    await rig.clock.advance(1_800_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').restartCount).toBe(0)
    expect(rig.reasons('web')).not.toContain('FailedPostStartHook')
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.isEmpty()).toBe(true)
  })
})

describe('a postStart hook that the end of the runtime broke off', () => {
  it('is called again, and costs its container nothing', async () => {
    let calls = 0
    rig.fake.onExec(() => {
      calls += 1
      return { exitCode: 0 }
    })
    rig.fake.fault('ExecSync', { kind: 'loses-reply' }, { times: 2 })
    const lifecycle = { postStart: { exec: { command: ['hello'] } } }
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'app:1', lifecycle }] }))
    await rig.clock.advance(5000)
    expect(calls).toBe(3)
    expect(rig.container('web')).toMatchObject({ ready: true, restartCount: 0 })
    expect(rig.reasons('web')).not.toContain('FailedPostStartHook')
  })
})

describe('a preStop hook', () => {
  const failing = {
    livenessProbe: { exec: { command: ['alive'] }, periodSeconds: 1, failureThreshold: 1 },
  }

  it('runs for a container whose postStart has failed', async () => {
    const commands: string[] = []
    rig.fake.onExec((_container, [command = '']) => {
      commands.push(command)
      return { exitCode: command === 'hello' ? 1 : 0 }
    })
    const lifecycle = { postStart: { exec: { command: ['hello'] } }, ...preStop.lifecycle }
    await rig.apply(
      podManifest('web', {
        restartPolicy: 'Never',
        containers: [{ name: 'main', image: 'app:1', lifecycle }],
      }),
    )
    await rig.clock.advance(60_000)
    expect(commands).toEqual(['hello', 'bye'])
    expect(rig.pod('web').status.phase).toBe('Failed')
  })

  // id: ends-container-although-prestop
  it('that fails is told of, and its container ends all the same', async () => {
    rig.fake.onExec(() => ({ exitCode: 9 }))
    await rig.apply(podManifest('web', withPreStop()))
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.reasons('web').filter((reason) => reason === 'FailedPreStopHook')).toHaveLength(1)
    expect(stops()).toHaveLength(1)
    expect(rig.isEmpty()).toBe(true)
  })

  it('runs once for a container that is restarted while the pod is removed', async () => {
    hookTakes(10_000)
    await rig.apply(
      podManifest('web', { containers: [{ name: 'main', image: 'app:1', ...preStop, ...failing }] }),
    )
    rig.probe = () => ({ result: 'failure', output: 'dead' })
    await rig.clock.advance(2000)
    expect(preStops).toHaveLength(1)
    await rig.remove('web')
    await rig.clock.advance(60_000)
    expect(preStops).toHaveLength(1)
    expect(rig.isEmpty()).toBe(true)
  })

  it('runs once, and to its end, for a container whose image is changed twice', async () => {
    hookTakes(10_000)
    await rig.apply(podManifest('web', withPreStop()))
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'app:2', ...preStop }] }))
    await rig.clock.advance(3000)
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'side:1', ...preStop }] }))
    await rig.clock.advance(60_000)
    expect(preStops).toHaveLength(1)
    expect(rig.fake.calls('ExecSync').map(({ cancelled }) => cancelled)).toEqual([false])
    expect(rig.container('web')).toMatchObject({ image: 'side:1', restartCount: 1 })
  })

  it('runs for the next container again', async () => {
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'app:1', ...preStop }] }))
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'app:2', ...preStop }] }))
    await rig.clock.advance(1000)
    await rig.remove('web')
    await rig.clock.advance(1000)
    expect(preStops).toHaveLength(2)
  })

  it('of several containers is taken down as begun for each, however slow the disk is', async () => {
    const containers = ['a', 'b', 'c'].map((name) => Object.assign({ name, image: 'app:1' }, preStop))
    await rig.apply(podManifest('web', { containers }))
    // Writes that begin later are done earlier.
    let waitMs = 50
    rig.records.beforeSave = () => rig.clock.sleep((waitMs = Math.max(1, waitMs - 20)))
    await rig.remove('web')
    hookTakes(20_000)
    await rig.clock.advance(5000)
    expect(rig.records.named('web')?.preStopBegun).toHaveLength(3)
    expect(preStops).toHaveLength(3)
  })
})

describe('a preStop hook under way', () => {
  it('runs to its end although the pod, that has passed its deadline, is taken away meanwhile', async () => {
    hookTakes(20_000)
    const spec = { activeDeadlineSeconds: 10, terminationGracePeriodSeconds: 60 }
    await rig.apply(podManifest('web', withPreStop(spec)))
    await rig.clock.advance(11_000)
    expect(preStops).toMatchObject([{ atMs: 10_000 }])
    await rig.remove('web')
    await rig.clock.advance(18_000)
    expect(stops()).toEqual([])
    await rig.clock.advance(2000)
    expect(stops()).toEqual([{ timeout: 40, atMs: 30_000 }])
    await rig.clock.advance(5000)
    expect(preStops).toHaveLength(1)
    expect(rig.isEmpty()).toBe(true)
  })

  it('of a container that is restarted runs to its end although the pod is taken away meanwhile', async () => {
    hookTakes(20_000)
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 60 })))
    await rig.apply(podManifest('web', { ...withPreStop({ terminationGracePeriodSeconds: 60 }) }))
    await rig.system.findPod(rig.pod('web').metadata.uid)?.restart(undefined)
    await rig.clock.advance(5000)
    expect(preStops).toHaveLength(1)
    await rig.remove('web')
    await rig.clock.advance(14_000)
    expect(stops()).toEqual([])
    await rig.clock.advance(2000)
    expect(stops()).toMatchObject([{ atMs: expect.closeTo(20_000, -3) as number }])
    expect(preStops).toHaveLength(1)
  })

  it.each([
    ['in the end of its pod', (): Promise<void> => rig.remove('web')],
    [
      'of a container that is restarted',
      async (): Promise<void> =>
        void (await rig.system.findPod(rig.pod('web').metadata.uid)?.restart(undefined)),
    ],
  ])('%s is let go when the grace shrinks', async (_what, begin) => {
    hookTakes(400_000)
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 600 })))
    const { uid } = rig.pod('web').metadata
    await begin()
    await rig.clock.advance(5000)
    expect(preStops).toHaveLength(1)
    expect(stops()).toEqual([])
    const end = { cause: 'removed', reason: 'Killing', message: '', graceSeconds: 3 } as const
    rig.system.findPod(uid)?.end(end)
    await rig.clock.advance(10_000)
    expect(stops()).toEqual([{ timeout: 2, atMs: 8000 }])
    expect(preStops).toHaveLength(1)
    expect(rig.isEmpty()).toBe(true)
  })

  it('that could not begin is run by the next podd, too', async () => {
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 60 })))
    rig.isExecAway = true
    await rig.remove('web')
    await rig.clock.advance(100)
    await rig.kill()
    rig.isExecAway = false
    await rig.start()
    await rig.clock.advance(5000)
    expect(preStops).toHaveLength(1)
    expect(rig.isEmpty()).toBe(true)
  })

  it('gets no more than the grace that is left', async () => {
    hookTakes(600_000)
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 30 })))
    await rig.remove('web')
    await rig.clock.advance(29_000)
    expect(stops()).toEqual([])
    await rig.clock.advance(1000)
    expect(stops()).toEqual([{ timeout: 2, atMs: 30_000 }])
    await rig.clock.advance(5000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('begins when the runtime is back, where that was away', async () => {
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 60 })))
    rig.isExecAway = true
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect([preStops, stops()]).toEqual([[], []])
    rig.isExecAway = false
    await rig.clock.advance(10_000)
    expect(preStops).toHaveLength(1)
    expect(stops()).toHaveLength(1)
    expect(rig.isEmpty()).toBe(true)
  })
})

describe('podd itself ends in the middle of a pod’s end', () => {
  it('SIGTERM: it lets go soon, and the next podd goes on with what is left of the grace', async () => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 60 })))
    await rig.remove('web')
    await rig.clock.advance(20_000)
    await rig.terminate()
    expect(rig.clock.monotonicMs()).toBeLessThan(26_000)
    await rig.start()
    expect(preStops).toHaveLength(1)
    expect(stops().at(-1)?.timeout).toBeLessThanOrEqual(40)
    await rig.clock.advance(41_000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('SIGKILL: neither is a hook run twice that had begun', async () => {
    hookTakes(30_000)
    await rig.apply(podManifest('web', withPreStop({ terminationGracePeriodSeconds: 60 })))
    await rig.remove('web')
    await rig.clock.advance(5000)
    await rig.kill()
    await rig.start()
    await rig.clock.advance(60_000)
    expect(preStops).toHaveLength(1)
    expect(rig.isEmpty()).toBe(true)
  })

  it('SIGKILL in a hook of a container that is restarted', async () => {
    hookTakes(30_000)
    await rig.apply(podManifest('web', withPreStop()))
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'app:2', ...preStop }] }))
    await rig.clock.advance(1000)
    expect(preStops).toHaveLength(1)
    await rig.kill()
    await rig.start()
    await rig.clock.advance(60_000)
    expect(preStops).toHaveLength(1)
    expect(rig.container('web').image).toBe('app:2')
  })
})

describe('a wall clock that jumps while a pod ends', () => {
  it.each([
    ['back a day', -86_400_000],
    ['forward a day', 86_400_000],
  ])('%s: the pod ends within its grace', async (_, jumpMs) => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.apply(podManifest('web'))
    await rig.remove('web')
    await rig.clock.advance(5000)
    rig.clock.setWall(rig.clock.wallMs() + jumpMs)
    await rig.clock.advance(26_000)
    expect(rig.isEmpty()).toBe(true)
  })
})

describe('a call that fails while a pod ends', () => {
  it.each(['StopContainer', 'StopPodSandbox', 'RemoveContainer', 'RemovePodSandbox'] as const)(
    '%s is tried again, seconds later each time',
    async (method) => {
      await rig.apply(podManifest('web'))
      rig.fake.fault(method, { kind: 'fails' }, { times: 3 })
      await rig.remove('web')
      await rig.clock.advance(1000)
      // Once more for the events of what did end.
      expect(rig.fake.calls(method).length).toBeLessThanOrEqual(2)
      expect(rig.reasons('web')).toContain('FailedKillPod')
      await rig.clock.advance(10_000)
      expect(rig.isEmpty()).toBe(true)
    },
  )
})

describe('a container that has just ended by itself, which the runtime still counts as running', () => {
  const message = 'failed to stop container "x": failed to kill container "x": ttrpc: closed: unknown'

  beforeEach(() => {
    Object.assign(rig.fake.world, { exitLagMs: 60, tellsExits: true })
  })

  it('has the sandbox of its completed pod stopped without a word, though the runtime fails that once', async () => {
    await rig.apply(podManifest('job', { restartPolicy: 'Never' }))
    rig.fake.fault('StopPodSandbox', { kind: 'fails', message })
    rig.fake.exitContainer('main', 0)
    await rig.clock.advance(5000)
    expect(rig.fake.calls('StopPodSandbox').map(({ outcome }) => outcome)).toEqual(['failed', 'ok'])
    expect(rig.pod('job').status.phase).toBe('Succeeded')
    expect(rig.events.filter(({ type }) => type === 'Warning')).toEqual([])
  })

  it('counts as stopped, though the runtime fails to stop it', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.fault('StopContainer', { kind: 'fails', message }, { when: exits })
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.fake.calls('StopContainer')).toHaveLength(1)
    expect(rig.isEmpty()).toBe(true)
    expect(rig.events.filter(({ type }) => type === 'Warning')).toEqual([])
  })

  /** It ends at the moment at which it is to be stopped. */
  function exits(): boolean {
    rig.fake.exitContainer('main', 0)
    return true
  }

  it('is told of where it does not end after all', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.fault('StopContainer', { kind: 'fails', message })
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.reasons('web')).toContain('FailedKillPod')
    expect(rig.isEmpty()).toBe(true)
  })
})

describe('a pod whose shim gives the runtime no answer', () => {
  const killing = (): readonly string[] =>
    rig.events
      .filter(({ type, reason }) => type === 'Warning' && reason === 'Killing')
      .map(({ message }) => message)

  /** The runtime stops nothing until the shim is killed. */
  async function startHung(spec: JsonObject = {}): Promise<{ readonly acts: readonly string[] }> {
    const acts: string[] = []
    rig = new PodRig()
    rig.host = {
      cgroups: {
        ...plainCgroups,
        killProcesses: async (_uid, _pod, ids) => {
          acts.push(`processes of ${ids.length}`)
          return 2
        },
      },
      killShim: () => {
        acts.push('shim')
        rig.fake.clearFaults()
        return 4711
      },
    }
    await rig.start()
    await rig.apply(podManifest('web', spec))
    for (const method of ['StopContainer', 'StopPodSandbox'] as const)
      rig.fake.fault(method, { kind: 'hangs' }, { times: 99 })
    return { acts }
  }

  it('ends all the same: by its sandbox, its processes and then the shim, each once and told', async () => {
    const { acts } = await startHung({ terminationGracePeriodSeconds: 5 })
    await rig.remove('web')
    await rig.clock.advance(125_000)
    expect(rig.fake.calls('StopPodSandbox')).toHaveLength(1)
    expect(acts).toEqual([])
    await rig.clock.advance(60_000)
    expect(acts).toEqual(['processes of 2', 'shim'])
    expect(rig.isEmpty()).toBe(true)
    expect(rig.fake.calls('StopContainer')).toHaveLength(1)
    expect(rig.reasons('web').filter((reason) => reason === 'FailedKillPod')).toHaveLength(1)
    expect(killing()).toEqual([
      'Killed 2 processes of the pod by its cgroup: the runtime did not',
      'Killed the shim of the pod (process 4711): it has given the runtime no answer',
    ])
  })

  it('lets its sidecars have their turn, each for its own time', async () => {
    const sidecar = (name: string) => ({ name, image: 'side:1', restartPolicy: 'Always' })
    const { acts } = await startHung({
      initContainers: [sidecar('one'), sidecar('two')],
      terminationGracePeriodSeconds: 5,
    })
    await rig.remove('web')
    await rig.clock.advance(400_000)
    const names = rig.fake.calls('StopContainer').map(({ request }) => request.timeout)
    expect(names).toEqual([5, 2, 2])
    expect(acts).toEqual(['processes of 4', 'shim'])
    expect(rig.isEmpty()).toBe(true)
  })

  it('gets its container restarted by the same means', async () => {
    const { acts } = await startHung({ terminationGracePeriodSeconds: 5 })
    await rig.system.findPod(rig.pod('web').metadata.uid)?.restart(undefined)
    await rig.clock.advance(200_000)
    expect(acts).toEqual(['processes of 1', 'shim'])
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').restartCount).toBe(1)
  })

  it('goes on without a dead sandbox of its own whose shim hangs', async () => {
    const { acts } = await startHung({ restartPolicy: 'Always' })
    rig.fake.clearFaults()
    const [dead] = rig.fake.sandboxesOf('web')
    const isDead = ({ podSandboxId }: { podSandboxId: string }): boolean => podSandboxId === dead?.id
    // Its end is noted, so that its successor is made; what is left of it is stopped once more before it is removed.
    let stops = 0
    const when = (request: { podSandboxId: string }): boolean => isDead(request) && (stops += 1) > 1
    rig.fake.fault('StopPodSandbox', { kind: 'hangs' }, { times: 99, when })
    rig.fake.endSandbox('web')
    await rig.clock.advance(60_000)
    // The dead sandbox goes with its container, of which the newest one is kept.
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(300_000)
    expect(acts).toEqual(['processes of 1', 'shim'])
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.fake.sandboxesOf('web').map(({ ready }) => ready)).toEqual([true])
  })

  it('is left alone while the runtime as a whole gives no answer', async () => {
    const { acts } = await startHung({ terminationGracePeriodSeconds: 5 })
    rig.fake.fault('PodSandboxStatus', { kind: 'hangs' }, { times: 99 })
    await rig.remove('web')
    await rig.clock.advance(400_000)
    expect(acts).toEqual([])
  })
})

describe('a container that the runtime never manages to stop', () => {
  it('has its sandbox stopped once its grace is over, and not before', async () => {
    await rig.apply(podManifest('web', { terminationGracePeriodSeconds: 9 }))
    rig.fake.fault('StopContainer', { kind: 'fails' }, { times: 99 })
    await rig.remove('web')
    await rig.clock.advance(8000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.fake.calls('StopPodSandbox')).toEqual([])
    await rig.clock.advance(10_000)
    expect(rig.isEmpty()).toBe(true)
  })
})

describe('sidecars', () => {
  // id: ends-sidecars-after-main
  it('end after the main containers, in reverse order', async () => {
    const sidecar = (name: string) => ({ name, image: 'side:1', restartPolicy: 'Always' })
    await rig.apply(podManifest('web', { initContainers: [sidecar('one'), sidecar('two')] }))
    await rig.remove('web')
    await rig.clock.advance(1000)
    const names = rig.fake.calls('StopContainer').map(({ request }) => request.containerId)
    expect(names).toHaveLength(3)
    expect(rig.reasons('web').filter((reason) => reason === 'Killing')).toHaveLength(3)
    expect(rig.events.filter(({ reason }) => reason === 'Killing').map(({ container }) => container)).toEqual(
      ['main', 'two', 'one'],
    )
  })

  const hooked = (name: string) => ({ name, image: 'side:1', restartPolicy: 'Always', ...preStop })
  const stopped = () =>
    rig.fake.calls('StopContainer').map(({ request, atMs }) => {
      const container = rig.fake.world.containers.get(String(request.containerId))
      return { name: container?.config.metadata?.name ?? '', timeout: request.timeout, atMs }
    })

  it('run their preStop hooks at once, and wait for their turn to end', async () => {
    hookTakes(4000)
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'exits', afterMs: 10_000, exitCode: 0 } })
    await rig.apply(podManifest('web', withPreStop({ initContainers: [hooked('one'), hooked('two')] })))
    await rig.remove('web')
    await rig.clock.advance(13_000)
    expect(preStops.map(({ container }) => container).toSorted()).toEqual(['main', 'one', 'two'])
    expect(preStops.map(({ atMs }) => atMs)).toEqual([0, 0, 0])
    expect(stopped()).toEqual([{ name: 'main', timeout: 26, atMs: 4000 }])
    await rig.clock.advance(60_000)
    expect(preStops).toHaveLength(3)
    expect(rig.fake.calls('StopContainer').map(({ request }) => request.timeout)).toEqual([26, 16, 16])
    expect(rig.isEmpty()).toBe(true)
  })

  // id: wait-nobody-grace-over
  it('wait for nobody when the grace is over', async () => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    const spec = { initContainers: [hooked('one'), hooked('two')], terminationGracePeriodSeconds: 5 }
    await rig.apply(podManifest('web', withPreStop(spec)))
    await rig.remove('web')
    await rig.clock.advance(4900)
    expect(stopped().map(({ name }) => name)).toEqual(['main'])
    await rig.clock.advance(60_000)
    const calls = rig.fake.calls('StopContainer').map(({ request, atMs }) => [request.timeout, atMs])
    expect(calls).toEqual([
      [5, 0],
      [2, 5000],
      [2, 5000],
    ])
  })

  it('stay while a main container can not be stopped, and end in their turn later', async () => {
    rig.fake.fault('StopContainer', { kind: 'fails' }, { times: 1 })
    await rig.apply(podManifest('web', { initContainers: [hooked('one')] }))
    await rig.remove('web')
    expect(rig.running()).toEqual(['web/main', 'web/one'])
    await rig.clock.advance(60_000)
    expect(rig.isEmpty()).toBe(true)
    expect(preStops).toHaveLength(1)
  })
})

describe('a runtime that cannot write down that a container has ended', () => {
  /** With what lives in the pod's cgroup: the fake's host is asked for it. */
  async function startOn(hasProcesses: () => boolean | undefined): Promise<void> {
    rig = new PodRig()
    rig.host = { cgroups: { ...plainCgroups, hasProcesses: async () => hasProcesses() } }
    await rig.start()
    await rig.apply(podManifest('web', { terminationGracePeriodSeconds: 5 }))
  }

  it('and does not come back: the volumes go before the containers, when nothing of the pod lives', async () => {
    let isAlive = true
    await startOn(() => isAlive)
    const { uid } = rig.pod('web').metadata
    rig.fake.fault('StopContainer', { kind: 'hangs' })
    await rig.remove('web')
    await rig.clock.advance(40_000)
    expect(rig.tornDown).toEqual([])
    isAlive = false
    await rig.clock.advance(10_000)
    expect(rig.tornDown).toEqual([uid])
    // Up to here the runtime may be merely slow.
    expect(rig.reasons('web')).not.toContain('FailedKillPod')
    await rig.clock.advance(60_000)
    expect(rig.tornDown).toEqual([uid])
    expect(rig.reasons('web').filter((reason) => reason === 'FailedKillPod')).toHaveLength(1)
  })

  it('keeps the volumes where it is not known what lives', async () => {
    await startOn(() => undefined)
    rig.fake.fault('StopContainer', { kind: 'hangs' })
    await rig.remove('web')
    await rig.clock.advance(60_000)
    expect(rig.tornDown).toEqual([])
  })

  it('and says that it has stopped it: it is asked now and then, and told of once', async () => {
    await startOn(() => undefined)
    // StopContainer comes back; what is listed says that it runs.
    for (const method of ['StopContainer', 'StopPodSandbox'] as const)
      rig.fake.fault(method, { kind: 'pretends', reply: {} }, { times: 1000 })
    await rig.remove('web')
    await rig.clock.advance(120_000)
    expect(rig.fake.calls('StopContainer').length).toBeGreaterThan(10)
    expect(rig.fake.calls('StopContainer').length).toBeLessThan(80)
    expect(rig.reasons('web').filter((reason) => reason === 'FailedKillPod')).toHaveLength(1)
    rig.fake.clearFaults()
    await rig.clock.advance(20_000)
    expect(rig.isEmpty()).toBe(true)
  })
})

describe('a pod whose file cannot be read', () => {
  it('runs on until the file is gone', async () => {
    await rig.apply(podManifest('web'))
    const [document] = rig.snapshot('file').pods
    const snapshot = { ...rig.snapshot('file'), pods: [] }
    rig.system.offerSnapshot({ ...snapshot, unreadable: [document?.place.path ?? ''] })
    await rig.settle()
    expect([rig.pod('web').status.phase, stops()]).toEqual(['Running', []])
    rig.system.offerSnapshot({ ...snapshot, unreadable: [] })
    await rig.clock.advance(60_000)
    expect(stops()).toHaveLength(1)
  })
})

describe('pods that are removed while their calls wait for those of others', () => {
  const names = ['a', 'b', 'c', 'd', 'e']

  beforeEach(async () => {
    await rig.terminate()
    rig.host = {
      ...rig.host,
      calls: new MakingCalls(rig.fake.runtime, { clock: rig.clock, limit: 1 }).runtime,
    }
    await rig.start()
  })

  it('get no sandbox: only the one whose call was sent is made, and removed', async () => {
    rig.fake.fault('RunPodSandbox', { kind: 'delays', delayMs: 1000 }, { times: 5 })
    await rig.apply(...names.map((name) => podManifest(name)))
    await rig.replaceAll()
    await rig.clock.advance(10_000)
    expect(rig.fake.calls('RunPodSandbox')).toHaveLength(1)
    expect(rig.isEmpty()).toBe(true)
    expect(rig.events.filter(({ type }) => type === 'Warning')).toEqual([])
  })

  it('get no container, and none is started', async () => {
    for (const method of ['CreateContainer', 'StartContainer'] as const)
      rig.fake.fault(method, { kind: 'delays', delayMs: 1000 }, { times: 5 })
    await rig.apply(...names.map((name) => podManifest(name)))
    await rig.replaceAll()
    await rig.clock.advance(10_000)
    expect(rig.fake.calls('CreateContainer').length).toBeLessThanOrEqual(1)
    expect(rig.fake.calls('StartContainer')).toHaveLength(0)
    expect(rig.isEmpty()).toBe(true)
    expect(rig.events.filter(({ type }) => type === 'Warning')).toEqual([])
  })

  it('start with the sandbox of a later try where podd stops and starts instead', async () => {
    rig.fake.fault('RunPodSandbox', { kind: 'delays', delayMs: 1000 }, { times: 5 })
    await rig.apply(...names.map((name) => podManifest(name)))
    await rig.terminate()
    expect(rig.fake.calls('RunPodSandbox')).toHaveLength(1)
    await rig.start()
    await rig.clock.advance(20_000)
    expect(rig.running()).toEqual(names.map((name) => `${name}/main`))
  })
})
