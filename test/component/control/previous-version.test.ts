import { beforeEach, describe, expect, it } from 'vitest'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig

const withImage = (image: string, more: object = {}) => ({
  containers: [{ name: 'main', image, ...more }],
})
/** Another environment makes a new pod, another image alone doesn't. */
const withEnv = (value: string, image = 'app:1') => withImage(image, { env: [{ name: 'V', value }] })
const preparedBy = (image: string) =>
  podManifest('web', {
    initContainers: [{ name: 'prepare', image }],
    containers: [{ name: 'main', image: 'app:1' }],
  })
const kept = /the new version is not applied and the old one keeps running: .*gone:1/u

async function reboot(): Promise<void> {
  await rig.kill()
  for (const sandbox of rig.fake.world.sandboxes.values()) rig.fake.world.stopSandbox(sandbox)
  rig.host = { bootId: 'boot-2' }
  await rig.start()
}

function problems(): readonly string[] {
  return rig.system.problems().map(({ message }) => message)
}

beforeEach(async () => {
  rig = new PodRig()
  await rig.start()
})

describe('a container whose new image cannot be had', () => {
  beforeEach(async () => {
    await rig.apply(podManifest('web'))
    await rig.apply(podManifest('web', withImage('gone:1')))
    await rig.clock.advance(5000)
  })

  it('runs again with the one it had when it ends, until the new one can be had', async () => {
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web')).toMatchObject({ image: 'app:1', restartCount: 1 })
    expect(problems()).toEqual([expect.stringMatching(kept)])
    expect(rig.events.filter(({ message }) => message.includes('runs again'))).toEqual([
      expect.objectContaining({
        type: 'Warning',
        reason: 'Failed',
        container: 'main',
        message: 'Error: the container runs again with the image it had, "app:1", until "gone:1" can be had',
      }),
    ])
    rig.fake.addRemoteImage('gone:1')
    await rig.clock.advance(80_000)
    expect(rig.container('web')).toMatchObject({ image: 'gone:1', restartCount: 2 })
    expect(problems()).toEqual([])
  })

  it('waits for what it does meanwhile as ever, and tells of both', async () => {
    for (let crash = 0; crash < 2; crash += 1) {
      rig.fake.exitContainer('main', 1)
      await rig.clock.advance(1000)
    }
    expect(rig.running()).toEqual([])
    expect(rig.container('web').state.waiting).toMatchObject({
      reason: 'CrashLoopBackOff',
      message: expect.stringContaining('back-off 10s'),
    })
    expect(problems()).toEqual([expect.stringMatching(kept)])
    await rig.clock.advance(10_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').restartCount).toBe(2)
  })

  it('runs again with the one it had after its liveness probe has failed', async () => {
    await rig.remove('web')
    await rig.clock.advance(1000)
    const livenessProbe = { exec: { command: ['true'] }, periodSeconds: 1, failureThreshold: 1 }
    await rig.apply(podManifest('web', withImage('app:1', { livenessProbe })))
    await rig.apply(podManifest('web', withImage('gone:1', { livenessProbe })))
    await rig.clock.advance(5000)
    const failing = rig.fake.container('main').id
    rig.probe = (id) => ({ result: id === failing ? 'failure' : 'success', output: '' })
    await rig.clock.advance(5000)
    expect(rig.container('web')).toMatchObject({ image: 'app:1', restartCount: 1 })
    expect(rig.running()).toEqual(['web/main'])
  })

  it('runs again with the one it had after a reboot', async () => {
    await reboot()
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web')).toMatchObject({ image: 'app:1', restartCount: 1 })
    expect(problems()).toEqual([expect.stringMatching(kept)])
  })

  it('waits for the new one where the one it had is gone as well', async () => {
    rig.fake.world.images.clear()
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual([])
    expect(rig.container('web').state.waiting).toMatchObject({
      reason: 'ImagePullBackOff',
      message: expect.stringContaining('gone:1'),
    })
    expect(problems()).toEqual([])
    // It looks for the image it had no more often than for the new one.
    const looks = rig.fake.calls('ImageStatus').length
    await rig.clock.advance(60_000)
    expect(rig.fake.calls('ImageStatus').length - looks).toBeLessThan(6)
    rig.fake.addRemoteImage('gone:1')
    await rig.clock.advance(300_000)
    expect(rig.container('web')).toMatchObject({ image: 'gone:1', restartCount: 1 })
  })

  it('waits no longer for what it does meanwhile than without the new image', async () => {
    let crashes = 0
    for (let second = 0; second < 1800; second += 1) {
      if (rig.running().includes('web/main')) {
        rig.fake.exitContainer('main', 1)
        crashes += 1
      }
      await rig.clock.advance(1000)
    }
    // At once, then after 10, 20, 40, 80, 160 and 300 seconds.
    expect(crashes).toBe(11)
  })

  it('whose old one fails at its start is not tried more often than any other', async () => {
    rig.fake.script('main', { kind: 'fails-to-start', message: 'no' })
    rig.fake.exitContainer('main', 1)
    const before = rig.fake.calls('CreateContainer').length
    await rig.clock.advance(600_000)
    expect(rig.fake.calls('CreateContainer').length - before).toBeLessThan(15)
  })

  it('is made with the new one as soon as that is there, whatever it waits for', async () => {
    for (let crash = 0; crash < 5; crash += 1) {
      rig.fake.exitContainer('main', 1)
      await rig.clock.advance(160_000)
    }
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    expect(rig.container('web').state.waiting?.reason).toBe('CrashLoopBackOff')
    const tries = rig.fake.calls('PullImage').length
    rig.fake.addRemoteImage('gone:1')
    await rig.clock.advance(299_000)
    expect(rig.fake.calls('PullImage').length - tries).toBe(1)
    expect(rig.container('web').image).toBe('gone:1')
    expect(rig.running()).toEqual(['web/main'])
  })

  it('is not kept down by a runtime that could not tell once of the one it had', async () => {
    rig.fake.fault('ImageStatus', { kind: 'fails' }, { when: ({ image }) => image.image === 'app:1' })
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(15_000)
    expect(rig.running()).toEqual(['web/main'])
  })

  it('goes on while the new one is pulled, however long that takes, after a reboot too', async () => {
    rig.fake.fault('PullImage', { kind: 'hangs' }, { times: 100 })
    await rig.apply(podManifest('web', withImage('gone:2')))
    await rig.clock.advance(5000)
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    await reboot()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web')).toMatchObject({ image: 'app:1', restartCount: 2 })
  })

  it.each([
    [
      'it fails a probe',
      async () => {
        const failing = rig.fake.container('main').id
        rig.probe = (id) => ({ result: id === failing ? 'failure' : 'success', output: '' })
      },
    ],
    [
      'its start fails once',
      async () => {
        rig.fake.fault('StartContainer', { kind: 'fails' })
        rig.fake.exitContainer('main', 1)
      },
    ],
  ])('goes on while the new one is pulled, however long that takes, when %s', async (_when, happen) => {
    const livenessProbe = { exec: { command: ['true'] }, periodSeconds: 1, failureThreshold: 1 }
    await rig.remove('web')
    await rig.clock.advance(1000)
    await rig.apply(podManifest('web', withImage('app:1', { livenessProbe })))
    rig.fake.fault('PullImage', { kind: 'hangs' }, { times: 100 })
    await rig.apply(podManifest('web', withImage('gone:2', { livenessProbe })))
    await rig.clock.advance(1000)
    await happen()
    await rig.clock.advance(15_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web')).toMatchObject({ image: 'app:1', restartCount: 1 })
    expect(rig.fake.containersNamed('main').at(-1)?.config.image?.image).toBe(
      rig.fake.containersNamed('main').at(0)?.config.image?.image,
    )
  })

  it('is made with the new one where that came while it was down', async () => {
    rig.fake.addImage('gone:1')
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(80_000)
    expect(rig.container('web').image).toBe('gone:1')
    expect(rig.running()).toEqual(['web/main'])
  })

  it('runs again with the one it had when somebody asks for a restart after its end', async () => {
    for (let crash = 0; crash < 2; crash += 1) {
      rig.fake.exitContainer('main', 1)
      await rig.clock.advance(1000)
    }
    expect(rig.running()).toEqual([])
    await rig.system.findPod(rig.pod('web').metadata.uid)?.restart(undefined)
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.container('web').image).toBe('app:1')
  })
})

it('a container that never ran with another image waits for its own', async () => {
  await rig.apply(podManifest('web', withImage('gone:1')))
  await rig.clock.advance(60_000)
  expect(rig.container('web').state.waiting?.reason).toBe('ImagePullBackOff')
  expect(rig.fake.calls('CreateContainer')).toEqual([])
})

it('a container that was down when its image was changed waits for the new one first', async () => {
  await rig.apply(podManifest('web'))
  for (let crash = 0; crash < 2; crash += 1) {
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
  }
  rig.fake.addRemoteImage('big:1')
  rig.fake.fault('PullImage', { kind: 'delays', delayMs: 60_000 })
  await rig.apply(podManifest('web', withImage('big:1')))
  await rig.clock.advance(61_000)
  expect(rig.container('web')).toMatchObject({ image: 'big:1', restartCount: 2 })
})

it('a container that has ended for good is not said to go on', async () => {
  const job = (image: string) => podManifest('web', { restartPolicy: 'Never', ...withImage(image) })
  await rig.apply(job('app:1'))
  await rig.apply(job('gone:1'))
  await rig.clock.advance(5000)
  rig.fake.exitContainer('main', 0)
  await rig.clock.advance(5000)
  expect(rig.pod('web').status.phase).toBe('Succeeded')
  expect(problems()).toEqual([])
})

it('an init container runs again with the image it had in a new sandbox', async () => {
  rig.fake.script('prepare', { kind: 'exits', afterMs: 100, exitCode: 0 })
  await rig.apply(preparedBy('side:1'))
  await rig.clock.advance(1000)
  await rig.apply(preparedBy('gone:1'))
  await reboot()
  await rig.clock.advance(5000)
  expect(rig.running()).toEqual(['web/main'])
  expect(rig.container('web', 'prepare').image).toBe('side:1')
  expect(problems()).toEqual([])
})

it('an init container that is through takes its new image in a new sandbox', async () => {
  rig.fake.script('prepare', { kind: 'exits', afterMs: 5000, exitCode: 0 })
  rig.fake.addRemoteImage('big:1')
  rig.fake.fault('PullImage', { kind: 'delays', delayMs: 20_000 })
  await rig.apply(preparedBy('side:1'))
  await rig.apply(preparedBy('big:1'))
  await rig.clock.advance(30_000)
  expect(rig.container('web', 'prepare').image).toBe('side:1')
  await reboot()
  await rig.clock.advance(1000)
  expect(rig.container('web', 'prepare')).toMatchObject({ image: 'big:1', restartCount: 1 })
})

it('a restart on request asks the registry, whatever came of the one before', async () => {
  const always = withImage('app:1', { imagePullPolicy: 'Always' })
  rig.fake.addRemoteImage('app:1')
  await rig.apply(podManifest('web', always))
  const restart = async () => rig.system.findPod(rig.pod('web').metadata.uid)?.restart(undefined)
  rig.fake.fault('PullImage', { kind: 'delays', delayMs: 5000 })
  await restart()
  await rig.clock.advance(1000)
  rig.fake.exitContainer('main', 1)
  await rig.clock.advance(60_000)
  expect(rig.container('web').restartCount).toBe(1)
  const pulls = rig.fake.calls('PullImage').length
  await restart()
  await rig.clock.advance(1000)
  expect(rig.container('web').restartCount).toBe(2)
  expect(rig.fake.calls('PullImage').length - pulls).toBe(1)
})

it('what is called off while an image is looked for is no trouble to tell of', async () => {
  rig.fake.fault('ImageStatus', { kind: 'delays', delayMs: 1000 })
  await rig.apply(podManifest('web', withImage('gone:1', { imagePullPolicy: 'Never' })))
  await rig.apply(podManifest('web', withImage('app:1')))
  await rig.clock.advance(5000)
  expect(rig.running()).toEqual(['web/main'])
  expect(rig.reasons('web')).not.toContain('FailedSync')
})

describe('a pod whose new version cannot start', () => {
  it.each([
    ['after a reboot', reboot],
    [
      'after a crash',
      async () => {
        rig.fake.exitContainer('main', 1)
        await rig.clock.advance(1000)
        rig.fake.exitContainer('main', 1)
      },
    ],
  ])('runs again as it was %s, until it can', async (_when, happen) => {
    await rig.apply(podManifest('web', withEnv('1')))
    const { uid } = rig.pod('web').metadata
    await rig.apply(podManifest('web', withEnv('2', 'gone:1')))
    await rig.clock.advance(5000)
    await happen()
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['web/main'])
    expect(rig.pod('web').metadata.uid).toBe(uid)
    expect(problems()).toEqual([expect.stringMatching(kept)])
    rig.fake.addRemoteImage('gone:1')
    await rig.clock.advance(301_000)
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
    expect(rig.container('web').image).toBe('gone:1')
    expect(problems()).toEqual([])
  })

  it('is not kept where it has finished', async () => {
    const job = (image: string) => podManifest('web', { restartPolicy: 'Never', ...withEnv(image, image) })
    await rig.apply(job('app:1'))
    await rig.apply(job('gone:1'))
    await rig.clock.advance(1000)
    expect(problems()).toEqual([expect.stringMatching(kept)])
    rig.fake.exitContainer('main', 0)
    await rig.clock.advance(5000)
    expect(problems()).toEqual([])
    expect(rig.container('web').state.waiting?.reason).toMatch(/ErrImagePull|ImagePullBackOff/u)
  })

  it('is not kept for what came before its containers', async () => {
    const pod = (value: string, image: string) =>
      podManifest('web', {
        initContainers: [{ name: 'prepare', image: 'side:1', env: [{ name: 'V', value }] }],
        containers: [{ name: 'main', image }],
      })
    rig.fake.script('prepare', { kind: 'exits', afterMs: 100, exitCode: 0 })
    await rig.apply(pod('1', 'gone:1'))
    await rig.clock.advance(5000)
    const { uid } = rig.pod('web').metadata
    await rig.apply(pod('2', 'gone:2'))
    await rig.clock.advance(1000)
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
  })
})
