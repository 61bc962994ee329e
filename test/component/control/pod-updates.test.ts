import { beforeEach, describe, expect, it } from 'vitest'
import type { ObjectDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import type { PodOwner } from '../../../src/pod/objects/document.ts'
import { PodRig, onHostPort, podManifest } from './pod-rig.ts'

let rig: PodRig

const withImage = (image: string, more: object = {}) => ({
  containers: [{ name: 'main', image, ...more }],
})
function configMap(name: string, data: Record<string, string>): ObjectDocument {
  const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data }
  return { object: objectFromManifest(manifest), manifest, place: { path: `/file/${name}.yaml` } }
}
const withEnv = (value: string, image = 'app:1') => withImage(image, { env: [{ name: 'V', value }] })

beforeEach(async () => {
  rig = new PodRig()
  await rig.start()
})

describe('a change in place', () => {
  it('of labels restarts nothing and keeps the UID', async () => {
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    await rig.apply(podManifest('web', {}, { labels: { tier: 'front' } }))
    await rig.clock.advance(1000)
    expect(rig.pod('web').metadata).toMatchObject({ uid, labels: { tier: 'front' } })
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
    expect(rig.records.named('web')?.manifest).toMatchObject({ metadata: { labels: { tier: 'front' } } })
  })

  it('of what the pod is expanded from is recorded, and restarts nothing', async () => {
    const offer = async (owner: PodOwner | undefined): Promise<void> => {
      const snapshot = rig.snapshot('file')
      rig.system.offerSnapshot({
        ...snapshot,
        pods: snapshot.pods.map((pod) => Object.assign({}, pod, { owner })),
      })
      await rig.settle()
    }
    const owner = { kind: 'Deployment', name: 'front' }
    await rig.apply(podManifest('web'))
    expect(rig.records.named('web')).not.toHaveProperty('owner')
    await offer(owner)
    expect(rig.records.named('web')?.owner).toEqual(owner)
    await offer(undefined)
    expect(rig.records.named('web')?.owner).toBeUndefined()
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
  })

  it('is counted by the generation where it is one of the spec, over podd’s own end, and so is the deletion', async () => {
    const shown = () => {
      const { metadata, status } = rig.pod('web')
      return [metadata.generation, status.observedGeneration]
    }
    await rig.apply(podManifest('web'))
    expect(shown()).toEqual([1, 1])
    await rig.apply(podManifest('web', {}, { labels: { tier: 'front' } }))
    // What says no more than the defaults do.
    await rig.apply(podManifest('web', { dnsPolicy: 'ClusterFirst' }, { labels: { tier: 'front' } }))
    expect(shown()).toEqual([1, 1])
    await rig.apply(podManifest('web', withImage('app:2')))
    await rig.clock.advance(1000)
    expect(shown()).toEqual([2, 2])
    await rig.kill()
    await rig.apply(podManifest('web', { ...withImage('app:2'), activeDeadlineSeconds: 600 }))
    await rig.start()
    await rig.clock.advance(1000)
    expect(shown()).toEqual([3, 3])
    expect(rig.records.named('web')?.generation).toBe(3)
    const tolerations = [{ key: 'dedicated', operator: 'Exists' }]
    await rig.apply(podManifest('web', { ...withImage('app:2'), activeDeadlineSeconds: 600, tolerations }))
    await rig.clock.advance(1000)
    expect(shown()).toEqual([4, 4])
    const seen: unknown[] = []
    rig.system.statuses.subscribe(({ type, object: { metadata } }) =>
      seen.push([type, metadata.generation, metadata.deletionTimestamp !== undefined]),
    )
    await rig.remove('web')
    await rig.clock.advance(1000)
    expect(seen).toContainEqual(['MODIFIED', 5, true])
  })

  it('to an image that cannot be had leaves the old one running and says why, until it can', async () => {
    await rig.apply(podManifest('web'))
    await rig.apply(podManifest('web', withImage('gone:1')))
    await rig.clock.advance(65_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.fake.calls('StopContainer')).toEqual([])
    expect(rig.reasons('web')).toContain('Failed')
    expect(rig.system.problems().map(({ message, place }) => [message, place.path])).toEqual([
      [expect.stringMatching(/the old one keeps running: .*gone:1/u), '/file/web.yaml'],
    ])
    const condition = () => rig.pod('web').status.conditions.find(({ type }) => type === 'podd.dev/UpToDate')
    expect(condition()).toMatchObject({
      status: 'False',
      reason: 'UpdatePending',
      message: expect.stringMatching(/the old one keeps running: .*gone:1/u),
    })
    expect(rig.system.applied().pods).toMatchObject([
      { key: 'default/web', isUpToDate: false, problem: expect.stringContaining('gone:1') },
    ])
    rig.fake.addRemoteImage('gone:1')
    await rig.clock.advance(80_000)
    expect(rig.container('web').image).toBe('gone:1')
    expect(rig.system.problems()).toEqual([])
    expect(condition()).toBeUndefined()
    expect(rig.system.applied().pods[0]?.problem).toBeUndefined()
  })

  const notApplied = 'the new version is not applied and the old one keeps running'
  it.each([
    ['of an image', { image: 'app:2' }, [`${notApplied}: configmap "settings" not found`]],
    ['of resources by a restart', { image: 'app:1', resources: { requests: { cpu: '200m' } } }, []],
  ])(
    '%s while something is missing leaves the old one running, until it is there',
    async (_what, after, problems) => {
      const manifest = (more: object) =>
        podManifest('web', {
          containers: [
            {
              name: 'main',
              envFrom: [{ configMapRef: { name: 'settings' } }],
              resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
              ...more,
            },
          ],
        })
      const settings = configMap('settings', { LEVEL: 'high' })
      rig.given = [settings]
      await rig.apply(manifest({ image: 'app:1', resources: { requests: { cpu: '100m' } } }))
      expect(rig.running()).toEqual(['web/main'])
      rig.given = []
      await rig.apply(manifest({ resources: { requests: { cpu: '100m' } }, ...after }))
      await rig.clock.advance(120_000)
      expect(rig.running()).toEqual(['web/main'])
      expect(rig.fake.calls('StopContainer')).toEqual([])
      expect(rig.system.problems().map(({ message }) => message)).toEqual(problems)
      expect(rig.events.filter(({ reason }) => reason === 'Failed').map(({ message }) => message)).toEqual([
        'Error: configmap "settings" not found; the container keeps running, and is recreated when that is available',
      ])
      const restart = rig.system.findPod(rig.pod('web').metadata.uid)?.restart(undefined)
      await expect(restart).rejects.toThrow(
        'container main of pod web keeps running: configmap "settings" not found',
      )
      rig.given = [settings]
      await rig.offer()
      await rig.clock.advance(1000)
      expect(rig.container('web')).toMatchObject({ image: after.image, restartCount: 1 })
      expect(rig.system.problems()).toEqual([])
    },
  )

  it('gone back on while the new image is pulled changes nothing', async () => {
    rig.fake.addRemoteImage('big:1')
    rig.fake.fault('PullImage', { kind: 'delays', delayMs: 60_000 })
    await rig.apply(podManifest('web'))
    await rig.apply(podManifest('web', withImage('big:1')))
    await rig.clock.advance(1000)
    await rig.apply(podManifest('web'))
    await rig.clock.advance(120_000)
    expect(rig.container('web')).toMatchObject({ image: 'app:1', restartCount: 0 })
    expect(rig.fake.calls('StopContainer')).toEqual([])
  })
})

