import { describe, expect, it } from 'vitest'
import { computeSpecHash, findMissingReference } from '../../../src/translate/config-hash.ts'
import { ObjectStore } from '../../../src/control/serving/object-store.ts'
import type { JsonObject } from '../../../src/base/json.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { plainObjectRules } from '../../support/object-rules.ts'
import { execLimits } from '../../../src/translate/environment.ts'

function store(...manifests: readonly JsonObject[]): ObjectStore {
  const objects = new ObjectStore(plainObjectRules)
  const documents = manifests.map((manifest) => ({
    source: 'file' as const,
    document: { object: objectFromManifest(manifest), manifest, place: { path: 'a.yaml' } },
  }))
  objects.replace(documents)
  return objects
}

const settings = (data: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings' },
  data,
})

function hash(
  objects: ObjectStore,
  options: { asks?: boolean; running?: string; optional?: boolean } = {},
): string {
  const pod = podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      annotations: options.asks === false ? {} : { 'podd.dev/restart-on-config-change': 'true' },
    },
    spec: {
      containers: [
        {
          name: 'main',
          image: 'busybox',
          envFrom: [{ configMapRef: { name: 'settings', optional: options.optional ?? false } }],
        },
      ],
    },
  })
  const [container] = pod.spec.containers
  if (container === undefined) throw new Error('no container')
  return computeSpecHash({
    host: { objects, capacity: {}, hostName: 'box', execLimits: execLimits(4096) },
    pod,
    source: 'file',
    container,
    running: options.running,
  })
}

describe('the hash of a container', () => {
  const one = hash(store(settings({ a: '1' })))

  it('follows what its objects hold, where the pod asks for it', () => {
    expect(one).toMatch(/^v1-[0-9a-f]{16}\.[0-9a-f]{16}$/u)
    expect(hash(store(settings({ a: '1' })), { running: one })).toBe(one)
    expect(hash(store(settings({ a: '2' })), { running: one })).not.toBe(one)
    expect(hash(store(settings({ a: '1' })), { asks: false })).toBe(one.split('.')[0])
  })

  it.each([
    ['asks only since it runs', store(settings({ a: '2' })), one.split('.')[0]],
    ['asks no more', store(settings({ a: '2' })), one],
    ['could not start again', store(), one],
  ])('is the running one’s where the pod %s', (what, objects, running) => {
    const asks = what !== 'asks no more'
    expect(hash(objects, { asks, ...(running !== undefined && { running }) })).toBe(running)
  })

  it('follows optional objects that go', () => {
    const with1 = hash(store(settings({ a: '1' })), { optional: true })
    expect(hash(store(), { optional: true, running: with1 })).not.toBe(with1)
  })
})

describe('findMissingReference', () => {
  const pod = podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: {
      containers: [
        { name: 'main', image: 'busybox', volumeMounts: [{ name: 'data', mountPath: '/data' }] },
        { name: 'side', image: 'busybox', volumeMounts: [{ name: 'conf', mountPath: '/conf' }] },
      ],
      volumes: [
        { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
        { name: 'conf', configMap: { name: 'settings' } },
      ],
    },
  })
  const claim: JsonObject = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }
  const missing = (objects: ObjectStore, only?: number) =>
    findMissingReference(
      { objects, capacity: {}, hostName: 'box', execLimits: execLimits(4096) },
      { pod, source: 'file' },
      only === undefined ? undefined : pod.spec.containers[only],
    )

  it('is the first of the pod, or of the volumes that one container mounts', () => {
    const none = store()
    expect([missing(none), missing(none, 0), missing(none, 1)]).toEqual([
      'persistentvolumeclaim "data" not found',
      'persistentvolumeclaim "data" not found',
      'configmap "settings" not found',
    ])
    const withClaim = store(claim)
    expect([missing(withClaim), missing(withClaim, 0)]).toEqual(['configmap "settings" not found', undefined])
    expect(missing(store(claim, settings({ a: '1' })))).toBeUndefined()
  })
})
