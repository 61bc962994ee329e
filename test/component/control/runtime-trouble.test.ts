import { beforeEach, describe, expect, it } from 'vitest'
import { VolumeError } from '../../../src/volumes/open-inside.ts'
import { plainCgroups, plainPodHost } from '../../support/plain-pod-host.ts'
import { PodRig, podManifest } from './pod-rig.ts'
import { withoutRevision } from '../../support/pod-objects.ts'

let rig: PodRig

beforeEach(async () => {
  rig = new PodRig()
  await rig.start()
})

/** Calls that change something within some seconds: what spins shows as thousands. */
async function changesWithin(ms: number): Promise<number> {
  const before = rig.fake.changes().length
  await rig.clock.advance(ms)
  return rig.fake.changes().length - before
}

describe('a runtime that goes and comes back', () => {
  it('finds every pod as before, and is told of at once', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.goDown()
    await rig.settle()
    expect(rig.system.runtimeProblem).toBeDefined()
    rig.fake.comeUp()
    await rig.settle()
    expect(rig.system.runtimeProblem).toBeUndefined()
    rig.fake.exitContainer('main', 1)
    await rig.settle()
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').restartCount).toBe(1)
  })

  it('shows pods as they were last seen meanwhile', async () => {
    await rig.apply(podManifest('web'))
    const before = rig.pod('web')
    rig.fake.goDown()
    await rig.clock.advance(60_000)
    expect(rig.pod('web')).toEqual(before)
  })

  it('takes up what was asked for meanwhile', async () => {
    await rig.apply(podManifest('old'))
    rig.fake.goDown()
    await rig.settle()
    await rig.apply(podManifest('web'))
    await rig.remove('old')
    expect(rig.pod('web').status).toMatchObject({ phase: 'Pending', reason: 'RuntimeNotReady' })
    expect(rig.pod('old').metadata.deletionTimestamp).toBeDefined()
    await rig.clock.advance(30_000)
    rig.fake.comeUp()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pods('old')).toEqual([])
  })

  it.each(['RunPodSandbox', 'CreateContainer', 'StartContainer'] as const)(
    'in the middle of %s leaves one pod running once',
    async (method) => {
      rig.fake.fault(method, { kind: 'delays', delayMs: 5000 })
      await rig.apply(podManifest('web'))
      await rig.clock.advance(1000)
      rig.fake.goDown()
      await rig.clock.advance(6000)
      rig.fake.comeUp()
      await rig.clock.advance(30_000)
      expect(rig.running()).toEqual(['web/main'])
      expect([...rig.fake.world.sandboxes.values()].filter(({ ready }) => ready)).toHaveLength(1)
    },
  )

  it.each(['RunPodSandbox', 'CreateContainer', 'StartContainer', 'StopContainer', 'StopPodSandbox'] as const)(
    'and loses the reply to %s leaves nothing behind in the end',
    async (method) => {
      rig.fake.fault(method, { kind: 'loses-reply' })
      await rig.apply(podManifest('web'))
      await rig.clock.advance(30_000)
      expect(rig.running()).toEqual(['web/main'])
      await rig.remove('web')
      await rig.clock.advance(60_000)
      expect(rig.isEmpty()).toBe(true)
    },
  )

  it('goes away when podd starts: pods are taken up when it is there', async () => {
    await rig.apply(podManifest('web'))
    await rig.terminate()
    rig.fake.goDown()
    await rig.start()
    await rig.clock.advance(30_000)
    expect(rig.system.runtimeProblem).toBeDefined()
    const before = rig.fake.changes().length
    rig.fake.comeUp()
    await rig.clock.advance(1000)
    expect(rig.pod('web').status.phase).toBe('Running')
    expect(rig.fake.changes().length).toBe(before)
  })

  it('is not there when podd starts: pods are shown all the same, with what is on record', async () => {
    const job = podManifest('job', { restartPolicy: 'Never', containers: [{ name: 'once', image: 'app:1' }] })
    await rig.apply(podManifest('web'), job)
    rig.fake.exitContainer('main', 1)
    rig.fake.exitContainer('once', 0)
    await rig.settle()
    await rig.terminate()
    rig.fake.goDown()
    await rig.start()
    await rig.apply(podManifest('new'), podManifest('brief'))
    await rig.remove('brief')
    expect(rig.pods('brief')).toEqual([])
    const waiting = [{ state: { waiting: { reason: 'RuntimeNotReady' } } }]
    expect(rig.pod('new').status).toMatchObject({ phase: 'Pending', containerStatuses: waiting })
    expect(rig.pod('web').status).toMatchObject({ containerStatuses: waiting })
    expect(rig.container('web').lastState.terminated?.exitCode).toBe(1)
    expect(rig.pod('job').status.phase).toBe('Succeeded')
    const { uid } = rig.pod('new').metadata
    await rig.clock.advance(60_000)
    rig.fake.comeUp()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['new/main', 'web/main'])
    expect(rig.pod('new').metadata.uid).toBe(uid)
    expect(rig.pod('web').status.phase).toBe('Running')
    expect(rig.pod('job').status.phase).toBe('Succeeded')
  })

  it('shows what is wanted while the first answer is awaited, and nothing of it as made', async () => {
    rig = new PodRig()
    rig.fake.fault('ListPodSandbox', { kind: 'delays', delayMs: 20_000 })
    await rig.start()
    await rig.apply(podManifest('web'))
    const message = 'waiting for the container runtime'
    expect(rig.pod('web').status).toMatchObject({ phase: 'Pending', reason: 'RuntimeNotReady', message })
    expect(rig.records.saved.size).toBe(0)
    await rig.clock.advance(21_000)
    expect(rig.pod('web').status.phase).toBe('Running')
  })

  it('is not there when podd starts: what is through is shown as that', async () => {
    const containers = [
      { name: 'done', image: 'app:1' },
      { name: 'goes-on', image: 'app:1' },
    ]
    const initContainers = [{ name: 'init', image: 'app:1' }]
    rig.fake.script('init', { kind: 'exits', afterMs: 10, exitCode: 0 })
    rig.fake.script('done', { kind: 'exits', afterMs: 10, exitCode: 3 })
    await rig.apply(podManifest('job', { restartPolicy: 'Never', initContainers, containers }))
    await rig.clock.advance(1000)
    const before = rig.pod('job').status
    await rig.terminate()
    rig.fake.goDown()
    await rig.start()
    const { status } = rig.pod('job')
    expect(status.initContainerStatuses).toEqual(before.initContainerStatuses)
    expect(rig.container('job', 'done')).toEqual(before.containerStatuses?.[0])
    expect(rig.container('job', 'goes-on').state.waiting?.reason).toBe('RuntimeNotReady')
  })

  it('is not there when podd starts: a pod that ends is shown as that', async () => {
    await rig.apply(podManifest('web', { activeDeadlineSeconds: 10 }))
    rig.fake.fault('StopContainer', { kind: 'hangs' })
    await rig.clock.advance(11_000)
    await rig.kill()
    rig.fake.goDown()
    await rig.start()
    const { status } = rig.pod('web')
    expect(status.reason).toBe('DeadlineExceeded')
    await rig.apply(podManifest('new'))
    expect(rig.pod('web').status).toEqual(status)
  })

  it('takes long to come up: pods are shown after some seconds, and begun with the age they have by then', async () => {
    await rig.apply(podManifest('old'))
    await rig.kill()
    let open = (): void => {}
    rig.opened = new Promise((resolve) => (open = resolve))
    await rig.start()
    await rig.clock.advance(1000)
    await rig.apply(podManifest('new'))
    expect(rig.pods('old')).toEqual([])
    await rig.clock.advance(4500)
    const message = 'waiting for the container runtime'
    for (const name of ['old', 'new']) expect(rig.container(name).state.waiting?.message).toBe(message)
    expect(rig.system.allPods().map(({ metadata }) => metadata.name)).toEqual(['new', 'old'])
    const { metadata } = withoutRevision(rig.pod('new'))
    const calls = rig.fake.journal.length
    await rig.clock.advance(20_000)
    expect(rig.fake.journal.length).toBe(calls)
    open()
    await rig.settle()
    expect(rig.running()).toEqual(['new/main', 'old/main'])
    expect(withoutRevision(rig.pod('new')).metadata).toEqual(metadata)
    expect(rig.system.allPods()).toHaveLength(2)
  })

  it('is still awaited when podd is told to end', async () => {
    await rig.apply(podManifest('web'))
    await rig.kill()
    let open = (): void => {}
    rig.opened = new Promise((resolve) => (open = resolve))
    await rig.start()
    const calls = rig.fake.journal.length
    const ended = rig.terminate()
    open()
    await ended
    expect(rig.failures).toEqual([])
    expect(rig.fake.journal.length).toBe(calls)
    expect(rig.running()).toEqual(['web/main'])
  })

  it('holds a wanted pod whose record is lost: it is shown once, as what it is', async () => {
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    await rig.terminate()
    rig.records.saved.clear()
    rig.fake.goDown()
    await rig.start()
    expect(rig.pod('web').status.reason).toBe('RuntimeNotReady')
    rig.fake.comeUp()
    await rig.clock.advance(1000)
    expect(rig.pod('web')).toMatchObject({ metadata: { uid }, status: { phase: 'Running' } })
  })

  it('answers again although the event stream stays broken: podd lists it each second', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.eventsMuted = true
    rig.fake.goDown()
    rig.fake.comeUp({ events: false })
    await rig.clock.advance(3000)
    expect(rig.system.runtimeProblem).toBeUndefined()
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(2000)
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('a runtime that does not say at once what it can do', () => {
  it('is asked again, and pods that depend on it start then', async () => {
    rig = new PodRig()
    rig.fake.fault('Status', { kind: 'fails' }, { times: 2 })
    await rig.start()
    const securityContext = { supplementalGroupsPolicy: 'Strict' }
    await rig.apply(podManifest('strict', { securityContext }), podManifest('web'))
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('strict').status).toMatchObject({ phase: 'Pending', reason: 'RuntimeNotReady' })
    await rig.clock.advance(25_000)
    expect(rig.fake.calls('Status')).toHaveLength(3)
    expect(rig.pod('strict').status.reason).not.toBe('RuntimeNotReady')
  })
})

