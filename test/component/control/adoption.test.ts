import { beforeEach, describe, expect, it } from 'vitest'
import { PodRig, onHostPort, podManifest } from './pod-rig.ts'
import { withoutRevision } from '../../support/pod-objects.ts'

let rig: PodRig

beforeEach(() => {
  rig = new PodRig()
})

/** What podd asked of the runtime since it was started again. */
async function changesOf(work: () => Promise<void>): Promise<readonly string[]> {
  const before = rig.fake.changes().length
  await work()
  return rig.fake.changes().slice(before)
}

describe.each([
  ['killed', () => rig.kill()],
  ['told to end', () => rig.terminate()],
] as const)('a podd that was %s', (_, end) => {
  it('restarts nothing when it comes back, keeps UIDs, counts and times', async () => {
    await rig.start()
    await rig.apply(podManifest('web'), podManifest('db'))
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    const shown = () => [rig.pod('web'), rig.pod('db')].map((pod) => withoutRevision(pod))
    const before = shown()
    await end()
    await rig.clock.advance(30_000)
    expect(await changesOf(() => rig.start())).toEqual([])
    expect(shown()).toEqual(before)
  })

  it('stays Ready at every moment', async () => {
    await rig.start()
    const readinessProbe = { exec: { command: ['ready'] }, periodSeconds: 5 }
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'app:1', readinessProbe }] }))
    await rig.clock.advance(6000)
    expect(rig.condition('web', 'Ready')).toBe('True')
    const since = rig.pod('web').status.conditions
    await end()
    rig.boot()
    const seen = new Set<unknown>()
    rig.system.statuses.subscribe(({ object }) =>
      seen.add(object.status.conditions.find(({ type }) => type === 'Ready')?.status),
    )
    await rig.settle()
    await rig.offer()
    await rig.clock.advance(10_000)
    expect([...seen]).toEqual(['True'])
    expect(rig.pod('web').status.conditions).toEqual(since)
  })

  it('goes on with the crash backoff where it was', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    for (const restMs of [0, 10_000, 0]) {
      rig.fake.exitContainer('main', 1)
      await rig.clock.advance(1000 + restMs)
    }
    await end()
    await rig.start()
    expect(rig.container('web').state.waiting?.reason).toBe('CrashLoopBackOff')
    await rig.clock.advance(13_000)
    expect(rig.running()).toEqual([])
    await rig.clock.advance(6000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').restartCount).toBe(3)
  })

  it('starts again what crashed meanwhile, and removes what is not wanted any more', async () => {
    await rig.start()
    await rig.apply(podManifest('web'), podManifest('old'))
    await end()
    rig.fake.world.kill(
      [...rig.fake.world.containers.values()].find(({ sandbox }) => sandbox.config.metadata?.name === 'web')!,
    )
    await rig.remove('old')
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').restartCount).toBe(1)
    expect(rig.fake.world.sandboxes.size).toBe(1)
  })

  it('keeps pods of a source that has not spoken yet, and looks after them', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    await end()
    rig.boot()
    await rig.clock.advance(1000)
    expect(rig.pod('web').status.phase).toBe('Running')
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    await rig.offer()
    expect(rig.container('web').restartCount).toBe(1)
  })

  it('lets pods that finished stay finished, also when the runtime has forgotten them', async () => {
    await rig.start()
    await rig.apply(podManifest('job', { restartPolicy: 'OnFailure' }))
    rig.fake.exitContainer('main', 0)
    await rig.clock.advance(1000)
    await end()
    rig.fake.world.containers.clear()
    rig.fake.world.sandboxes.clear()
    expect(
      await changesOf(async () => {
        await rig.start()
        await rig.clock.advance(60_000)
      }),
    ).toEqual([])
    expect(rig.pod('job').status.phase).toBe('Succeeded')
  })

  it('lets a pod past its deadline stay Failed', async () => {
    await rig.start()
    await rig.apply(podManifest('job', { activeDeadlineSeconds: 10 }))
    await rig.clock.advance(11_000)
    await end()
    await rig.start()
    await rig.clock.advance(60_000)
    expect(rig.pod('job').status).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' })
    expect(rig.running()).toEqual([])
  })

  it('counts the deadline of a pod over its own end', async () => {
    await rig.start()
    await rig.apply(podManifest('job', { activeDeadlineSeconds: 60 }))
    await rig.clock.advance(30_000)
    await end()
    await rig.start()
    await rig.clock.advance(31_000)
    expect(rig.pod('job').status.reason).toBe('DeadlineExceeded')
  })

  it('gives ports to who had them', async () => {
    await rig.start()
    await rig.apply(podManifest('holder', onHostPort(80)))
    await rig.apply(podManifest('a-waiter', onHostPort(80)))
    await end()
    await rig.start()
    expect(rig.pod('holder').status.phase).toBe('Running')
    expect(rig.pod('a-waiter').status).toMatchObject({ phase: 'Pending', reason: 'Blocked' })
  })

  it('finishes a change that was under way', async () => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.start()
    await rig.apply(podManifest('web', { hostname: 'one' }))
    await rig.apply(podManifest('web', { hostname: 'two' }))
    await rig.clock.advance(10_000)
    await end()
    await rig.start()
    await rig.clock.advance(25_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web').spec['hostname']).toBe('two')
    expect(rig.records.saved.size).toBe(1)
  })
})

