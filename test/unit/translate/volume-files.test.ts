import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { ObjectStore } from '../../../src/control/serving/object-store.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { computeVolumeFiles, toConfigObject } from '../../../src/translate/volume-files.ts'
import { plainObjectRules } from '../../support/object-rules.ts'
import { testPod } from './pods.ts'

const object = (kind: string, fields: JsonObject, metadata: JsonObject = {}) => {
  const read = objectFromManifest({
    apiVersion: 'v1',
    kind,
    metadata: { name: 'settings', ...metadata },
    ...fields,
  })
  if (read.kind !== 'ConfigMap' && read.kind !== 'Secret') throw new Error('no config')
  return read
}

function filesOf(volume: JsonObject, held?: ReturnType<typeof object>) {
  const pod = testPod({ volumes: [{ name: 'v', ...volume }] })
  const [spec] = pod.spec.volumes
  if (spec === undefined) throw new Error('no volume')
  const objects = new ObjectStore(plainObjectRules)
  const document = held && { object: held, manifest: {}, place: { path: 'a.yaml' } }
  objects.replace(document === undefined ? [] : [{ source: 'file', document }])
  const files = computeVolumeFiles(spec, {
    fields: { pod, uid: 'u-1', nodeName: 'box', hostIps: [], podIps: [] },
    capacity: { cpu: '4' },
    objects: objects.seenBy('file'),
  })
  return files && Object.fromEntries([...files].map(([path, { data }]) => [path, data.toString()]))
}

describe('computeVolumeFiles', () => {
  const held = object('ConfigMap', { data: { a: '1', b: '2' } })
  const items = [
    { key: 'a', path: 'x' },
    { key: 'none', path: 'y' },
  ]

  it.each([
    ['all keys', { configMap: { name: 'settings' } }, held, { a: '1', b: '2' }],
    [
      'the keys that are named',
      { configMap: { name: 'settings', items: items.slice(0, 1) } },
      held,
      { x: '1' },
    ],
    [
      'what there is of optional keys',
      { configMap: { name: 'settings', optional: true, items } },
      held,
      { x: '1' },
    ],
    ['nothing of an optional object', { configMap: { name: 'settings', optional: true } }, undefined, {}],
  ])('has %s', (_what, volume, known, expected) => {
    expect(filesOf(volume, known)).toEqual(expected)
  })

  it.each([
    ['an object', { configMap: { name: 'settings' } }, undefined, 'configmap "settings" not found'],
    [
      'a key',
      { configMap: { name: 'settings', items } },
      held,
      'configmap references non-existent config key: none',
    ],
    [
      'a key of a Secret',
      { secret: { secretName: 'settings', items } },
      object('Secret', { stringData: { a: '1' } }),
      'secret references non-existent secret key: none',
    ],
    [
      'a container',
      {
        downwardAPI: {
          items: [{ path: 'x', resourceFieldRef: { containerName: 'none', resource: 'limits.cpu' } }],
        },
      },
      undefined,
      'unsupported resource: limits.cpu of container none',
    ],
  ])('needs %s', (_what, volume, known, message) => {
    expect(() => filesOf(volume, known)).toThrow(message)
  })
})

describe('toConfigObject', () => {
  const origin = { source: 'file', place: { path: '/etc/pods/a.yaml' } } as const

  it('shows a ConfigMap without what it does not have', () => {
    const plain = toConfigObject(object('ConfigMap', {}), origin)
    expect(plain).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'settings',
        namespace: 'default',
        uid: expect.any(String),
        annotations: { 'podd.dev/source': 'file', 'podd.dev/path': '/etc/pods/a.yaml' },
      },
    })
  })

  it('shows data, labels and that it cannot be changed', () => {
    const full = { data: { a: '1' }, binaryData: { b: 'Mg==' }, immutable: true }
    expect(toConfigObject(object('ConfigMap', full, { labels: { app: 'web' } }), origin)).toMatchObject({
      ...full,
      metadata: { labels: { app: 'web' } },
    })
  })

  it('shows the text of a Secret as data', () => {
    const secret = object('Secret', { data: { a: 'MQ==' }, stringData: { b: '2' }, type: 'Opaque' })
    expect(toConfigObject(secret, origin)).toMatchObject({
      kind: 'Secret',
      type: 'Opaque',
      data: { a: 'MQ==', b: 'Mg==' },
    })
    expect(toConfigObject(object('Secret', {}), origin)).not.toHaveProperty('data')
  })
})
