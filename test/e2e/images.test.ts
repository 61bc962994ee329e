import { existsSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { push, registryProgram, startRegistry } from '../support/loopback-registry.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { shellPod } from '../support/shell-pods.ts'

function waitingReason(pod: PodObject): string | undefined {
  return pod.status.containerStatuses?.[0]?.state.waiting?.reason
}

describePodd('images', {}, (rig) => {
  const noRegistry = !existsSync(registryProgram)
  let registry: Awaited<ReturnType<typeof startRegistry>> | undefined

  beforeAll(async () => {
    if (!noRegistry) registry = await startRegistry(rig())
  })

  afterAll(() => registry?.child.kill('SIGKILL'))

  it.concurrent.each([
    [
      'never-pulled',
      'localhost/none:1',
      'Never',
      'ErrImageNeverPull',
      /Container image "localhost\/none:1" is not present with pull policy of Never/u,
    ],
    [
      'bad-name',
      'localhost/Upper/Case:1',
      'IfNotPresent',
      'InvalidImageName',
      /Failed to apply default image tag "localhost\/Upper\/Case:1"/u,
    ],
  ])(
    'shows the reason why %s does not start',
    proves('pull-policy', 'Container: imagePullPolicy'),
    async (name, image, imagePullPolicy, reason, message) => {
      const podd = rig()
      podd.drop(name, shellPod(name, podd.shared, 'stay', { container: { image, imagePullPolicy } }))
      const pod = await podd.untilPod(name, reason, (now) => waitingReason(now) === reason)
      expect(pod.status.phase).toBe('Pending')
      expect(containerOf(pod, 'main').state.waiting?.message).toMatch(message)
      expect((await podd.cliOk('get', 'pods', name)).split('\n')[1]).toMatch(
        new RegExp(`^${name} +0/1 +${reason} `, 'u'),
      )
      const text = await podd.cliOk('describe', 'pod', name)
      expect(text).toContain(reason)
      podd.removeManifest(name)
      await podd.untilGone(name)
    },
  )

  it.concurrent('goes from ErrImagePull to ImagePullBackOff, and says what the registry said', async () => {
    const podd = rig()
    const image = '127.0.0.1:1/none/there:1'
    podd.drop('unpulled', shellPod('unpulled', podd.shared, 'stay', { container: { image } }))
    await podd.untilEvent('unpulled', 'Pulling', /Pulling image "127\.0\.0\.1:1\/none\/there:1"/u)
    await podd.untilEvent('unpulled', 'Failed', /Failed to pull image.*connection refused/u)
    const first = await podd.untilPod('unpulled', 'its reason', (pod) =>
      /^(ErrImagePull|ImagePullBackOff)$/u.test(waitingReason(pod) ?? ''),
    )
    expect(first.status.phase).toBe('Pending')
    const pod = await podd.untilPod(
      'unpulled',
      'ImagePullBackOff',
      (now) => waitingReason(now) === 'ImagePullBackOff',
    )
    expect(containerOf(pod, 'main').state.waiting?.message).toMatch(
      /^Back-off pulling image "127\.0\.0\.1:1\/none\/there:1"/u,
    )
    await podd.untilEvent('unpulled', 'BackOff', /Back-off pulling image/u)
    podd.drop('unpulled', shellPod('unpulled', podd.shared, 'stay'))
    await podd.untilReady('unpulled')
  })

  it.skipIf(noRegistry).concurrent(
    'pulls from a registry, once under IfNotPresent and each time under Always',
    async () => {
      const podd = rig()
      const address = registry?.address ?? ''
      await push(podd, address, 'app:1')
      const pod = (name: string, imagePullPolicy: string) =>
        shellPod(name, podd.shared, 'stay', { container: { image: `${address}/app:1`, imagePullPolicy } })
      podd.drop('pulled', pod('pulled', 'IfNotPresent'))
      const first = await podd.untilReady('pulled')
      expect(containerOf(first, 'main').image).toBe(`${address}/app:1`)
      expect(containerOf(first, 'main').imageID).toMatch(/sha256:[0-9a-f]{64}$/u)
      await podd.untilEvent('pulled', 'Pulled', /Successfully pulled image .* in /u)
      podd.drop('present', pod('present', 'IfNotPresent'))
      podd.drop('always', pod('always', 'Always'))
      await podd.untilReady('present')
      await podd.untilReady('always')
      await podd.untilEvent('present', 'Pulled', /already present on machine/u)
      await podd.untilEvent('always', 'Pulled', /Successfully pulled image/u)
      expect((await podd.events('present')).map(({ reason }) => reason)).not.toContain('Pulling')
      expect(await podd.cliOk('images')).toMatch(new RegExp(`${address}/app +1 `, 'u'))
    },
  )

  it.skipIf(noRegistry).concurrent('starts by itself when an image that was missing is there', async () => {
    const podd = rig()
    const address = registry?.address ?? ''
    const image = `${address}/later:1`
    podd.drop('later', shellPod('later', podd.shared, 'stay', { container: { image } }))
    await podd.untilEvent('later', 'Failed', /later:1/u)
    await push(podd, address, 'later:1')
    const pod = await podd.untilReady('later')
    expect(containerOf(pod, 'main').restartCount).toBe(0)
  })
})
