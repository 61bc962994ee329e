import { beforeEach, expect, it } from 'vitest'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { plainPodHost } from '../../support/plain-pod-host.ts'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig
/** What was done of a start, in its order. */
let steps: string[]
/** The write of a record that is in flight. */
let finishWrite: (() => void) | undefined

const making = ['RunPodSandbox', 'CreateContainer', 'StartContainer'] as const

function countMaking(): number[] {
  return making.map((method) => rig.fake.calls(method).length)
}

beforeEach(() => {
  rig = new PodRig()
  rig.fake.addImage('app:1')
  steps = []
  finishWrite = undefined
  const { cgroups, volumes, logs } = plainPodHost(rig.objects)
  rig.host = {
    cgroups: {
      ...cgroups,
      ensure: async () => {
        steps.push('cgroup')
        return '/kubepods'
      },
    },
    volumes: {
      ...volumes,
      prepare: async () => {
        steps.push('volumes')
        return new Map()
      },
      writeHostsFile: async () => {
        steps.push('hosts')
        return '/hosts'
      },
      makeTerminationLog: async (_uid, _container, restartCount) => {
        steps.push(`termination log ${restartCount}`)
        return `/log/${restartCount}`
      },
    },
    logs: {
      ...logs,
      prepare: async () => {
        steps.push('log directory')
        return true
      },
    },
  }
})

/** From now on each write of a record lasts until it is finished. */
function holdWrites(): void {
  rig.records.beforeSave = () => new Promise((resolve) => (finishWrite = resolve))
}

it('makes nothing of a new pod on the host, and asks the runtime for nothing, before its record is on disk', async () => {
  await rig.start()
  holdWrites()
  await rig.apply(podManifest('web'))
  expect(steps).toEqual([])
  expect(rig.fake.calls('ImageStatus')).toEqual([])
  expect(countMaking()).toEqual([0, 0, 0])
  rig.records.beforeSave = () => Promise.resolve()
  finishWrite?.()
  await rig.settle()
  expect(new Set(steps)).toEqual(
    new Set(['volumes', 'cgroup', 'log directory', 'termination log 0', 'hosts']),
  )
  expect(rig.running()).toEqual(['web/main'])
})

it("makes a container's files once its sandbox is made", async () => {
  await rig.start()
  rig.fake.fault('RunPodSandbox', { kind: 'delays', delayMs: 100 })
  await rig.apply(podManifest('web'))
  expect(steps).toEqual(['volumes', 'cgroup'])
  await rig.clock.advance(100)
  expect(rig.running()).toEqual(['web/main'])
  await rig.clock.advance(10_000)
  expect(steps).toEqual(['volumes', 'cgroup', 'log directory', 'volumes', 'termination log 0', 'hosts'])
})

it('brings volumes up to date where an object in them changed while the sandbox was made', async () => {
  const give = (text: string): void => {
    const metadata = { name: 'settings', namespace: 'default' }
    const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { text } }
    rig.given = [{ object: objectFromManifest(manifest), manifest, place: { path: '/file/settings.yaml' } }]
  }
  await rig.start()
  give('old')
  rig.fake.fault('RunPodSandbox', { kind: 'delays', delayMs: 100 })
  await rig.apply(podManifest('web', { volumes: [{ name: 'v', configMap: { name: 'settings' } }] }))
  give('new')
  await rig.offer()
  expect(steps).toEqual(['volumes', 'cgroup'])
  await rig.clock.advance(100)
  expect(rig.running()).toEqual(['web/main'])
  expect(steps.slice(2)).toContain('volumes')
})

it('writes no files ahead of a pull: what they hold may change meanwhile', async () => {
  await rig.start()
  rig.fake.addRemoteImage('far:1')
  rig.fake.fault('PullImage', { kind: 'delays', delayMs: 60_000 })
  await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'far:1' }] }))
  expect(rig.fake.calls('RunPodSandbox')).toHaveLength(1)
  expect(steps).toEqual(['volumes', 'cgroup'])
})

it('makes the files of a restart, and its container, once its backoff is on record', async () => {
  await rig.start()
  await rig.apply(podManifest('web'))
  await rig.clock.advance(30_000)
  steps = []
  holdWrites()
  rig.fake.exitContainer('main', 1)
  await rig.settle()
  expect(steps).toEqual([])
  expect(countMaking()).toEqual([1, 1, 1])
  rig.records.beforeSave = () => Promise.resolve()
  finishWrite?.()
  await rig.settle()
  expect(countMaking()).toEqual([1, 2, 2])
})

it('leaves nothing on the host of a pod whose record cannot be written', async () => {
  await rig.start()
  rig.records.failure = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  await rig.apply(podManifest('web'))
  expect(steps).toEqual([])
  expect(countMaking()).toEqual([0, 0, 0])
  rig.records.failure = undefined
  await rig.clock.advance(20_000)
  expect(rig.running()).toEqual(['web/main'])
})