describe('what a later runtime can do', () => {
  const container = { name: 'main', image: 'app:1' }
  const signalled = podManifest('signalled', {
    os: { name: 'linux' },
    containers: [{ ...container, lifecycle: { stopSignal: 'SIGRTMIN+3' } }],
  })
  const imaged = podManifest('imaged', {
    volumes: [{ name: 'v', image: { reference: 'side:1' } }],
    containers: [
      {
        ...container,
        env: [{ name: 'PART', value: 'share' }],
        volumeMounts: [
          { name: 'v', mountPath: '/a', subPath: 'etc/conf' },
          { name: 'v', mountPath: '/b', subPathExpr: '$(PART)/x' },
          { name: 'v', mountPath: '/c' },
        ],
      },
    ],
  })

  async function start(version: string): Promise<void> {
    rig = new PodRig()
    rig.fake.settings.version = version
    await rig.start()
    await rig.apply(signalled, imaged)
  }

  it('is used: the signal that ends a container, and parts of an image', async () => {
    await start('v2.3.0')
    expect(rig.running().toSorted()).toEqual(['imaged/main', 'signalled/main'])
    const [first, second] = [...rig.fake.world.containers.values()]
      .toSorted((a) => (a.sandbox.config.metadata?.name === 'imaged' ? -1 : 1))
      .map(({ config }) => config)
    const parts = (first?.mounts ?? []).filter(({ image }) => image !== null && image !== undefined)
    expect(parts.map(({ containerPath, imageSubPath }) => [containerPath, imageSubPath])).toEqual([
      ['/a', 'etc/conf'],
      ['/b', 'share/x'],
      ['/c', ''],
    ])
    expect([first?.stopSignal, second?.stopSignal]).toEqual([
      'SIGNAL_RUNTIME_DEFAULT',
      'SIGNAL_SIGRTMINPLUS3',
    ])
    expect([rig.container('imaged').stopSignal, rig.container('signalled').stopSignal]).toEqual([
      undefined,
      'SIGRTMIN+3',
    ])
  })

  it.each([
    ['v2.2.1', ['imaged/main'], /^$/u],
    ['v2.1.9', [], /volumeMounts\.subPath of an image needs containerd 2\.2$/u],
  ])('is waited for on containerd %s', async (version, running, imagedMessage) => {
    await start(version)
    expect(rig.running()).toEqual(running)
    expect(rig.pod('signalled').status).toMatchObject({ phase: 'Pending', reason: 'RuntimeUnsupported' })
    expect(rig.pod('signalled').status.message).toContain('lifecycle.stopSignal needs containerd 2.3')
    expect(rig.pod('imaged').status.message ?? '').toMatch(imagedMessage)
  })
})