describe('a change that makes a new pod', () => {
  it('pulls first, then ends the old one with its grace, then starts the new one at once', async () => {
    rig.fake.addRemoteImage('big:1')
    rig.fake.fault('PullImage', { kind: 'delays', delayMs: 20_000 })
    await rig.apply(podManifest('web', withEnv('1')))
    const { uid } = rig.pod('web').metadata
    await rig.apply(podManifest('web', withEnv('2', 'big:1')))
    await rig.clock.advance(19_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.fake.calls('StopContainer')).toEqual([])
    await rig.clock.advance(1100)
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.fake.calls('PullImage')).toHaveLength(1)
  })

  it('that cannot be pulled leaves the old one running, with the reason shown', async () => {
    await rig.apply(podManifest('web', withEnv('1')))
    const { uid } = rig.pod('web').metadata
    await rig.apply(podManifest('web', withEnv('2', 'gone:1')))
    await rig.clock.advance(600_000)
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.system.problems()[0]?.message).toMatch(/the old one keeps running.*gone:1/u)
    rig.fake.addRemoteImage('gone:1')
    await rig.clock.advance(301_000)
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
    expect(rig.system.problems()).toEqual([])
  })

  it('whose record the disk has no room for leaves the old one running, with the reason shown', async () => {
    await rig.apply(podManifest('web', withEnv('1')))
    const { uid } = rig.pod('web').metadata
    rig.records.failure = new Error('ENOSPC: no space left on device')
    await rig.apply(podManifest('web', withEnv('2')))
    await rig.clock.advance(60_000)
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.system.problems()[0]?.message).toMatch(/the old one keeps running.*record.*ENOSPC/u)
    rig.records.failure = undefined
    await rig.clock.advance(11_000)
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.system.problems()).toEqual([])
  })

  it('whose record the disk has no room for leaves a pod alone that the runtime has forgotten', async () => {
    await rig.apply(podManifest('web', withEnv('1')))
    const { uid } = rig.pod('web').metadata
    rig.records.failure = new Error('ENOSPC: no space left on device')
    rig.fake.world.containers.clear()
    rig.fake.world.sandboxes.clear()
    await rig.clock.advance(61_000)
    await rig.apply(podManifest('web', withEnv('2')))
    await rig.clock.advance(60_000)
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.reasons('web')).not.toContain('Killing')
    expect(rig.system.problems()[0]?.message).toMatch(/the old one keeps running.*record.*ENOSPC/u)
  })

  it('that may not run as its image says leaves the old one running, with the reason shown', async () => {
    await rig.apply(podManifest('web', withEnv('1')))
    const { uid } = rig.pod('web').metadata
    await rig.apply(podManifest('web', { ...withEnv('2'), securityContext: { runAsNonRoot: true } }))
    await rig.clock.advance(60_000)
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.system.problems()[0]?.message).toMatch(
      /the old one keeps running: container main: .*image will run as root/u,
    )
  })

  it('that wants a path of the host which is not there leaves the old one running until it is', async () => {
    let isThere = false
    rig.checkHostPaths = async () => {
      if (!isThere) throw new Error('hostPath type check failed: /data is not a directory')
    }
    await rig.apply(podManifest('web', withEnv('1')))
    const { uid } = rig.pod('web').metadata
    const volumes = [{ name: 'v', hostPath: { path: '/data', type: 'Directory' } }]
    await rig.apply(podManifest('web', { ...withEnv('2'), volumes }))
    await rig.clock.advance(60_000)
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.system.problems()[0]?.message).toMatch(/the old one keeps running: hostPath type check/u)
    isThere = true
    await rig.clock.advance(11_000)
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
    expect(rig.running()).toEqual(['web/main'])
  })

  it('and is called off, or changed again, leaves no trace of what was meant before', async () => {
    await rig.apply(podManifest('web', withEnv('1')))
    const { uid } = rig.pod('web').metadata
    await rig.apply(podManifest('web', withEnv('2', 'gone:1')))
    await rig.clock.advance(1000)
    await rig.apply(podManifest('web', withEnv('3', 'gone:2')))
    await rig.clock.advance(1000)
    expect(rig.system.problems().map(({ message }) => message)).toEqual([expect.stringContaining('gone:2')])
    await rig.apply(podManifest('web', withEnv('1')))
    rig.fake.addRemoteImage('gone:1')
    rig.fake.addRemoteImage('gone:2')
    await rig.clock.advance(600_000)
    expect(rig.system.problems()).toEqual([])
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.fake.calls('StopContainer')).toEqual([])
  })

  it('while the one before is still ending takes the newest version', async () => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.apply(podManifest('web', withEnv('1')))
    await rig.apply(podManifest('web', withEnv('2')))
    await rig.clock.advance(10_000)
    await rig.apply(podManifest('web', withEnv('3')))
    await rig.clock.advance(21_000)
    expect(rig.fake.calls('StartContainer')).toHaveLength(2)
    expect(rig.fake.container('main').config.envs.map(({ value }) => String(value))).toEqual(['3'])
  })

  it('does not pull again what was pulled for it, though other files change meanwhile', async () => {
    rig.fake.addRemoteImage('big:latest')
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.apply(podManifest('web', withEnv('1')))
    await rig.apply(podManifest('web', withEnv('2', 'big:latest')))
    await rig.clock.advance(5000)
    expect(rig.fake.calls('PullImage')).toHaveLength(1)
    await rig.apply(podManifest('other'))
    await rig.clock.advance(60_000)
    expect(rig.container('web').image).toBe('big:latest')
    expect(rig.fake.calls('PullImage')).toHaveLength(1)
  })

  it.each([
    ['without host ports starts while the network of the old one is taken down', {}, 1],
    ['with host ports starts when the old sandbox has let go of them', onHostPort(80), 0],
  ])('%s', async (_, ports, startedMeanwhile) => {
    await rig.apply(podManifest('web', { ...ports, hostname: 'one' }))
    const before = rig.fake.calls('StartContainer').length
    rig.fake.fault('StopPodSandbox', { kind: 'delays', delayMs: 5000 })
    await rig.apply(podManifest('web', { ...ports, hostname: 'two' }))
    await rig.clock.advance(1000)
    expect(rig.fake.calls('StopContainer')).toHaveLength(1)
    expect(rig.fake.calls('StartContainer').length - before).toBe(startedMeanwhile)
    await rig.clock.advance(20_000)
    expect(rig.fake.calls('StartContainer').length - before).toBe(1)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.fake.sandboxesOf('web')).toHaveLength(1)
  })

  it('hands its host port over', async () => {
    await rig.apply(podManifest('web', onHostPort(80)))
    await rig.apply(podManifest('web', { ...onHostPort(80), hostNetwork: false, hostname: 'other' }))
    await rig.clock.advance(1000)
    expect(rig.pod('web').status.phase).toBe('Running')
    expect(rig.reasons('web')).not.toContain('Blocked')
  })

  // id: pod-wait-host-port
  it('that wants a host port of another pod waits for it while the old one runs', async () => {
    await rig.apply(podManifest('holder', onHostPort(80)), podManifest('web'))
    await rig.apply(podManifest('web', onHostPort(80)))
    await rig.clock.advance(30_000)
    expect(rig.running()).toEqual(['holder/main', 'web/main'])
    expect(rig.system.problems()[0]?.message).toContain('held by pod default/holder')
    await rig.remove('holder')
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.system.problems()).toEqual([])
    expect(rig.fake.sandboxesOf('web').at(-1)?.config.portMappings).toHaveLength(1)
  })

  it('is not waited for when the old one does not run', async () => {
    await rig.apply(podManifest('web', withImage('gone:1')))
    await rig.clock.advance(1000)
    await rig.apply(podManifest('web', withEnv('1')))
    await rig.clock.advance(100)
    expect(rig.running()).toEqual(['web/main'])
  })

  it('removed while it is made ready goes with the old one', async () => {
    rig.fake.fault('PullImage', { kind: 'delays', delayMs: 20_000 })
    rig.fake.addRemoteImage('big:1')
    await rig.apply(podManifest('web', withEnv('1')))
    await rig.apply(podManifest('web', withEnv('2', 'big:1')))
    await rig.clock.advance(1000)
    await rig.remove('web')
    await rig.clock.advance(60_000)
    expect(rig.isEmpty()).toBe(true)
  })
})