describe('a sandbox that podd asked for when it was killed', () => {
  const attempts = () =>
    rig.fake.calls('RunPodSandbox').map(({ request }) => request.config?.metadata?.attempt)

  it('shares its name with no other one: the runtime may have it and not say so', async () => {
    await rig.start()
    rig.fake.fault('RunPodSandbox', { kind: 'hangs' })
    await rig.apply(podManifest('web'))
    expect(attempts()).toEqual([0])
    await rig.kill()
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(attempts()).toEqual([0, 1])
    expect(rig.container('web').restartCount).toBe(0)
  })

  it('has the number that the one had which was refused, so that nothing is to be written for each try', async () => {
    await rig.start()
    rig.fake.fault('RunPodSandbox', { kind: 'fails', message: 'no network' }, { times: 2 })
    await rig.apply(podManifest('web'))
    await rig.clock.advance(30_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(attempts()).toEqual([0, 0, 0])
    const [saved] = rig.records.saved.values()
    expect(saved?.sandboxAttempts).toBe(1)
  })
})

describe('links to logs', () => {
  beforeEach(() => rig.start())

  it('are made for what the podd before has started, and kept for that alone', async () => {
    await rig.apply(podManifest('web'))
    const { id } = rig.fake.container('main')
    expect(rig.linked).toEqual([id])
    await rig.kill()
    rig.linked.length = 0
    rig.retained.length = 0
    await rig.start()
    await rig.clock.advance(60_000)
    expect(rig.linked).toEqual([id])
    expect(rig.retained).toEqual([id])
  })

  it('that cannot be made are tried again', async () => {
    rig.linkFailure = new Error('ENOSPC')
    await rig.apply(podManifest('web'))
    expect(rig.running()).toEqual(['web/main'])
    rig.linkFailure = undefined
    await rig.apply(podManifest('web', {}, { labels: { any: 'change' } }))
    expect(rig.linked).toEqual([rig.fake.container('main').id])
  })
})

describe('a podd that has just been started', () => {
  it('tells when all pods of the one before are shown', async () => {
    await rig.start()
    await rig.apply(podManifest('web'), podManifest('job', { restartPolicy: 'Never' }))
    await rig.kill()
    rig.fake.fault('ListPodSandbox', { kind: 'delays', delayMs: 3000 })
    await rig.start()
    let shown: readonly string[] | undefined
    void rig.system.whenShown.then(() => {
      shown = rig.system.statuses.list().map(({ metadata, status }) => `${metadata.name} ${status.phase}`)
    })
    await rig.clock.advance(2900)
    expect(shown).toBeUndefined()
    await rig.clock.advance(200)
    expect(shown).toEqual(['job Running', 'web Running'])
  })

  it.each([
    ['there were none', async () => {}, ''],
    ['the runtime does not answer for long', () => rig.apply(podManifest('web')), 'web'],
  ])('does not wait in vain where %s', async (_title, before, names) => {
    await rig.start()
    await before()
    await rig.kill()
    rig.fake.fault('ListPodSandbox', { kind: 'hangs' })
    await rig.start()
    let isShown = false
    void rig.system.whenShown.then(() => (isShown = true))
    await rig.clock.advance(names === '' ? 0 : 5100)
    expect(isShown).toBe(true)
    expect(
      rig.system.statuses
        .list()
        .map(({ metadata }) => metadata.name)
        .join(' '),
    ).toBe(names)
  })
})

describe('a start that was called off because podd was killed', () => {
  it.each(['Never', 'Always'])('is made again and not counted, under %s', async (restartPolicy) => {
    await rig.start()
    const containers = [{ name: 'main', image: 'app:1' }]
    const initContainers = [{ name: 'init', image: 'app:1' }]
    rig.fake.script('init', { kind: 'exits', afterMs: 10, exitCode: 0 })
    // Of init's two starts the first one hangs, and of main's.
    let starts = 0
    const when = (): boolean => [1, 3].includes((starts += 1))
    rig.fake.fault('StartContainer', { kind: 'hangs' }, { when, times: 2 })
    await rig.apply(podManifest('job', { restartPolicy, initContainers, containers }))
    for (const name of ['init', 'main']) {
      await rig.clock.advance(1000)
      await rig.kill()
      const message = 'failed to create containerd task: failed to create shim task: context canceled'
      const end = { exitCode: 128, reason: 'StartError', message, finishedAtMs: rig.clock.wallMs() }
      Object.assign(rig.fake.container(name), { state: 'CONTAINER_EXITED', ...end })
      await rig.start()
    }
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['job/main'])
    for (const name of ['init', 'main']) {
      expect(rig.container('job', name)).toMatchObject({ restartCount: 0, lastState: {} })
    }
    expect(rig.fake.world.containers.size).toBe(2)
  })

  /** Has podd killed while containerd starts `main`, and containerd cancel that. */
  async function killInStart(): Promise<void> {
    rig.fake.fault('StartContainer', { kind: 'hangs' })
    await rig.apply(podManifest('job', { restartPolicy: 'Never' }))
    await rig.clock.advance(1000)
    await rig.kill()
  }
  const cancel = (): void => {
    const message = 'failed to start containerd task "c1": context canceled'
    const end = { exitCode: 128, reason: 'StartError', message, finishedAtMs: rig.clock.wallMs() }
    Object.assign(rig.fake.container('main'), { state: 'CONTAINER_EXITED', ...end })
  }

  it('is made again and counted where a process may have run', async () => {
    await rig.start()
    await killInStart()
    cancel()
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['job/main'])
    expect(rig.container('job').restartCount).toBe(1)
    expect(rig.fake.world.containers.size).toBe(1)
  })

  it('is counted also where podd comes back before it is cancelled, or is killed once more', async () => {
    await rig.start()
    await killInStart()
    await rig.start()
    cancel()
    rig.fake.fault('StartContainer', { kind: 'hangs' })
    await rig.clock.advance(1000)
    await rig.kill()
    const message = 'failed to create containerd task: context canceled'
    const newest = [...rig.fake.world.containers.values()].at(-1)!
    Object.assign(newest, { state: 'CONTAINER_EXITED', exitCode: 128, reason: 'StartError', message })
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['job/main'])
    expect(rig.container('job').restartCount).toBe(1)
    expect(rig.fake.world.containers.size).toBe(1)
  })

  it('is not made again where it came to pass after all', async () => {
    await rig.start()
    await killInStart()
    const id = rig.fake.container('main').id
    await rig.start()
    await rig.fake.runtime.startContainer({ containerId: id })
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['job/main'])
    expect(rig.fake.container('main').id).toBe(id)
    expect(rig.container('job').restartCount).toBe(0)
  })

  it('is told from one that failed while podd was there', async () => {
    await rig.start()
    rig.fake.script('main', { kind: 'fails-to-start', message: 'exec: "nope": not found' })
    await rig.apply(podManifest('job', { restartPolicy: 'Never' }))
    expect(rig.pod('job').status.phase).toBe('Failed')
    await rig.kill()
    await rig.start()
    expect(rig.pod('job').status.phase).toBe('Failed')
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
  })
})

