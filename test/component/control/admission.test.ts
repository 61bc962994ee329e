import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { openRules } from '../../support/object-rules.ts'
import type { AdmissionRules } from '../../../src/control/desired/pod-admission.ts'
import type { SourceName } from '../../../src/pod/objects/document.ts'
import { PodRig, onHostPort, podManifest } from './pod-rig.ts'

const smallHost = openRules({
  maxPods: 110,
  allocatable: { cpu: '2', memory: '1Gi', 'example.com/gpu': '1' },
})

/** podd with rules that a later podd has others of. */
function rigWith(given: Partial<AdmissionRules> = {}, sources: readonly SourceName[] = ['file']) {
  let rules: AdmissionRules = { ...smallHost, ...given }
  const rig = new PodRig({
    sources,
    get admission() {
      return rules
    },
  })
  const configure = async (changed: Partial<AdmissionRules>): Promise<void> => {
    await rig.terminate()
    rules = { ...rules, ...changed }
    await rig.start()
    await rig.clock.advance(1000)
  }
  return { rig, configure }
}

const container = { name: 'main', image: 'app:1' }

function asking(name: string, requests: JsonObject, spec: JsonObject = {}): JsonObject {
  return podManifest(name, { containers: [{ ...container, resources: { requests } }], ...spec })
}

const sysctl = podManifest('web', {
  securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] },
})

const restart = (rig: PodRig, name: string) =>
  rig.system.findPod(rig.pod(name).metadata.uid)?.restart(undefined)

