import { expect, it } from 'vitest'
import type { NestedMount } from '../../../src/translate/mounts.ts'
import { plainPodHost } from '../../support/plain-pod-host.ts'
import { PodRig, podManifest } from './pod-rig.ts'

it('says of a mount point whether another container has the volume, also one that was made a moment ago', async () => {
  const rig = new PodRig()
  rig.fake.addImage('app:1')
  const points: [NestedMount['path'], boolean][] = []
  const plain = plainPodHost(rig.objects)
  const volumes = {
    ...plain.volumes,
    prepare: async () =>
      new Map([
        ['files', { hostPath: '/volumes/files', selinuxRelabel: false, files: true }],
        ['scratch', { hostPath: '/volumes/scratch', selinuxRelabel: false, files: false }],
      ]),
    makeMountPoint: async ({ path }: NestedMount, isInUse: boolean) => void points.push([path, isInUse]),
  }
  rig.host = { ...plain, volumes }
  await rig.start()
  const container = (name: string) => ({
    name,
    image: 'app:1',
    volumeMounts: [
      { name: 'files', mountPath: '/etc/app' },
      { name: 'scratch', mountPath: `/etc/app/${name}` },
    ],
  })
  await rig.apply(
    podManifest('web', {
      volumes: [
        { name: 'files', configMap: { name: 'settings', optional: true } },
        { name: 'scratch', emptyDir: {} },
      ],
      containers: [container('one'), container('two')],
    }),
  )
  await rig.clock.advance(1000)
  expect(rig.running()).toEqual(['web/one', 'web/two'])
  expect(points).toEqual([
    ['one', false],
    ['two', true],
  ])
})