describe('a host that was rebooted', () => {
  it('has each pod run again in a new sandbox, with its UID and its counts', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    await rig.kill()
    for (const sandbox of rig.fake.world.sandboxes.values()) rig.fake.world.stopSandbox(sandbox)
    await rig.start()
    await rig.clock.advance(2000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.container('web').restartCount).toBe(1)
  })

  it('has every sandbox of the boot before stopped before the pod gets another, and tells how its containers ended', async () => {
    await rig.start()
    await rig.apply(podManifest('web'), podManifest('two'))
    rig.fake.exitContainer('main', 3)
    await rig.clock.advance(1000)
    await rig.kill()
    const { world } = rig.fake
    // As containerd finds them when it starts again.
    for (const container of world.containers.values())
      if (container.state === 'CONTAINER_RUNNING') world.exit(container, 255, 'Unknown')
    for (const sandbox of world.sandboxes.values()) world.endSandbox(sandbox)
    const old = [...world.sandboxes.keys()]
    const before = rig.fake.journal.length
    rig.host = { bootId: 'boot-2' }
    await rig.start()
    await rig.clock.advance(2000)
    expect(rig.running()).toEqual(['two/main', 'web/main'])
    const calls = rig.fake.journal.slice(before)
    const uidOf = ({ request }: (typeof calls)[number]): unknown => {
      const { podSandboxId, config } = request as {
        readonly podSandboxId?: string
        readonly config?: { readonly metadata?: { readonly uid?: string } }
      }
      return config?.metadata?.uid ?? world.sandboxes.get(podSandboxId ?? '')?.config.metadata?.uid
    }
    for (const name of ['web', 'two']) {
      const { uid } = rig.pod(name).metadata
      const methods = calls.filter((call) => uidOf(call) === uid).map(({ method }) => method)
      const changes = methods.filter((method) => /^(Run|Stop|Create)/u.test(method))
      expect(changes).toEqual(['StopPodSandbox', 'RunPodSandbox', 'CreateContainer'])
      expect(rig.container(name).lastState.terminated).toMatchObject({
        exitCode: 255,
        reason: 'Unknown',
        message: 'The container was running when the host was restarted or lost power',
      })
    }
    expect(old).toHaveLength(2)
    expect(rig.container('two').restartCount + rig.container('web').restartCount).toBe(3)
    // In the same boot the reason is unknown.
    await rig.kill()
    for (const container of rig.fake.containersNamed('main'))
      if (container.state === 'CONTAINER_RUNNING') world.exit(container, 255, 'Unknown')
    await rig.start()
    await rig.clock.advance(60_000)
    expect(rig.container('web').lastState.terminated).toMatchObject({ exitCode: 255, reason: 'Unknown' })
    expect(rig.container('web').lastState.terminated?.message ?? '').toBe('')
  })

  it('has what crashed before run again at once, and wait for what it does from then on', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    for (const delayMs of [0, 10_000]) {
      rig.fake.exitContainer('main', 1)
      await rig.clock.advance(delayMs + 1000)
    }
    expect(rig.container('web').restartCount).toBe(2)
    await rig.kill()
    for (const sandbox of rig.fake.world.sandboxes.values()) rig.fake.world.stopSandbox(sandbox)
    rig.host = { bootId: 'boot-2' }
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').restartCount).toBe(3)
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(9000)
    expect(rig.running()).toEqual([])
    expect(rig.container('web').state).toMatchObject({ waiting: { reason: 'CrashLoopBackOff' } })
    await rig.clock.advance(2000)
    expect(rig.running()).toEqual(['web/main'])
  })

  it('counts on even where the runtime has forgotten all', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    await rig.kill()
    rig.fake.world.containers.clear()
    rig.fake.world.sandboxes.clear()
    await rig.start()
    await rig.clock.advance(12_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').restartCount).toBe(1)
  })
})