describe('a runtime without a network for pods', () => {
  const advice =
    'Put a CNI network config into /etc/cni/net.d, and its plugins into /opt/cni/bin; or let podd do it'

  beforeEach(async () => {
    rig = new PodRig()
    rig.fake.settings.networkReady = false
    await rig.start()
  })

  it('is asked for no sandbox but those on the host’s network; the others wait, and say what to do', async () => {
    await rig.apply(podManifest('web'), podManifest('host', { hostNetwork: true }))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['host/main'])
    expect(rig.fake.calls('RunPodSandbox')).toHaveLength(1)
    expect(rig.reasons('web')).toContain('NetworkNotReady')
    expect(rig.reasons('web')).not.toContain('FailedCreatePodSandBox')
    const { reason, message } = rig.container('web').state.waiting ?? {}
    expect(reason).toBe('ContainerCreating')
    expect(message).toContain('network is not ready: container runtime network not ready: NetworkReady=false')
    expect(message).toContain(advice)
    expect(rig.system.networkProblem).toContain(advice)
    expect(rig.system.healthFacts).toMatchObject({ isRuntimeDown: false, isNetworkDown: true })
  })

  it('has a pod that is removed go at once', async () => {
    await rig.apply(podManifest('web'))
    await rig.clock.advance(10_000)
    await rig.remove('web')
    await rig.clock.advance(1000)
    expect(rig.pods('web')).toEqual([])
    expect(rig.isEmpty()).toBe(true)
  })

  it('has a pod that ran go too, though it can not stop its sandbox before there is a network', async () => {
    rig.fake.settings.networkReady = true
    await rig.clock.advance(6000)
    await rig.apply(podManifest('web'))
    rig.fake.settings.networkReady = false
    await rig.clock.advance(61_000)
    const message = 'failed to destroy network for sandbox: cni plugin not initialized'
    rig.fake.fault('StopPodSandbox', { kind: 'fails', message }, { times: 99 })
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.pods('web')).toEqual([])
    expect(rig.tornDown).toHaveLength(1)
    expect(rig.events.at(-1)).toMatchObject({ reason: 'NetworkNotReady' })
    // The next podd knows of the sandbox.
    await rig.kill()
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.pods('web')).toEqual([])
    rig.fake.clearFaults()
    rig.fake.settings.networkReady = true
    await rig.clock.advance(15_000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('gets its pods when the network is there, and goes on with those that run when it is lost', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.settings.networkReady = true
    await rig.clock.advance(15_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.system.networkProblem).toBeUndefined()
    rig.fake.settings.networkReady = false
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(61_000)
    expect(rig.system.networkProblem).toBeDefined()
    expect(rig.running()).toEqual(['web/main'])
  })

  it('is asked whether it lost its network as soon as a sandbox could not be made', async () => {
    rig.fake.settings.networkReady = true
    await rig.clock.advance(6000)
    expect(rig.system.networkProblem).toBeUndefined()
    rig.fake.settings.networkReady = false
    rig.fake.settings.cni = 'fails'
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    expect(rig.system.networkProblem).toBeDefined()
    await rig.clock.advance(60_000)
    expect(rig.fake.calls('RunPodSandbox')).toHaveLength(1)
  })
})

