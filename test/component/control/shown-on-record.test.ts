import { beforeEach, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { PodRig, podManifest } from './pod-rig.ts'

/**
 * What podd shows of a pod outside of its passes, while one of them waits for a pull: a podd that is killed then must not take
 * it back.
 */

let rig: PodRig
/** What is shown at each publication, and what stands on disk of it at that moment. */
let seen: { readonly shown: unknown; readonly onDisk: unknown }[]
let isReady: boolean

const eviction = { reason: 'Evicted', message: 'The node was low on resource: memory. ', graceSeconds: 5 }

const web = (labels: JsonObject = {}): JsonObject => {
  const readinessProbe = { exec: { command: ['true'] }, periodSeconds: 1, failureThreshold: 1 }
  const containers = [
    { name: 'main', image: 'app:1', readinessProbe },
    { name: 'side', image: 'app:2' },
  ]
  return podManifest('web', { containers }, { labels })
}

function shown(): unknown {
  const { metadata, status } = rig.pod('web')
  const main = status.containerStatuses?.find(({ name }) => name === 'main')
  return {
    labels: metadata.labels,
    ends: metadata.deletionTimestamp !== undefined,
    evicted: status.reason === eviction.reason,
    ready: main?.ready === true,
  }
}

function onDisk(): unknown {
  const { containers, ending, failed, manifest } = rig.records.named('web') ?? {}
  const metadata: { labels?: unknown } = JSON.parse(JSON.stringify(manifest?.['metadata'] ?? {}))
  const evicted = [ending?.reason, failed?.reason].includes(eviction.reason)
  return {
    labels: metadata.labels,
    ends: ending !== undefined && !evicted,
    evicted,
    // That of one that has ended counts no more.
    ready: containers?.['main']?.ready !== undefined && rig.running().includes('web/main'),
  }
}

/** Something shows the pod without a pass of its own. */
const look = async (): Promise<void> => {
  await rig.clock.advance(4000)
  await rig.settle()
}

beforeEach(async () => {
  rig = new PodRig()
  seen = []
  isReady = true
  rig.probe = () => ({ result: isReady ? 'success' : 'failure', output: '' })
  rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
  await rig.start()
  await rig.apply(web({ version: 'first' }))
  await look()
  rig.fake.fault('PullImage', { kind: 'hangs' })
  await rig.fake.images.removeImage({ image: { image: 'app:2' } })
  rig.fake.exitContainer('side', 1)
  await look()
  expect(rig.running()).toEqual(['web/main'])
  expect(shown()).toEqual({ labels: { version: 'first' }, ends: false, evicted: false, ready: true })
  rig.records.beforeSave = async () => {
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
  }
  rig.system.statuses.subscribe(() => {
    if (rig.pods('web').length === 1) seen.push({ shown: shown(), onDisk: onDisk() })
  })
})

const changes = [
  ['is removed', () => rig.remove('web'), { ends: true }],
  ['is evicted', async () => void rig.evict(rig.pod('web').metadata.uid, eviction), { evicted: true }],
  ['is no longer ready', async () => void (isReady = false), { ready: false }],
  [
    'gets other labels',
    async () => {
      await rig.apply(web({ version: 'next' }))
      // Something for which it is shown.
      isReady = false
    },
    { labels: { version: 'next' }, ready: false },
  ],
] as const

it.each(changes)('that a pod %s is on disk before it is shown', async (_what, change, expected) => {
  await change()
  await look()
  await look()
  expect(seen.length).toBeGreaterThan(0)
  expect(seen.at(-1)?.shown).toMatchObject(expected)
  expect(seen.map((each) => each.onDisk)).toEqual(seen.map((each) => each.shown))
})

it.each(changes)('that a pod %s outlives a kill of podd', async (_what, change, expected) => {
  await change()
  await look()
  await rig.kill()
  rig.boot()
  await rig.settle()
  expect(shown()).toMatchObject(expected)
})

it('shows what a disk that hangs holds back, a second later', async () => {
  const hung = Promise.withResolvers<void>()
  rig.records.beforeSave = () => hung.promise
  await rig.remove('web')
  expect(shown()).toMatchObject({ ends: false })
  await rig.clock.advance(1000)
  expect(shown()).toMatchObject({ ends: true })
  expect(onDisk()).toMatchObject({ ends: false })
  hung.resolve()
  await rig.settle()
  expect(onDisk()).toMatchObject({ ends: true })
})
