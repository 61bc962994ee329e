import { expect, it } from 'vitest'
import { PodRig, podManifest } from './pod-rig.ts'

it('podNameSuffix renames pods, and refuses a name that is too long then', async () => {
  const rig = new PodRig({ settings: { podNameSuffix: 'node' } })
  await rig.start()
  // `default` and `-box` take 11 of 217 characters.
  const [longest, tooLong] = [206, 207].map((length) => 'n'.repeat(length))
  await rig.apply(podManifest('web'), podManifest(longest ?? ''), podManifest(tooLong ?? ''))
  expect(rig.running()).toEqual([`${longest}-box/main`, 'web-box/main'])
  expect(rig.system.problems()).toEqual([
    {
      severity: 'error',
      place: { path: `/file/${tooLong}.yaml`, line: 1 },
      field: 'metadata.name',
      reason: 'RefusedHere',
      message:
        'not supported: with the suffix "-box" of podNameSuffix, a pod\'s name and namespace may have 217 characters together, and these have 218: both are in the name of the directory of its logs; shorten the name',
      object: `default/${tooLong}-box`,
    },
  ])
  await rig.terminate()
})
