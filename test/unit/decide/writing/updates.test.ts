import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import {
  defaultManifest,
  generateName,
  metadataOf,
  prepareNew,
  prepareUpdate,
} from '../../../../src/decide/writing/prepare-object.ts'
import { isReleased, judgeUpdate } from '../../../../src/decide/writing/judge-update.ts'
import type { UpdateScope } from '../../../../src/decide/writing/judge-update.ts'

function pod(spec: JsonObject = {}): JsonObject {
  return defaultManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'main', image: 'web:1' }], ...spec },
  })
}

function fieldsOf(before: JsonObject, after: JsonObject, scope: UpdateScope = 'object'): readonly string[] {
  return judgeUpdate(before, after, scope).map(({ path }) => path.join('.'))
}

const main = { name: 'main', image: 'web:1' }

describe('an update of a pod', () => {
  it.each([
    ['an image', {}, { containers: [{ ...main, image: 'web:2' }] }],
    ['a deadline', {}, { activeDeadlineSeconds: 5 }],
    ['nothing of a deadline', { activeDeadlineSeconds: 5 }, { activeDeadlineSeconds: 5 }],
    [
      'one of two tolerations',
      { tolerations: [{ key: 'a' }, { key: 'b' }] },
      { tolerations: [{ key: 'b', tolerationSeconds: 1 }, { key: 'a' }, { key: 'c' }] },
    ],
    ['a shorter deadline', { activeDeadlineSeconds: 5 }, { activeDeadlineSeconds: 4 }],
    [
      'a toleration',
      { tolerations: [{ key: 'a' }] },
      { tolerations: [{ key: 'a', tolerationSeconds: 1 }, { key: 'b' }] },
    ],
    [
      'a negative grace period to 1',
      { terminationGracePeriodSeconds: -3 },
      { terminationGracePeriodSeconds: 1 },
    ],
  ])('may change %s', (_, before, after) => {
    expect(fieldsOf(pod(before), pod(after))).toEqual([])
  })

  it.each([
    ['add a container', {}, { containers: [main, { name: 'b', image: 'b' }] }, 'spec.containers'],
    ['change a command', {}, { containers: [{ ...main, command: ['x'] }] }, 'spec'],
    ['change resources', {}, { containers: [{ ...main, resources: { requests: { cpu: '1' } } }] }, 'spec'],
    [
      'lengthen a deadline',
      { activeDeadlineSeconds: 5 },
      { activeDeadlineSeconds: 6 },
      'spec.activeDeadlineSeconds',
    ],
    ['take a toleration away', { tolerations: [{ key: 'a' }] }, {}, 'spec.tolerations'],
    ['take a deadline away', { activeDeadlineSeconds: 5 }, {}, 'spec.activeDeadlineSeconds'],
    [
      'take one of two tolerations away',
      { tolerations: [{ key: 'a' }, { key: 'b' }] },
      { tolerations: [{ key: 'a' }] },
      'spec.tolerations',
    ],
    [
      'change a grace period',
      { terminationGracePeriodSeconds: 0 },
      { terminationGracePeriodSeconds: 1 },
      'spec',
    ],
    ['add an ephemeral container', {}, { ephemeralContainers: [{ name: 'd', image: 'd' }] }, 'spec'],
  ])('may not %s', (_, before, after, field) => {
    expect(fieldsOf(pod(before), pod(after))).toContain(field)
  })

  it.each([
    ['its QoS class', {}, { requests: { cpu: '1' } }, 'spec'],
    ['a device', { limits: { cpu: '1', 'a.b/c': '1' } }, { limits: { cpu: '1', 'a.b/c': '2' } }, 'spec'],
    [
      'a request to nothing',
      { requests: { cpu: '1', memory: '1Mi' } },
      { requests: { cpu: '1' } },
      'spec.containers.0.resources.requests',
    ],
  ])('may not resize %s', (_, before, after, field) => {
    const sized = (resources: JsonObject) => pod({ containers: [{ ...main, resources }] })
    expect(fieldsOf(sized(before), sized(after), 'resize')).toEqual([field])
  })

  it('may change resources by the subresource alone, and nothing else by it', () => {
    const sized = (cpu: string) => pod({ containers: [{ ...main, resources: { requests: { cpu } } }] })
    expect(fieldsOf(sized('1'), sized('2'), 'resize')).toEqual([])
    expect(fieldsOf(pod(), pod({ containers: [{ ...main, image: 'web:2' }] }), 'resize')).toEqual(['spec'])
  })

  it('may add ephemeral containers by the subresource, neither change nor remove them', () => {
    const debugged = pod({ ephemeralContainers: [{ name: 'd', image: 'd' }] })
    const changed = pod({ ephemeralContainers: [{ name: 'd', image: 'e' }] })
    expect(fieldsOf(pod(), debugged, 'ephemeralcontainers')).toEqual([])
    expect(fieldsOf(debugged, changed, 'ephemeralcontainers')).toEqual(['spec.ephemeralContainers'])
    expect(fieldsOf(debugged, pod(), 'ephemeralcontainers')).toEqual(['spec.ephemeralContainers'])
  })
})

