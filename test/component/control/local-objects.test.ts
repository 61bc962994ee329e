import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import type { JsonObject } from '../../../src/base/json.ts'
import { ObjectStore } from '../../../src/control/serving/object-store.ts'
import { LocalObjects } from '../../../src/control/serving/local-objects.ts'
import { createShown } from '../../../src/control/serving/resource-store.ts'
import type { ShownResources } from '../../../src/control/serving/resource-store.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { plainObjectRules } from '../../support/object-rules.ts'
import { podObject } from '../../support/pod-objects.ts'

let rootDir: string
let objects: ObjectStore
let shown: ShownResources
let local: LocalObjects
let clock: ManualClock

beforeEach(async () => {
  rootDir = await mkdtemp(join(tmpdir(), 'podd-objects-'))
  objects = new ObjectStore(plainObjectRules)
  shown = createShown(0)
  clock = new ManualClock()
  local = new LocalObjects({ objects, shown, rootDir, pods: () => [], clock, logger: silentLogger })
  local.begin()
})
afterEach(() => rm(rootDir, { recursive: true }))

const metadata = (name: string) => ({ name, namespace: 'default' })
const claim: JsonObject = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: metadata('data'),
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
}
const secret = (word: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: metadata('access'),
  data: { kept: 'a2VwdA==' },
  stringData: { word },
})

function give(...manifests: readonly JsonObject[]): void {
  objects.replace(
    manifests.map((manifest) => ({
      source: 'file' as const,
      document: { object: objectFromManifest(manifest), manifest, place: { path: '/etc/pods/all.yaml' } },
    })),
  )
}

it('a Secret that the sources give is shown as an API server would, and each change of it is one change', () => {
  const changes: string[] = []
  shown.secrets.subscribe(({ type, object }) => changes.push(`${type} ${JSON.stringify(object.data)}`))
  give(secret('one'))
  give(secret('one'), claim)
  give(secret('two'))
  give()
  expect(changes).toEqual([
    'ADDED {"kept":"a2VwdA==","word":"b25l"}',
    'MODIFIED {"kept":"a2VwdA==","word":"dHdv"}',
    'DELETED {"kept":"a2VwdA==","word":"dHdv"}',
  ])
})

it('a claim is shown as it is bound and released, without a list that asks, and keeps its UID', async () => {
  const claims = shown.persistentvolumeclaims
  const phases: string[] = []
  const uids = new Set<string>()
  claims.subscribe(
    ({
      type,
      object: {
        status,
        metadata: { uid },
      },
    }) => {
      phases.push(`${type} ${status.phase}`)
      uids.add(uid)
    },
  )
  give(claim)
  await expect.poll(() => phases).toEqual(['ADDED Pending'])
  await mkdir(`${rootDir}/claims/default/data`, { recursive: true })
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]
  shown.pods.put('uid', podObject({ spec: { volumes } }))
  await expect.poll(() => phases.at(-1)).toBe('MODIFIED Bound')
  // How much is in it is read when somebody asks.
  expect(claims.list()[0]?.status.usedBytes).toBe(0)
  await writeFile(`${rootDir}/claims/default/data/file`, 'x'.repeat(100_000))
  await local.measureClaims()
  expect(claims.list()[0]?.status.usedBytes).toBeGreaterThanOrEqual(100_000)
  give()
  await expect.poll(() => phases.at(-1)).toBe('MODIFIED Released')
  await local.purgeClaim({ namespace: 'default', name: 'data' })
  await expect.poll(() => phases.at(-1)).toBe('DELETED Released')
  expect(uids.size).toBe(1)
})

it('an object that has no record is as old as the time since which podd knows it, whatever changes', async () => {
  const ages = () =>
    [shown.configmaps, shown.secrets, shown.persistentvolumeclaims].map((store) =>
      store.list().map((object) => object.metadata.creationTimestamp),
    )
  const configMap = (text: string): JsonObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: metadata('settings'),
    data: { text },
  })
  give(configMap('one'), secret('one'), claim)
  const first = ['2026-01-01T00:00:00Z']
  await expect.poll(ages).toEqual([first, first, first])
  await clock.advance(60_000)
  give(configMap('two'), secret('two'), claim)
  await mkdir(`${rootDir}/claims/default/data`, { recursive: true })
  await local.measureClaims()
  expect(shown.configmaps.list()[0]?.data).toEqual({ text: 'two' })
  expect(shown.persistentvolumeclaims.list()[0]?.status.phase).toBe('Bound')
  expect(ages()).toEqual([first, first, first])
  // The claim's data stay, and with them its UID and its age.
  give()
  await local.measureClaims()
  expect(ages()).toEqual([[], [], first])
  give(configMap('two'))
  expect(ages()[0]).toEqual(['2026-01-01T00:01:00Z'])
})

it('an object that was written over the API keeps the time of its record', () => {
  const manifest = secret('one')
  const creationTimestamp = '2025-05-05T05:05:05Z'
  const kept = { uid: 'u1', createdAtMs: Date.parse(creationTimestamp), metadata: { creationTimestamp } }
  objects.replace([
    {
      source: 'api',
      document: { object: objectFromManifest(manifest), manifest, place: { path: 'api' }, kept },
    },
  ])
  expect(shown.secrets.list()[0]?.metadata.creationTimestamp).toBe(creationTimestamp)
})