describe('images that cannot be had', () => {
  it('are shown as in Kubernetes: ErrImagePull, then ImagePullBackOff', async () => {
    await rig.apply(podManifest('web', withImage('gone:1')))
    expect(rig.container('web').state.waiting?.reason).toBe('ErrImagePull')
    const shown = new Set<string>()
    for (let second = 0; second < 100; second += 1) {
      await rig.clock.advance(1000)
      shown.add(rig.container('web').state.waiting?.reason ?? '')
    }
    expect([...shown].sort()).toEqual(['ErrImagePull', 'ImagePullBackOff'])
    expect(rig.fake.calls('PullImage').map(({ atMs }) => atMs)).toEqual([0, 10_000, 30_000, 70_000])
    expect(rig.reasons('web')).toContain('BackOff')
  })

  // id: counts-crashes-failed-pulls
  it('are backed off apart from crashes, and a changed manifest has neither wait', async () => {
    const withImages = (crash: string, pull: string) => ({
      containers: [
        { name: 'crash', image: crash },
        { name: 'pull', image: pull },
      ],
    })
    await rig.apply(podManifest('web', withImages('app:1', 'gone:1')))
    for (let crash = 0; crash < 2; crash += 1) {
      rig.fake.exitContainer('crash', 1)
      await rig.clock.advance(100)
    }
    const waits = () => ['crash', 'pull'].map((name) => rig.container('web', name).state.waiting?.reason)
    await rig.clock.advance(1000)
    expect(waits()).toEqual([
      'CrashLoopBackOff',
      expect.stringMatching(/^(?:ErrImagePull|ImagePullBackOff)$/u),
    ])
    expect(rig.container('web', 'pull').restartCount).toBe(0)
    await rig.apply(podManifest('web', withImages('app:2', 'app:2')))
    await rig.clock.advance(100)
    expect(rig.running()).toEqual(['web/crash', 'web/pull'])
  })

  it('are not waited for longer because the wall clock was set back', async () => {
    await rig.apply(podManifest('web', withImage('gone:1')))
    await rig.clock.advance(1000)
    rig.clock.setWall(rig.clock.wallMs() - 86_400_000)
    rig.fake.addRemoteImage('gone:1')
    await rig.clock.advance(20_000)
    expect(rig.running()).toEqual(['web/main'])
  })

  it('of a pod that is gone hold up no other pull', async () => {
    rig.fake.addRemoteImage('stuck:1')
    rig.fake.addRemoteImage('good:1')
    rig.fake.fault('PullImage', { kind: 'hangs' }, { when: ({ image }) => image.image === 'stuck:1' })
    await rig.apply(podManifest('stuck', withImage('stuck:1')))
    await rig.apply(podManifest('web', withImage('good:1')))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual([])
    await rig.remove('stuck')
    await rig.clock.advance(11_000)
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('an ephemeral container that is added to a pod of a file', () => {
  const debug = { name: 'debug', image: 'side:1', imagePullPolicy: 'IfNotPresent' }
  const shown = () => rig.pod('web').spec['ephemeralContainers']
  beforeEach(async () => {
    await rig.apply(podManifest('web'))
    await rig.system.addDebuggers(rig.pod('web').metadata.uid, [debug])
    await rig.clock.advance(1000)
  })

  it('runs beside the others, and changes neither the manifest nor what runs by it', async () => {
    expect(rig.running()).toEqual(['web/debug', 'web/main'])
    expect(shown()).toMatchObject([debug])
    expect(rig.pod('web').metadata.generation).toBe(2)
    expect(rig.system.applied().pods[0]?.manifest).toEqual(podManifest('web'))
    await rig.offer()
    await rig.apply(podManifest('web', {}, { labels: { tier: 'front' } }))
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/debug', 'web/main'])
    expect(rig.pod('web').metadata.labels).toEqual({ tier: 'front' })
    expect(rig.fake.calls('StopContainer')).toEqual([])
  })

  it('stays while podd is killed and started again', async () => {
    const { uid } = rig.pod('web').metadata
    await rig.kill()
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(rig.running()).toEqual(['web/debug', 'web/main'])
    expect(shown()).toMatchObject([debug])
  })

  it('goes with the pod: a new version of it has none', async () => {
    await rig.apply(podManifest('web', { hostNetwork: true }))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(shown()).toBeUndefined()
  })
})

describe('a pod whose manifest was removed', () => {
  it('ends within the time that somebody gives it, if its own is longer', async () => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    await rig.apply(podManifest('web', { terminationGracePeriodSeconds: 300 }))
    const { uid } = rig.pod('web').metadata
    expect(rig.system.shortenGrace(uid, 0)).toBe(false)
    await rig.remove('web')
    expect(rig.system.shortenGrace(uid, 1)).toBe(true)
    await rig.clock.advance(20_000)
    expect(rig.isEmpty()).toBe(true)
  })
})

describe('a pod as the API shows it', () => {
  it('has the defaults of an API server, wherever its manifest comes from', async () => {
    const probe = { httpGet: { port: 80 } }
    await rig.apply(
      podManifest('web', {
        containers: [
          { name: 'main', image: 'app:1', ports: [{ containerPort: 1880 }], livenessProbe: probe },
        ],
      }),
    )
    expect(rig.pod('web').spec).toMatchObject({
      restartPolicy: 'Always',
      dnsPolicy: 'ClusterFirst',
      terminationGracePeriodSeconds: 30,
      containers: [
        {
          imagePullPolicy: 'IfNotPresent',
          ports: [{ containerPort: 1880, protocol: 'TCP' }],
          livenessProbe: {
            httpGet: { path: '/', port: 80, scheme: 'HTTP' },
            timeoutSeconds: 1,
            periodSeconds: 10,
            successThreshold: 1,
            failureThreshold: 3,
          },
        },
      ],
    })
    expect(rig.records.named('web')?.manifest).not.toHaveProperty('spec.restartPolicy')
  })

  it('is as it was written where that was over the API: its generation is counted by that', async () => {
    const written = new PodRig({ sources: ['api'] })
    await written.start()
    await written.put('api', podManifest('web'))
    expect(written.pod('web').spec['containers']).toEqual([{ name: 'main', image: 'app:1' }])
    expect(written.pod('web').spec).not.toHaveProperty('serviceAccountName')
  })
})