describe('a runtime that answers and can not be used', () => {
  it.each<
    [what: string, problem: string, change: (settings: PodRig['fake']['settings'], well: boolean) => void]
  >([
    [
      'since it is not ready',
      'container runtime not ready: RuntimeReady=false reason:ShutsDown message:it is about to end',
      (settings, well) => (settings.runtimeReady = well),
    ],
    [
      'since it speaks another version of the runtime API',
      'containerd speaks version 0.2.0 of the runtime API, and podd needs 0.1.0: install a release of it that serves CRI v1',
      (settings, well) => (settings.apiVersion = well ? '0.1.0' : '0.2.0'),
    ],
  ])('%s counts as away until that has changed', async (_what, problem, change) => {
    rig = new PodRig()
    change(rig.fake.settings, false)
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.clock.advance(30_000)
    expect(rig.system.runtimeProblem).toBe(problem)
    expect(rig.fake.calls('CreateContainer')).toEqual([])
    expect(rig.pod('web').status).toMatchObject({ phase: 'Pending', reason: 'RuntimeNotReady' })
    change(rig.fake.settings, true)
    await rig.clock.advance(15_000)
    expect(rig.system.runtimeProblem).toBeUndefined()
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('a container that was killed for its memory, of which the runtime tells nothing', () => {
  it.each([
    ['whose first process was killed', 137],
    ['whose first process made nothing of it', 0],
  ])('is shown as that beside a sidecar: one %s', async (_what, exitCode) => {
    let killed: string | undefined
    rig = new PodRig()
    rig.host = { cgroups: { ...plainCgroups, hasOomKills: async (_uid, id) => id === killed } }
    await rig.start()
    const initContainers = [{ name: 'side', image: 'side:1', restartPolicy: 'Always' }]
    await rig.apply(podManifest('web', { initContainers, restartPolicy: 'Never' }))
    killed = rig.fake.container('main').id
    rig.fake.exitContainer('main', exitCode)
    await rig.clock.advance(60_000)
    expect(rig.container('web').state.terminated).toMatchObject({ reason: 'OOMKilled', exitCode })
    expect(rig.container('web', 'side').state.terminated?.reason).not.toBe('OOMKilled')
  })
})

describe('a device that is unplugged', () => {
  it('has its pod wait without a sandbox, and its container without a start, until it is there again', async () => {
    let isThere = false
    const found: (() => void)[] = []
    const plain = plainPodHost(rig.objects)
    rig = new PodRig()
    rig.host = {
      volumes: {
        ...plain.volumes,
        prepare: async () => {
          if (isThere) return new Map()
          throw new VolumeError('no /dev/ttyUSB0', { awaitedPath: '/dev/ttyUSB0' })
        },
        whenThere: (path) => {
          expect(path).toBe('/dev/ttyUSB0')
          return new Promise((resolve) => found.push(resolve))
        },
      },
    }
    await rig.start()
    const plug = async (): Promise<void> => {
      isThere = true
      for (const tell of found.splice(0)) tell()
      await rig.settle()
    }
    await rig.apply(podManifest('web'))
    await rig.clock.advance(21_000)
    expect(rig.reasons('web')).toContain('FailedMount')
    expect(rig.fake.calls('RunPodSandbox')).toEqual([])
    await plug()
    expect(rig.running()).toEqual(['web/main'])
    isThere = false
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(400_000)
    expect(rig.running()).toEqual([])
    expect(rig.fake.calls('CreateContainer')).toHaveLength(1)
    expect(rig.container('web').state.waiting).toMatchObject({
      reason: 'ContainerCreating',
      message: 'no /dev/ttyUSB0',
    })
    await plug()
    await rig.clock.advance(100)
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('an event that never came', () => {
  it('is made up for by the slow relist', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.eventsMuted = true
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(70_000)
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('a sandbox whose status cannot be read after it was made', () => {
  it('is said to be that, is not made again, and is gone on with', async () => {
    rig.fake.fault('PodSandboxStatus', { kind: 'fails' }, { times: 1 })
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    expect(rig.reasons('web')).toContain('FailedStatusPodSandBox')
    expect(rig.reasons('web')).not.toContain('FailedCreatePodSandBox')
    await rig.clock.advance(30_000)
    expect(rig.fake.calls('RunPodSandbox')).toHaveLength(1)
    expect(rig.running()).toEqual(['web/main'])
    rig.fake.endSandbox('web')
    await rig.clock.advance(30_000)
    const attempts = rig.fake.calls('RunPodSandbox').map(({ request }) => request.config.metadata.attempt)
    expect(attempts).toEqual([0, 1])
  })
})

describe('calls that always fail', () => {
  it.each([
    ['RunPodSandbox', 'FailedCreatePodSandBox'],
    ['CreateContainer', 'Failed'],
    ['StartContainer', 'Failed'],
    ['ListContainers', 'FailedSync'],
    ['ContainerStatus', 'FailedSync'],
    ['ImageStatus', 'InspectFailed'],
  ] as const)(
    '%s: podd says so, tries again now and then, and goes on when it works',
    async (method, reason) => {
      rig.fake.fault(method, { kind: 'fails' }, { times: 1000 })
      await rig.apply(podManifest('web'))
      const before = rig.fake.journal.length
      await rig.clock.advance(60_000)
      expect(rig.fake.journal.length - before).toBeLessThan(400)
      expect(rig.reasons('web')).toContain(reason)
      expect(rig.pod('web').status.phase).toBe('Pending')
      rig.fake.clearFaults()
      await rig.clock.advance(310_000)
      expect(rig.running()).toEqual(['web/main'])
    },
  )

  it('StopContainer of a container that fails its probe', async () => {
    const livenessProbe = { exec: { command: ['alive'] }, periodSeconds: 1, failureThreshold: 1 }
    rig.probe = () => ({ result: 'failure', output: 'dead' })
    rig.fake.fault('StopContainer', { kind: 'fails' }, { times: 1000 })
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'app:1', livenessProbe }] }))
    expect(await changesWithin(60_000)).toBeLessThan(20)
  })

  it('of one pod do not hold up another', async () => {
    rig.fake.fault(
      'RunPodSandbox',
      { kind: 'hangs' },
      { when: ({ config }) => config.metadata.name === 'stuck' },
    )
    await rig.apply(podManifest('stuck'), podManifest('web'))
    expect(rig.running()).toEqual(['web/main'])
    await rig.remove('web')
    await rig.clock.advance(1000)
    expect(rig.pods('web')).toEqual([])
  })
})

describe('a sandbox', () => {
  it('that dies again and again does not make podd spin', async () => {
    rig.fake.listen((event) => {
      if (event.kind !== 'started') return
      const sandbox = rig.fake.world.sandboxes.get(event.containerId)
      if (sandbox !== undefined) rig.clock.startTimer(0, () => rig.fake.world.endSandbox(sandbox))
    })
    await rig.apply(podManifest('web'))
    expect(await changesWithin(60_000)).toBeLessThan(600)
    expect(rig.fake.world.sandboxes.size).toBeLessThan(5)
  })

  // id: makes-sandbox-died-anew
  it('that died is made again under the same UID as the next attempt, and that is told once', async () => {
    await rig.apply(podManifest('web'))
    await rig.clock.advance(1000)
    const { uid } = rig.pod('web').metadata
    const [sandbox] = rig.fake.sandboxesOf('web')
    if (sandbox !== undefined) rig.fake.world.endSandbox(sandbox)
    await rig.clock.advance(5000)
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.fake.sandboxesOf('web').at(-1)?.config.metadata?.attempt).toBe(1)
    expect(rig.container('web')).toMatchObject({ ready: true, restartCount: 1 })
    expect(rig.condition('web', 'PodReadyToStartContainers')).toBe('True')
    expect(rig.reasons('web').filter((reason) => reason === 'SandboxChanged')).toHaveLength(1)
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('without an address does not make podd spin', async () => {
    rig.fake.listen((event) => {
      const sandbox = event.kind === 'started' ? rig.fake.world.sandboxes.get(event.containerId) : undefined
      if (sandbox !== undefined) sandbox.ip = ''
    })
    await rig.apply(podManifest('web'))
    expect(await changesWithin(60_000)).toBeLessThan(600)
  })
})

describe('a container', () => {
  // id: runtime-lost-track-stopped
  it('that the runtime lost track of is stopped before its successor starts', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.container('main').state = 'CONTAINER_UNKNOWN'
    await rig.clock.advance(70_000)
    expect(rig.fake.changes().slice(3, 6)).toEqual(['StopContainer', 'CreateContainer', 'StartContainer'])
  })

  it('that vanishes in the middle of a look is not taken for one that succeeded', async () => {
    await rig.apply(podManifest('job', { restartPolicy: 'OnFailure' }))
    const { id } = rig.fake.container('main')
    rig.fake.fault(
      'ContainerStatus',
      { kind: 'fails', grpcCode: 5 },
      { when: ({ containerId }) => containerId === id },
    )
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(60_000)
    expect(rig.pod('job').status.phase).toBe('Running')
  })

  it('that is said to run still for a moment after its end is removed without a word', async () => {
    await rig.apply(podManifest('web'))
    rig.fake.fault('RemoveContainer', {
      kind: 'fails',
      message: 'failed to set removing state: container is still running, to stop first',
    })
    for (let crash = 0; crash < 3; crash += 1) {
      rig.fake.exitContainer('main', 1)
      await rig.clock.advance(45_000)
    }
    expect(rig.fake.calls('RemoveContainer').length).toBeGreaterThan(2)
    expect(rig.container('web').restartCount).toBe(3)
    expect(rig.reasons('web')).not.toContain('FailedSync')
  })

  it('that ends before podd has heard of its start is restarted', async () => {
    rig.fake.script('main', { kind: 'exits', afterMs: 0, exitCode: 1 })
    await rig.apply(podManifest('web'))
    await rig.clock.advance(11_000)
    expect(rig.fake.calls('StartContainer').length).toBeGreaterThanOrEqual(3)
  })

  it('whose end the runtime takes its time to admit is restarted once', async () => {
    rig.fake.world.exitLagMs = 60
    await rig.apply(podManifest('web'))
    rig.fake.exitContainer('main', 7)
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.fake.calls('StartContainer')).toHaveLength(2)
    expect(rig.container('web').lastState.terminated?.exitCode).toBe(7)
  })
})

describe('podd down', () => {
  const endAll = (graceSeconds?: number) =>
    rig.system.endAll({ graceSeconds, signal: new AbortController().signal })

  it('ends pods that crash in a loop, that wait for images, and that finished', async () => {
    rig.fake.script('main', { kind: 'exits', afterMs: 10, exitCode: 1 })
    await rig.apply(
      podManifest('loop'),
      podManifest('job', { restartPolicy: 'Never' }),
      podManifest('pull', { containers: [{ name: 'other', image: 'gone:1' }] }),
    )
    await rig.clock.advance(30_000)
    const ended = endAll()
    await rig.clock.advance(60_000)
    expect((await ended).ended).toBe(3)
    expect(rig.isEmpty()).toBe(true)
  })

  it('starts nothing more, though manifests are there still', async () => {
    await rig.apply(podManifest('web'))
    const ended = endAll(0)
    await rig.clock.advance(10_000)
    expect((await ended).ended).toBe(1)
    expect(rig.running()).toEqual([])
  })

  it('waits for pods that end one after the other, and a minute for one that hangs', async () => {
    const names = ['a', 'b', 'c', 'd']
    await rig.apply(...names.map((name) => podManifest(name, { terminationGracePeriodSeconds: 0 })))
    for (const delayMs of [15_000, 30_000, 45_000, 300_000])
      rig.fake.fault('StopPodSandbox', { kind: 'delays', delayMs })
    let isOver = false
    const ended = endAll(0).finally(() => (isOver = true))
    await rig.clock.advance(100_000)
    expect(isOver).toBe(false)
    await rig.clock.advance(10_000)
    expect(await ended).toMatchObject({ ended: 3, stuck: [expect.stringMatching(/^default\/[a-d]$/u)] })
  })

  it('gives up on a runtime that cannot be listed, and says why', async () => {
    rig = new PodRig()
    rig.fake.fault('ListContainers', { kind: 'fails', message: 'out of order' }, { times: 10_000 })
    await rig.start()
    const ended = endAll().catch((error: unknown) => error)
    await rig.clock.advance(130_000)
    expect(await ended).toMatchObject({ code: 'RUNTIME_UNAVAILABLE', message: 'out of order' })
  })
})

describe('a runtime that is silent', () => {
  const frozen = { kind: 'delays', delayMs: 30_000 } as const

  beforeEach(async () => {
    await rig.terminate()
    rig.onRuntimeSilence = (silentMs) => void (given += silentMs % 60_000 === 0 ? 1 : 0)
    given = 0
    await rig.start()
  })
  let given = 0

  it('is not one that always answers late, though its lists take longer still', async () => {
    await rig.terminate()
    rig.fake.fault('Version', { kind: 'delays', delayMs: 7000 }, { times: 10_000 })
    for (const method of ['ListPodSandbox', 'ListContainers'] as const)
      rig.fake.fault(method, { kind: 'delays', delayMs: 20_000 }, { times: 10_000 })
    await rig.start()
    await rig.apply(podManifest('web'))
    await rig.clock.advance(200_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.system.runtimeProblem).toBeUndefined()
    const losses = (): number => rig.nodeEvents.filter(({ reason }) => reason === 'RuntimeUnavailable').length
    const before = losses()
    await rig.clock.advance(600_000)
    expect(losses()).toBe(before)
    expect(given).toBe(0)
    // Once it is quick again, it is silent as soon as any.
    rig.fake.clearFaults()
    await rig.clock.advance(60_000)
    rig.fake.fault('Version', frozen)
    await rig.clock.advance(16_000)
    expect(losses()).toBe(before + 1)
  })

  it('is told of, and is there again with its next answer', async () => {
    await rig.apply(podManifest('web'))
    const before = rig.pod('web')
    for (const method of ['Version', 'ListPodSandbox', 'ListContainers'] as const)
      rig.fake.fault(method, frozen, { when: () => rig.clock.monotonicMs() < 30_000, times: 100 })
    await rig.clock.advance(16_000)
    expect(rig.system.runtimeProblem).toBe('the container runtime does not answer')
    expect(rig.pod('web')).toEqual(before)
    await rig.clock.advance(30_000)
    expect(rig.system.runtimeProblem).toBeUndefined()
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web')).toEqual(before)
    expect(given).toBe(0)
    expect(rig.nodeEvents.map(({ type, reason }) => `${type} ${reason}`)).toEqual([
      'Warning RuntimeUnavailable',
      'Normal RuntimeAvailable',
    ])
  })

  it('is told of as no warning where podd had no turn for a while in a boot, and where the host was suspended', async () => {
    const types = (): readonly string[] =>
      rig.nodeEvents
        .filter(({ reason }) => reason === 'RuntimeUnavailable')
        .map(({ type, message }) => `${type}: ${message.split(': ').at(-1)}`)
    await rig.clock.freeze(60_000)
    await rig.clock.advance(30_000)
    rig.clock.boot(120_000)
    await rig.clock.freeze(60_000)
    await rig.clock.advance(30_000)
    rig.clock.suspend(3_600_000)
    await rig.clock.advance(30_000)
    expect(types()).toEqual([
      'Warning: podd did not run for a while',
      'Normal: podd did not run for a while',
      'Normal: the host was suspended',
    ])
  })

  it('is a warning after all where it does not come within two minutes of a boot', async () => {
    await rig.terminate()
    rig.clock.boot(20_000)
    rig.fake.goDown()
    await rig.start()
    const types = (): readonly string[] => rig.nodeEvents.map(({ type, reason }) => `${type} ${reason}`)
    await rig.clock.advance(110_000)
    expect(types()).toEqual(['Normal RuntimeUnavailable'])
    await rig.clock.advance(600_000)
    expect(types()).toEqual(['Normal RuntimeUnavailable', 'Warning RuntimeUnavailable'])
    rig.fake.comeUp()
    await rig.clock.advance(30_000)
    expect(types().slice(2)).toEqual(['Normal RuntimeAvailable'])
  })

  it('is a warning as soon as it is known to be gone after the host was suspended', async () => {
    const types = (): readonly string[] => rig.nodeEvents.map(({ type, reason }) => `${type} ${reason}`)
    rig.fake.fault('ListPodSandbox', { kind: 'delays', delayMs: 3000 }, { times: 1 })
    rig.clock.suspend(3_600_000)
    await rig.clock.advance(11_000)
    expect(types()).toEqual(['Normal RuntimeUnavailable'])
    rig.fake.goDown()
    await rig.clock.advance(60_000)
    expect(types()).toEqual(['Normal RuntimeUnavailable', 'Warning RuntimeUnavailable'])
    rig.fake.comeUp()
    await rig.clock.advance(200_000)
    expect(types().slice(2)).toEqual(['Normal RuntimeAvailable'])
  })

  it('is given up after a minute, once for each', async () => {
    rig.fake.fault('Version', { kind: 'hangs' })
    rig.fake.fault('ListPodSandbox', { kind: 'hangs' })
    await rig.clock.advance(65_000)
    expect(given).toBe(0)
    await rig.clock.advance(5_000)
    expect(given).toBe(1)
  })

  it('has a pod looked at before what was planned goes on', async () => {
    rig.fake.fault('Version', frozen, { times: 1 })
    rig.fake.fault('StartContainer', frozen, { times: 1 })
    const containers = ['a', 'b'].map((name) => ({ name, image: 'app:1' }))
    await rig.apply(podManifest('web', { containers }))
    await rig.clock.advance(41_000)
    expect(rig.running()).toEqual(['web/a', 'web/b'])
    const methods = rig.fake.journal.map(({ method }) => method)
    const started = methods.indexOf('StartContainer')
    const next = methods.indexOf('CreateContainer', started)
    expect(methods.slice(started, next)).toContain('ListContainers')
    expect(rig.fake.calls('StartContainer')).toHaveLength(2)
    expect(rig.container('web', 'a').restartCount).toBe(0)
  })
})