describe('a pod that the host has no room for', () => {
  it.each<[string, JsonObject, RegExp]>([
    ['CPU', { cpu: '1200m' }, /resource: cpu, requested: 1200, used: 1200, capacity: 2000$/u],
    ['memory', { memory: '600Mi' }, /resource: memory, /u],
    [
      'a device',
      { 'example.com/gpu': '1' },
      /resource: example\.com\/gpu, requested: 1, used: 1, capacity: 1$/u,
    ],
  ])('waits for %s and starts when a job beside it has completed', async (_what, requests, message) => {
    const { rig } = rigWith()
    await rig.start()
    rig.fake.script('main', ({ sandbox }) =>
      sandbox.config.metadata?.name === 'job'
        ? { kind: 'exits', afterMs: 60_000, exitCode: 0 }
        : { kind: 'runs' },
    )
    await rig.apply(asking('job', requests, { restartPolicy: 'Never' }), asking('service', requests))
    await rig.clock.advance(5000)
    expect(rig.pod('service').status).toMatchObject({
      phase: 'Pending',
      reason: 'Blocked',
      message: expect.stringMatching(message),
    })
    expect(rig.container('service').state.waiting).toMatchObject({ reason: 'Blocked' })
    expect(rig.reasons('service')).toEqual(['Blocked'])
    await rig.clock.advance(60_000)
    expect(rig.pod('job').status.phase).toBe('Succeeded')
    expect(rig.running()).toEqual(['service/main'])
    expect(rig.pod('service').status).toMatchObject({ phase: 'Running' })
  })

  it('waits while there are as many pods as there may be, whoever wrote it', async () => {
    const { rig } = rigWith({ limits: { maxPods: 1 } }, ['file', 'api'])
    await rig.start()
    await rig.put('file', podManifest('first'))
    await rig.put('api', podManifest('second'))
    expect(rig.pod('second').status).toMatchObject({ phase: 'Pending', reason: 'Blocked' })
    await rig.remove('first')
    await rig.clock.advance(35_000)
    expect(rig.running()).toEqual(['second/main'])
  })

  it('is started by a podd that may give it more', async () => {
    const { rig, configure } = rigWith()
    await rig.start()
    await rig.apply(asking('big', { cpu: '4' }))
    await configure({ limits: { maxPods: 110, allocatable: { cpu: '8' } } })
    expect(rig.running()).toEqual(['big/main'])
  })

  it('lets a later pod that fits run meanwhile', async () => {
    const { rig } = rigWith()
    await rig.start()
    await rig.apply(asking('a-big', { cpu: '4' }), asking('small', { cpu: '1' }))
    expect(rig.running()).toEqual(['small/main'])
  })

  it('is started by a podd that came after one that had rejected it for good', async () => {
    const { rig } = rigWith()
    await rig.start()
    await rig.apply(asking('hog', { cpu: '2' }), asking('web', { cpu: '1' }))
    const record = rig.records.named('web')!
    await rig.terminate()
    const failed = { reason: 'OutOfcpu', message: "Node didn't have enough resource", admission: true }
    rig.records.saved.set(record.uid, { ...record, failed })
    await rig.start()
    expect(rig.pod('web').status).toMatchObject({ phase: 'Pending', reason: 'Blocked' })
    await rig.remove('hog')
    await rig.clock.advance(35_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web').metadata.uid).toBe(record.uid)
  })
})

describe('a pod that asks for what the config does not allow', () => {
  it('waits, and is started by a podd that allows it', async () => {
    const { rig, configure } = rigWith()
    await rig.start()
    await rig.apply(sysctl)
    expect(rig.pod('web').status).toMatchObject({
      phase: 'Pending',
      reason: 'SysctlForbidden',
      message: 'forbidden sysctl: "kernel.msgmax" not allowlisted',
    })
    expect(rig.container('web').state.waiting?.reason).toBe('Blocked')
    await configure({ allowedUnsafeSysctls: ['kernel.msg*'] })
    expect(rig.running()).toEqual(['web/main'])
  })

  it('fails where a client of the API wrote it, as in a cluster, and is tried again by podd restart', async () => {
    const allowedUnsafeSysctls: string[] = []
    const { rig } = rigWith({ allowedUnsafeSysctls }, ['api'])
    await rig.start()
    await rig.put('api', sysctl)
    expect(rig.pod('web').status).toMatchObject({ phase: 'Failed', reason: 'SysctlForbidden' })
    await expect(restart(rig, 'web')).rejects.toThrow(
      'pod web cannot run now: forbidden sysctl: "kernel.msgmax" not allowlisted',
    )
    await rig.clock.advance(1000)
    expect(rig.pod('web').status).toMatchObject({ phase: 'Failed', reason: 'SysctlForbidden' })
    allowedUnsafeSysctls.push('kernel.msgmax')
    expect(await restart(rig, 'web')).toEqual(['main'])
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web').status.phase).toBe('Running')
  })

  it('takes no room from a later pod of the API once it has failed', async () => {
    const rig = new PodRig({ sources: ['api'], settings: { maxPods: 1 } })
    await rig.start()
    const rejected = ['web-1', 'web-2'].map((name) => podManifest(name, sysctl['spec'] as JsonObject))
    await rig.put('api', ...rejected)
    expect(rejected.map((_, at) => rig.pod(`web-${at + 1}`).status.phase)).toEqual(['Failed', 'Failed'])
    await rig.put('api', podManifest('later'))
    expect(rig.running()).toEqual(['later/main'])
    expect(rig.pod('web-1').status.phase).toBe('Failed')
    expect(rig.system.problems()).toEqual([])
  })

  it('is judged again by podd restart, which says why it still cannot run', async () => {
    const { rig } = rigWith()
    await rig.start()
    await rig.apply(podManifest('first', onHostPort(80)), podManifest('second', onHostPort(80)))
    await expect(restart(rig, 'second')).rejects.toMatchObject({
      code: 'RESTART_REFUSED',
      message: 'pod second cannot run now: host port 80/TCP is held by pod default/first',
    })
    expect(rig.running()).toEqual(['first/main'])
  })
})

describe('a pod that runs and may not do any more what it does', () => {
  const forbidding: readonly [
    what: string,
    manifest: JsonObject,
    rules: Partial<AdmissionRules>,
    reason: string,
  ][] = [
    ['an unsafe sysctl', sysctl, { allowedUnsafeSysctls: [] }, 'SysctlForbidden'],
    [
      'an AppArmor profile',
      podManifest('web', { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }),
      { appArmor: false },
      'AppArmor',
    ],
    [
      'a security level',
      podManifest('web', { hostNetwork: true }),
      { policies: { ...smallHost.policies, file: { ...smallHost.policies.file, level: 'baseline' } } },
      'PodSecurity',
    ],
  ]
  const allowing = { allowedUnsafeSysctls: ['kernel.msgmax'], appArmor: true, policies: smallHost.policies }

  it.each(forbidding)(
    'is ended for %s and waits, and runs again once it may',
    async (_what, manifest, rules, reason) => {
      const { rig, configure } = rigWith(allowing)
      await rig.start()
      await rig.apply(manifest)
      const { uid } = rig.pod('web').metadata
      expect(rig.running()).toEqual(['web/main'])
      await configure(rules)
      await rig.clock.advance(35_000)
      expect(rig.running()).toEqual([])
      expect(rig.pod('web').status).toMatchObject({ phase: 'Pending', reason })
      expect(rig.container('web').state.waiting?.reason).toBe('Blocked')
      const calls = rig.fake.journal.length
      await rig.clock.advance(20_000)
      expect(rig.fake.journal.length - calls).toBeLessThan(10)
      await configure(allowing)
      await rig.clock.advance(15_000)
      expect(rig.running()).toEqual(['web/main'])
      expect(rig.pod('web').metadata.uid).toBe(uid)
    },
  )

  it('stays as it ended where it had completed', async () => {
    const { rig, configure } = rigWith(allowing)
    await rig.start()
    rig.fake.script('main', { kind: 'exits', afterMs: 10, exitCode: 0 })
    await rig.apply(podManifest('web', { hostNetwork: true, restartPolicy: 'Never' }))
    await rig.clock.advance(1000)
    await configure(forbidding[2]![2])
    expect(rig.pod('web').status.phase).toBe('Succeeded')
    expect(rig.reasons('web')).not.toContain('PodSecurity')
  })
})

describe('a pod that runs and needs what the runtime can do no more', () => {
  const main = { ...container, volumeMounts: [{ name: 'v', mountPath: '/v' }] }
  const imaged = podManifest('web', {
    volumes: [{ name: 'v', image: { reference: 'side:1' } }],
    containers: [
      main,
      { name: 'beside', image: 'app:1', livenessProbe: { exec: { command: ['true'] }, periodSeconds: 5 } },
    ],
  })

  async function downgrade(rig: PodRig, by: 'podd' | 'runtime'): Promise<void> {
    if (by === 'podd') await rig.terminate()
    rig.fake.settings.version = '1.7.24'
    if (by === 'podd') await rig.start()
    else {
      rig.fake.goDown()
      await rig.clock.advance(5000)
      rig.fake.comeUp()
    }
    await rig.clock.advance(30_000)
  }

  it.each(['podd', 'runtime'] as const)('is supervised after a restart of %s', async (by) => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(imaged)
    await downgrade(rig, by)
    expect(rig.running()).toEqual(['web/beside', 'web/main'])
    expect(rig.pod('web').status.phase).toBe('Running')
    rig.fake.exitContainer('beside', 1)
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/beside', 'web/main'])
    rig.probe = (_id, _probe) => ({ result: 'failure', output: 'no' })
    await rig.clock.advance(60_000)
    rig.probe = () => ({ result: 'success', output: '' })
    await rig.clock.advance(120_000)
    expect(rig.running()).toEqual(['web/beside', 'web/main'])
    expect(rig.container('web', 'beside').restartCount).toBeGreaterThan(1)
    // What needs it is not started without it.
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['web/beside'])
    expect(rig.container('web').state.waiting).toMatchObject({
      reason: 'Blocked',
      message: expect.stringContaining('volumes.image needs containerd 2.1'),
    })
    expect(rig.pod('web').status.phase).toBe('Running')
    await expect(rig.system.findPod(rig.pod('web').metadata.uid)?.restart(['beside'])).resolves.toEqual([
      'beside',
    ])
    await rig.clock.advance(5000)
    rig.fake.settings.version = '2.1.9'
    await rig.terminate()
    await rig.start()
    await rig.clock.advance(30_000)
    expect(rig.running()).toEqual(['web/beside', 'web/main'])
  })

  it('keeps its host port from others, gets no new sandbox, and ends when it is removed', async () => {
    const rig = new PodRig()
    await rig.start()
    const ported = podManifest('web', {
      volumes: [{ name: 'v', image: { reference: 'side:1' } }],
      containers: [{ ...main, ports: [{ containerPort: 80, hostPort: 80 }] }],
    })
    await rig.apply(ported)
    await downgrade(rig, 'podd')
    await rig.apply(podManifest('other', onHostPort(80)))
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('other').status.message).toBe('host port 80/TCP is held by pod default/web')
    rig.fake.endSandbox('web')
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('other').status.phase).toBe('Pending')
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(60_000)
    expect(rig.fake.changes().slice(-4)).toEqual([
      'StopPodSandbox',
      'RunPodSandbox',
      'CreateContainer',
      'StartContainer',
    ])
    expect(rig.running()).toEqual(['other/main'])
    expect(rig.container('web').state.waiting?.reason).toBe('Blocked')
    await rig.remove('web')
    await rig.clock.advance(35_000)
    expect(rig.pods('web')).toEqual([])
  })

  it('completes, where it is a job', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(
      podManifest('job', { ...(imaged['spec'] as JsonObject), containers: [main], restartPolicy: 'Never' }),
    )
    await downgrade(rig, 'podd')
    rig.fake.exitContainer('main', 0)
    await rig.clock.advance(5000)
    expect(rig.pod('job').status.phase).toBe('Succeeded')
    expect(rig.fake.calls('StopPodSandbox')).toHaveLength(1)
  })
})