describe('records that are lost', () => {
  it('leave no directory of a pod behind that nobody knows', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    await rig.kill()
    rig.podDirectories = [uid, 'of-long-ago', 'lost']
    await rig.start()
    expect(rig.tornDown).toEqual(['of-long-ago', 'lost'])
  })

  it('are made anew from the runtime: nothing restarts, UID and counts stay', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    const { uid } = rig.pod('web').metadata
    await rig.kill()
    rig.records.saved.clear()
    expect(await changesOf(() => rig.start())).toEqual([])
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.container('web').restartCount).toBe(1)
    expect(rig.records.saved.size).toBe(1)
  })

  it('of a pod that nobody wants: it ends as it asked to, hook and grace from its annotations', async () => {
    const lifecycle = { preStop: { exec: { command: ['bye'] } } }
    await rig.start()
    await rig.apply(
      podManifest('web', {
        containers: [{ name: 'main', image: 'app:1', lifecycle }],
        terminationGracePeriodSeconds: 77,
      }),
    )
    await rig.kill()
    rig.records.saved.clear()
    await rig.remove('web')
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.fake.calls('ExecSync').map(({ request }) => request.cmd)).toEqual([['bye']])
    expect(rig.fake.calls('StopContainer')[0]?.request.timeout).toBe(77)
    expect(rig.isEmpty()).toBe(true)
  })

  it('are made anew though garbage is collected before their pods had their turn', async () => {
    await rig.start()
    await rig.apply(podManifest('web'), podManifest('db'))
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(15_000)
    const running = rig.running()
    await rig.kill()
    rig.records.saved.clear()
    // Each look at the clock takes a turn's time.
    const monotonicMs = rig.clock.monotonicMs.bind(rig.clock)
    let passedMs = 0
    rig.clock.monotonicMs = () => monotonicMs() + (passedMs += 100)
    rig.boot()
    rig.system.offerSnapshot(rig.snapshot('file'))
    const collected: Promise<unknown>[] = []
    for (let turn = 0; turn < 50; turn += 1) {
      collected.push(
        rig.system.node
          .collectGarbage({ dryRun: false }, new AbortController().signal)
          .catch(() => undefined),
      )
      await new Promise((resolve) => void setImmediate(resolve))
    }
    rig.clock.monotonicMs = monotonicMs
    await rig.clock.advance(60_000)
    await Promise.all(collected)
    expect(rig.running()).toEqual(running)
    expect(rig.fake.calls('StopContainer')).toHaveLength(0)
  })

  it('of a pod that is wanted otherwise: it ends, then the wanted one starts', async () => {
    await rig.start()
    await rig.apply(podManifest('web', { hostname: 'one' }))
    await rig.kill()
    rig.records.saved.clear()
    await rig.apply(podManifest('web', { hostname: 'two' }))
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web').spec['hostname']).toBe('two')
  })

  it('does not end orphans before every source has spoken', async () => {
    rig = new PodRig({ sources: ['file', 'http'] })
    await rig.start()
    await rig.put('http', podManifest('web'))
    await rig.kill()
    rig.records.saved.clear()
    rig.boot()
    await rig.offer('file')
    await rig.clock.advance(120_000)
    expect(rig.running()).toEqual(['web/main'])
    await rig.offer('http')
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.records.saved.size).toBe(1)
  })

  it('do not matter for what another instance has in the same runtime', async () => {
    rig.host = { instance: 'one' }
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.kill()
    rig.records.saved.clear()
    rig.host = { instance: 'two' }
    await rig.remove('web')
    await rig.start()
    await rig.clock.advance(120_000)
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('records that cannot be read', () => {
  async function spoilRecordOf(name: string): Promise<void> {
    const { uid } = rig.pod(name).metadata
    await rig.kill()
    rig.records.spoil(uid)
  }

  const told = () => rig.system.problems().map(({ object, message }) => [object, message.split(',')[0]])
  const leftAlone = ['default/web', 'the pod runs and is left alone']

  it('leave the pod that is wanted as it was as it is', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    await spoilRecordOf('web')
    expect(await changesOf(() => rig.start())).toEqual([])
    expect(rig.container('web').ready).toBe(true)
    expect(told()).toEqual([])
  })

  it('end no pod that nobody wants, while it runs; what is told says why', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    await spoilRecordOf('web')
    await rig.remove('web')
    expect(
      await changesOf(async () => {
        await rig.start()
        await rig.clock.advance(120_000)
      }),
    ).toEqual([])
    expect(rig.running()).toEqual(['web/main'])
    expect(told()).toEqual([leftAlone])
  })

  it('have a manifest of that name wait until the pod has ended', async () => {
    await rig.start()
    await rig.apply(podManifest('web', { hostname: 'one' }))
    await spoilRecordOf('web')
    await rig.apply(podManifest('web', { hostname: 'two' }))
    expect(await changesOf(() => rig.start())).toEqual([])
    expect(told()).toEqual([leftAlone])
    for (const { id } of rig.fake.world.sandboxes.values()) {
      rig.fake.exitContainer('main', 0)
      await rig.fake.runtime.stopPodSandbox({ podSandboxId: id })
    }
    await rig.clock.advance(61_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web').spec['hostname']).toBe('two')
    expect(told()).toEqual([])
  })

  it('leave nothing behind of a pod that nobody wants and that ended meanwhile', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    await spoilRecordOf('web')
    await rig.remove('web')
    for (const { id } of rig.fake.world.sandboxes.values()) {
      rig.fake.exitContainer('main', 0)
      await rig.fake.runtime.stopPodSandbox({ podSandboxId: id })
    }
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('keep the directories of their pods', async () => {
    await rig.start()
    rig.records.spoil('of-a-newer-podd')
    await rig.kill()
    rig.podDirectories = ['of-a-newer-podd', 'lost']
    await rig.start()
    expect(rig.tornDown).toEqual(['lost'])
  })

  it('keep no pod from being ended with all others', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    await spoilRecordOf('web')
    await rig.remove('web')
    await rig.start()
    const ending = rig.system.endAll({ graceSeconds: undefined, signal: new AbortController().signal })
    await rig.clock.advance(5000)
    await ending
    expect(rig.running()).toEqual([])
  })

  it('have a record whose manifest this podd refuses end no pod, either', async () => {
    await rig.start()
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    await rig.kill()
    const record = rig.records.saved.get(uid)
    if (record === undefined) throw new Error('there is no record')
    rig.records.saved.set(uid, { ...record, manifest: { kind: 'PodOfTomorrow' } })
    await rig.remove('web')
    expect(await changesOf(() => rig.start())).toEqual([])
    expect(rig.running()).toEqual(['web/main'])
    expect(told()).toEqual([leftAlone])
  })
})

describe('what pods refer to', () => {
  it('is not taken for missing before every source has spoken', async () => {
    rig = new PodRig({ sources: ['file', 'http'] })
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.kill()
    rig.prepared.length = 0
    rig.boot()
    await rig.offer('file')
    await rig.clock.advance(10_000)
    expect(rig.pod('web').status.phase).toBe('Running')
    expect(rig.prepared).toEqual([])
    await rig.offer('http')
    expect(rig.prepared).toEqual([rig.pod('web').metadata.uid])
  })
})

describe('removed pods of several sources', () => {
  it('go only when every source has spoken', async () => {
    rig = new PodRig({ sources: ['file', 'http'] })
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.kill()
    await rig.remove('web')
    rig.boot()
    await rig.offer('file')
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web').status.phase).toBe('Running')
    await rig.offer('http')
    await rig.clock.advance(1000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('go at once where their source is seen to drop them, whatever another has not said', async () => {
    rig = new PodRig({ sources: ['file', 'http'] })
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.kill()
    rig.boot()
    await rig.offer('file')
    await rig.apply(podManifest('job'))
    await rig.remove('job')
    expect(rig.running()).toEqual(['web/main'])
    await rig.remove('web')
    await rig.clock.advance(1000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('stay where only a last good copy gave them', async () => {
    rig = new PodRig({ sources: ['file', 'http'] })
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.kill()
    rig.boot()
    rig.system.offerSnapshot({ ...rig.snapshot('file'), isAnswer: false })
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('two records of one name', () => {
  it('leave one pod: the newer', async () => {
    await rig.start()
    await rig.apply(podManifest('web', { hostname: 'one' }))
    const older = rig.records.named('web')!
    await rig.kill()
    rig.records.saved.clear()
    await rig.clock.advance(1000)
    const copy = { ...older, uid: 'another', acceptedAtMs: older.acceptedAtMs + 1000 }
    rig.records.saved.set(older.uid, older)
    rig.records.saved.set('another', copy)
    await rig.start()
    await rig.clock.advance(2000)
    expect(rig.running()).toEqual(['web/main'])
    expect([...rig.records.saved.keys()]).toEqual(['another'])
  })
})