it.each([
  [
    'data of an immutable ConfigMap',
    { kind: 'ConfigMap', immutable: true, data: { a: '1' } },
    { data: { a: '2' } },
    'data',
  ],
  ['that it is immutable', { kind: 'ConfigMap', immutable: true }, { immutable: false }, 'immutable'],
  ['the type of a Secret', { kind: 'Secret', type: 'Opaque' }, { type: 'other' }, 'type'],
  [
    'the modes of a claim',
    { kind: 'PersistentVolumeClaim', spec: { accessModes: ['ReadWriteOnce'] } },
    { spec: {} },
    'spec',
  ],
])('leaves %s as it is', (_, before, change, field) => {
  expect(fieldsOf(before, { ...before, ...change })).toContain(field)
})

describe('an update of any object', () => {
  const deleted = { deletionTimestamp: 'now' }
  const map = (metadata: JsonObject): JsonObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata })

  it('adds no finalizer once it is deleted, and may take one away', () => {
    const before = map({ ...deleted, finalizers: ['a/x', 'b/x'] })
    expect(fieldsOf(before, map({ ...deleted, finalizers: ['b/x'] }))).toEqual([])
    expect(fieldsOf(before, map({ ...deleted, finalizers: ['b/x', 'c/x'] }))).toEqual(['metadata.finalizers'])
    expect(fieldsOf(map({}), map({ finalizers: ['c/x'] }))).toEqual([])
  })

  it('is over once it is deleted and has no finalizers', () => {
    expect(
      [map({}), map({ ...deleted, finalizers: ['a/x'] }), map(deleted)].map((each) => isReleased(each)),
    ).toEqual([false, false, true])
  })

  it.each([
    ['RuntimeClass', { handler: 'runc' }, { handler: 'runsc' }, ['handler']],
    ['PriorityClass', { value: 1 }, { value: 2 }, ['value']],
    ['PriorityClass', { value: 1, handler: 'a' }, { value: 1, handler: 'b' }, []],
    ['Namespace', { value: 1 }, { value: 2 }, []],
  ])('of kind %s from %j to %j fails at %j', (kind, before, after, fields) => {
    expect(fieldsOf({ kind, ...before }, { kind, ...after })).toEqual(fields)
  })

  it('takes resources of a pod’s subresource away from none of its containers', () => {
    const sized = (first: JsonObject, second: JsonObject) =>
      pod({
        containers: [
          { ...main, resources: first },
          { name: 'side', image: 'b', resources: second },
        ],
      })
    const both = { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2' } }
    expect(fieldsOf(sized(both, both), sized(both, { ...both, limits: { cpu: '3' } }), 'resize')).toEqual([])
    expect(fieldsOf(sized(both, both), sized(both, { ...both, requests: { cpu: '1' } }), 'resize')).toContain(
      'spec.containers.1.resources.requests',
    )
    expect(fieldsOf(sized(both, both), sized({}, {}), 'resize')).toContain('spec')
  })

  it('changes no other resource than cpu and memory by the subresource', () => {
    const sized = (storage: string) =>
      pod({ containers: [{ ...main, resources: { requests: { cpu: '1', 'ephemeral-storage': storage } } }] })
    expect(fieldsOf(sized('1Gi'), sized('2Gi'), 'resize')).toEqual(['spec'])
  })
})