/** `podd down`: podd ends, and another process, which has no sources, ends the pods. */
async function down(rig: PodRig): Promise<void> {
  const { sources } = rig
  if (sources.length > 0) await rig.terminate()
  rig.sources = []
  rig.boot()
  const ending = rig.system.endAll({ graceSeconds: 0, signal: new AbortController().signal })
  await rig.clock.advance(60_000)
  await ending
  await rig.terminate()
  rig.sources = sources
}

async function drain(rig: PodRig): Promise<void> {
  const drained = rig.system.node.drain?.run()
  await rig.clock.advance(60_000)
  await drained
}

/** Another boot of the host: the mark of a drain is of the one before, and nothing runs. */
function cutPower(rig: PodRig): void {
  for (const sandbox of rig.fake.world.sandboxes.values()) rig.fake.world.stopSandbox(sandbox)
  rig.isMarkedDrained = false
}

describe.each<[after: string, interrupt: (rig: PodRig) => Promise<void>]>([
  [
    'podd down',
    async (rig) => {
      await down(rig)
      await rig.start()
    },
  ],
  [
    'podd down that was called twice',
    async (rig) => {
      await down(rig)
      await down(rig)
      await rig.start()
    },
  ],
  [
    'a drain that is undone',
    async (rig) => {
      await drain(rig)
      await rig.system.node.drain?.undo()
    },
  ],
  [
    'a drain and a boot',
    async (rig) => {
      await drain(rig)
      await rig.terminate()
      cutPower(rig)
      await rig.start()
    },
  ],
  [
    'a drain and podd down',
    async (rig) => {
      await drain(rig)
      await down(rig)
      cutPower(rig)
      await rig.start()
    },
  ],
  [
    'a power cut',
    async (rig) => {
      await rig.kill()
      cutPower(rig)
      await rig.start()
    },
  ],
  [
    'a power cut right after the start that followed podd down',
    async (rig) => {
      await down(rig)
      rig.fake.fault('ImageStatus', { kind: 'hangs' })
      await rig.start()
      await rig.kill()
      cutPower(rig)
      rig.fake.clearFaults()
      await rig.start()
    },
  ],
])('of two pods that want the same, after %s', (_after, interrupt) => {
  const wants: readonly [what: string, spec: JsonObject][] = [
    ['host port', onHostPort(80)],
    ['CPU', { containers: [{ ...container, resources: { requests: { cpu: '1200m' } } }] }],
  ]

  it.each(wants)('the one that ran has the %s', async (_what, spec) => {
    const { rig } = rigWith()
    await rig.start()
    await rig.apply(podManifest('z-incumbent', spec))
    await rig.apply(podManifest('a-waiter', spec))
    await rig.replaceAll(podManifest('a-waiter', spec), podManifest('z-incumbent', spec))
    expect(rig.running()).toEqual(['z-incumbent/main'])
    await interrupt(rig)
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['z-incumbent/main'])
    expect(rig.pod('a-waiter').status).toMatchObject({ phase: 'Pending', reason: 'Blocked' })
    await rig.remove('z-incumbent')
    await rig.clock.advance(35_000)
    expect(rig.running()).toEqual(['a-waiter/main'])
    // It is the one that ran by now.
    await interrupt(rig)
    await rig.apply(podManifest('0-later', spec))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['a-waiter/main'])
    expect(rig.failures).toEqual([])
  })

  it('the one that ran has the port also where its source speaks later', async () => {
    const { rig } = rigWith({}, ['file', 'http'])
    await rig.start()
    await rig.put('http', podManifest('incumbent', onHostPort(80)))
    await rig.put('file', podManifest('waiter', onHostPort(80)))
    expect(rig.running()).toEqual(['incumbent/main'])
    const start = rig.start.bind(rig)
    rig.start = async () => {
      rig.boot()
      await rig.offer('file')
      await rig.clock.advance(10_000)
      await rig.offer('http')
    }
    await interrupt(rig)
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['incumbent/main'])
    rig.start = start
  })
})

it('a pod that ran before podd down and is wanted no more keeps no other waiting', async () => {
  const { rig } = rigWith({}, ['file', 'http'])
  await rig.start()
  await rig.put('http', podManifest('incumbent', onHostPort(80)))
  await rig.put('file', podManifest('waiter', onHostPort(80)))
  await down(rig)
  await rig.remove('incumbent', 'http')
  rig.boot()
  await rig.offer('file')
  await rig.clock.advance(10_000)
  expect(rig.running()).toEqual([])
  await rig.offer('http')
  await rig.clock.advance(1000)
  expect(rig.running()).toEqual(['waiter/main'])
  await rig.terminate()
  expect(rig.records.ended).toEqual([])
})