describe('what is prepared for an update', () => {
  const template = (image: string, generation?: number): JsonObject => ({
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 'a', ...(generation !== undefined && { generation }) },
    template: { spec: { containers: [{ name: 'main', image }] } },
  })
  const generationOf = (before: JsonObject, after: JsonObject) =>
    metadataOf(prepareUpdate(before, after))['generation']

  it('has the next generation where the template of pods changes', () => {
    const before = defaultManifest(template('web:1', 4))
    expect(generationOf(before, template('web:2'))).toBe(5)
    expect(generationOf(before, template('web:1'))).toBe(4)
    expect(generationOf(defaultManifest(template('web:1')), template('web:2'))).toBeUndefined()
  })

  it('keeps the preemption policy where the update omits it', () => {
    const before = pod({ preemptionPolicy: 'Never' })
    expect(prepareUpdate(before, pod())['spec']).toMatchObject({ preemptionPolicy: 'Never' })
    const given = prepareUpdate(before, pod({ preemptionPolicy: 'PreemptLowerPriority' }))
    expect(given['spec']).toMatchObject({ preemptionPolicy: 'PreemptLowerPriority' })
    expect(prepareUpdate(pod(), pod())['spec']).not.toHaveProperty('preemptionPolicy')
  })
})

describe('the defaults of an API server', () => {
  it('are filled in, and applied twice change nothing more', () => {
    const given = pod({
      hostNetwork: true,
      containers: [
        {
          ...main,
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: '1' } },
          livenessProbe: { httpGet: { port: 80 }, periodSeconds: 0 },
          env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
        },
      ],
      volumes: [
        { name: 'a' },
        { name: 'b', secret: { secretName: 'b' } },
        { name: 'c', hostPath: { path: '/' } },
      ],
    })
    expect(given['spec']).toMatchObject({
      restartPolicy: 'Always',
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: 'default',
      enableServiceLinks: true,
      containers: [
        {
          imagePullPolicy: 'IfNotPresent',
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          ports: [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }],
          resources: { limits: { cpu: '1' }, requests: { cpu: '1' } },
          livenessProbe: { httpGet: { path: '/', scheme: 'HTTP' }, periodSeconds: 10, failureThreshold: 3 },
          env: [{ valueFrom: { fieldRef: { apiVersion: 'v1' } } }],
        },
      ],
      volumes: [{ emptyDir: {} }, { secret: { defaultMode: 420 } }, { hostPath: { type: '' } }],
    })
    expect(defaultManifest(given)).toEqual(given)
  })

  it('make a negative grace period one second', () => {
    expect(pod({ terminationGracePeriodSeconds: -1 })['spec']).toMatchObject({
      terminationGracePeriodSeconds: 1,
    })
  })

  it('put the texts of a Secret into its data', () => {
    const secret = defaultManifest({ kind: 'Secret', data: { a: 'MQ==' }, stringData: { b: '2' } })
    expect(secret).toEqual({ kind: 'Secret', type: 'Opaque', data: { a: 'MQ==', b: 'Mg==' } })
  })
})

it('keeps what the server says of an object, whatever a client sends', () => {
  const fresh = { kind: 'ConfigMap', apiVersion: 'v1', name: 'a', namespace: 'default' }
  const made = prepareNew(
    {
      metadata: { uid: 'forged', creationTimestamp: null, resourceVersion: '7', labels: { a: 'b' } },
      data: null,
      status: {},
    },
    { ...fresh, uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' },
  )
  expect(made).toEqual({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      labels: { a: 'b' },
      name: 'a',
      namespace: 'default',
      uid: 'u',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
  })
  const sent = {
    data: { x: 'y' },
    metadata: { name: 'other', annotations: { 'podd.dev/path': '/x', mine: '1' } },
  }
  expect(prepareUpdate(made, sent)).toEqual({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    data: { x: 'y' },
    metadata: {
      annotations: { mine: '1' },
      name: 'a',
      namespace: 'default',
      uid: 'u',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
  })
})

it('generates names that are no longer than a name may be', () => {
  expect(generateName('web-', () => 0)).toBe('web-bbbbb')
  expect(generateName('w'.repeat(100), () => 0.999)).toBe(`${'w'.repeat(58)}99999`)
})
