import { describe, expect, it } from 'vitest'
import { holdsSecrets, podReferences, pullSecretsOf } from '../../../src/pod/objects/local-object.ts'
import { objectKinds } from '../../../src/pod/objects/object-kinds.ts'
import type { JsonObject } from '../../../src/base/json.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { keptProblems } from '../../../src/pod/decode/decode-pod.ts'
import { documentKey, isObjectDocument } from '../../../src/pod/objects/document.ts'
import { formatProblem } from '../../../src/cli/output/report-format.ts'
import { objectData } from '../../../src/pod/objects/local-object.ts'
import { makePod } from '../../support/pod-builders.ts'

const path = 'objects.yaml'

async function decode(...objects: readonly JsonObject[]) {
  const text = objects.map((object) => JSON.stringify(object)).join('\n---\n')
  const { documents, problems, heldObjects } = await decodeDocuments(text, { path })
  return {
    keys: documents.map((document) => documentKey(document)),
    objects: documents.filter((document) => isObjectDocument(document)).map(({ object }) => object),
    problems: problems.map((problem) => formatProblem(problem).replace(/^objects\.yaml:\d+:\d+: /, '')),
    heldObjects,
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const metadata = { name: 'web' }
const configMap = (fields: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata,
  ...fields,
})
const secret = (fields: JsonObject): JsonObject => ({ apiVersion: 'v1', kind: 'Secret', metadata, ...fields })
const claim = (spec: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata,
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
})
const runtimeClass = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata, handler: 'runc' }
const priorityClass = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata, value: 1000 }

describe('objects that pods refer to', () => {
  it('are taken beside pods, also out of a List of several kinds', async () => {
    const items = [configMap({}), secret({}), claim({}), runtimeClass, priorityClass]
    const { keys, problems } = await decode({ apiVersion: 'v1', kind: 'List', items })
    expect(problems).toEqual([])
    expect(keys).toEqual([
      'ConfigMap/default/web',
      'Secret/default/web',
      'PersistentVolumeClaim/default/web',
      'RuntimeClass/web',
      'PriorityClass/web',
    ])
  })

  it('give their data, a Secret’s stringData first', async () => {
    const { objects } = await decode(
      configMap({ data: { a: 'text' }, binaryData: { b: base64('\u0001bytes') } }),
      secret({ data: { a: base64('old'), b: base64('kept') }, stringData: { a: 'new' } }),
    )
    const data = objects.map((object) =>
      object.kind === 'ConfigMap' || object.kind === 'Secret'
        ? Object.fromEntries([...objectData(object)].map(([key, value]) => [key, value.toString()]))
        : {},
    )
    expect(data).toEqual([
      { a: 'text', b: '\u0001bytes' },
      { a: 'new', b: 'kept' },
    ])
  })

  it('are taken as a cluster dumps them', async () => {
    const dumped = {
      ...metadata,
      uid: 'u',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      generateName: 'web-',
    }
    const { keys, problems } = await decode({
      ...claim({ volumeName: 'pvc-1', volumeMode: 'Filesystem' }),
      metadata: dumped,
      status: { phase: 'Bound' },
    })
    expect(keys).toHaveLength(1)
    expect(problems).toEqual([expect.stringContaining('dropped what a cluster writes into an object')])
  })

  it.each<[string, JsonObject, string]>([
    ['a key with a slash', configMap({ data: { 'a/b': '' } }), 'a valid config key must consist of'],
    ['a key that leads up', configMap({ data: { '..': '' } }), "must not be '..'"],
    ['a key that hides as a step up', configMap({ data: { '..data': '' } }), "must not start with '..'"],
    [
      'one key twice',
      configMap({ data: { a: '' }, binaryData: { a: '' } }),
      'duplicate of key present in binaryData',
    ],
    [
      'no base64',
      configMap({ binaryData: { a: 'a b' } }),
      'binaryData[a]: Invalid value: "…": must be base64',
    ],
    [
      'too much',
      configMap({ data: { a: 'x'.repeat(1024 * 1024 + 1) } }),
      'Too long: may not be more than 1048576 bytes',
    ],
    ['an unknown field', configMap({ dat: {} }), 'unknown field "dat" in the document; did you mean "data"?'],
    [
      'a TLS secret without its key',
      secret({ type: 'kubernetes.io/tls', stringData: { 'tls.crt': 'c' } }),
      'data[tls.key]: Required value',
    ],
    ['credentials of nobody', secret({ type: 'kubernetes.io/basic-auth' }), 'data[username]: Required value'],
    [
      'a registry config that is no JSON',
      secret({ type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': 'hunter2' } }),
      'must be a JSON object',
    ],
    [
      'a registry config that is a number',
      secret({ type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': '5' } }),
      'must be a JSON object',
    ],
    ['no handler', { ...runtimeClass, handler: '' }, 'handler: Required value'],
    [
      'an overhead below zero',
      { ...runtimeClass, overhead: { podFixed: { cpu: -1 } } },
      'overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ],
    [
      'an overhead of nothing there is',
      { ...runtimeClass, overhead: { podFixed: { memroy: 3 } } },
      'overhead.limits[memroy]: Invalid value: "memroy": must be a standard resource',
    ],
    [
      'less than nothing',
      claim({ resources: { requests: { storage: '-5Gi' } } }),
      'must be greater than zero',
    ],
    ['nothing', claim({ resources: { requests: { storage: 0 } } }), 'must be greater than zero'],
    [
      'a token',
      secret({ type: 'kubernetes.io/service-account-token' }),
      'not supported: there is no API server to issue tokens',
    ],
    ['no access mode', claim({ accessModes: [] }), 'at least 1 access mode is required'],
    ['no size', claim({ resources: {} }), 'spec.resources[storage]: Required value'],
    [
      'a class of a bad name',
      claim({ storageClassName: 'A_B' }),
      'spec.storageClassName: Invalid value: "A_B"',
    ],
    ['a block device', claim({ volumeMode: 'Block' }), 'spec.volumeMode: not supported'],
    [
      'a system class',
      { ...priorityClass, metadata: { name: 'system-own' } },
      'prefix are reserved for system use only',
    ],
    [
      'a system priority',
      { ...priorityClass, value: 1_000_000_001 },
      'maximum allowed value of a user defined priority',
    ],
    [
      'a class of every cluster with another value',
      { ...priorityClass, metadata: { name: 'system-node-critical' }, value: 5 },
      'error: value of system-node-critical PriorityClass must be 2000001000',
    ],
    [
      'a class of every cluster as the default',
      {
        ...priorityClass,
        metadata: { name: 'system-cluster-critical' },
        value: 2_000_000_000,
        globalDefault: true,
      },
      'error: globalDefault of system-cluster-critical PriorityClass must be false',
    ],
    [
      'an empty private key',
      secret({ type: 'kubernetes.io/ssh-auth', data: { 'ssh-privatekey': '' } }),
      'data[ssh-privatekey]: Required value',
    ],
    [
      'one toleration twice',
      {
        ...runtimeClass,
        scheduling: {
          tolerations: [
            { key: 'a', operator: 'Exists' },
            { key: 'a', operator: 'Exists', effect: 'NoExecute' },
            { key: 'a', operator: 'Exists', tolerationSeconds: null },
          ],
        },
      },
      'scheduling.tolerations[2]: Duplicate value',
    ],
  ])('%s is refused', async (_what, object, message) => {
    const { objects, problems, heldObjects } = await decode(object)
    expect(objects).toEqual([])
    expect(problems.join('\n')).toContain(message)
    expect(heldObjects).toHaveLength(1)
  })

  it.each([
    ['ConfigMap', configMap({ metadata: { name: 'web', namespace: '' } })],
    ['Secret', secret({ metadata: { name: 'web', namespace: '' } })],
    ['PersistentVolumeClaim', { ...claim({}), metadata: { name: 'web', namespace: '' } }],
  ])('a %s with an empty namespace is in the default one', async (kind, object) => {
    const { keys, objects, problems } = await decode(object)
    expect({ keys, problems }).toEqual({ keys: [`${kind}/default/web`], problems: [] })
    expect(objects[0]?.metadata).toMatchObject({ namespace: 'default' })
  })

  it.each<readonly [string, JsonObject]>([
    [
      'system-node-critical',
      { ...priorityClass, metadata: { name: 'system-node-critical' }, value: 2_000_001_000 },
    ],
    [
      'system-cluster-critical',
      { ...priorityClass, metadata: { name: 'system-cluster-critical' }, value: 2_000_000_000 },
    ],
    [
      'a registry config of null',
      secret({ type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': 'null' } }),
    ],
    [
      'an empty registry config of the old kind',
      secret({ type: 'kubernetes.io/dockercfg', stringData: { '.dockercfg': 'null' } }),
    ],
    ['empty credentials', secret({ type: 'kubernetes.io/basic-auth', data: { username: '' } })],
  ])('%s is taken, as dumps of clusters have it', async (_what, object) => {
    const { keys, problems } = await decode(object)
    expect({ problems, count: keys.length }).toEqual({ problems: [], count: 1 })
  })

  it('take null for an empty string in their data and labels', async () => {
    const { objects, problems } = await decode(
      configMap({ data: { a: null }, metadata: { name: 'web', labels: { b: null } } }),
    )
    expect(problems).toEqual([])
    expect(objects).toMatchObject([{ data: { a: '' }, metadata: { labels: { b: '' } } }])
  })

  it('warn of fractions of bytes', async () => {
    const { keys, problems } = await decode(claim({ resources: { requests: { storage: '1500m' } } }), {
      ...runtimeClass,
      overhead: { podFixed: { memory: '1m' } },
    })
    expect(keys).toHaveLength(2)
    expect(problems).toEqual([
      expect.stringContaining('fractional byte value "1500m" is invalid, must be an integer'),
      expect.stringContaining('fractional byte value "1m" is invalid, must be an integer'),
    ])
  })

  it.each<[string, JsonObject]>([
    ['a number', secret({ stringData: { password: 271828 } })],
    ['a number for data', secret({ data: { password: 271828 } })],
    ['a list', secret({ data: [271828] })],
    ['bad base64', secret({ data: { password: '!271828' } })],
    ['a key with a slash', secret({ stringData: { 'a/b': '271828' } })],
    [
      'no JSON',
      secret({ type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': '271828{' } }),
    ],
    ['too much', secret({ stringData: { a: '271828'.repeat(200_000) } })],
  ])('complaints about a Secret don’t say what it holds: %s', async (_what, object) => {
    const { problems } = await decode(object)
    expect(problems).not.toEqual([])
    expect(problems.join('\n')).not.toContain('271828')
  })
})

it('keeps the values of Secrets alone out of messages', () => {
  expect(Object.keys(objectKinds).filter((kind) => holdsSecrets({ kind }))).toEqual(['Secret'])
  expect(holdsSecrets({ kind: 'Lease' })).toBe(false)
})

it('has each source give ConfigMaps, Secrets and Services of its own, and no other kind', () => {
  const kinds = Object.entries(objectKinds).flatMap(([kind, { isPerSource }]) => (isPerSource ? [kind] : []))
  expect(kinds.toSorted()).toEqual(['ConfigMap', 'Secret', 'Service'])
})

it('knows the Secrets that a pod names for its pulls', () => {
  const of = (...names: readonly string[]) =>
    pullSecretsOf(makePod({ spec: { imagePullSecrets: names.map((name) => ({ name })) } }), 'file')
  expect(of()).toBeUndefined()
  expect(of('a', 'b')).toEqual({ source: 'file', namespace: 'default', names: ['a', 'b'] })
})

it('knows all objects that a pod refers to', () => {
  const pod = makePod({
    init: [
      { name: 'i', envFrom: [{ configMapRef: { name: 'from' } }, { secretRef: { name: 'secret-from' } }] },
    ],
    containers: [
      {
        name: 'a',
        env: [
          { name: 'X', valueFrom: { configMapKeyRef: { name: 'key', key: 'x' } } },
          { name: 'Y', valueFrom: { secretKeyRef: { name: 'secret-key', key: 'y' } } },
          { name: 'Z', value: 'z' },
        ],
      },
    ],
    spec: {
      imagePullSecrets: [{ name: 'pull' }, { name: '' }],
      runtimeClassName: 'gvisor',
      priorityClassName: 'low',
      volumes: [
        { name: 'v', configMap: { name: 'volume' } },
        { name: 'w', secret: { secretName: 'secret-volume' } },
        { name: 'x', persistentVolumeClaim: { claimName: 'claim' } },
        {
          name: 'y',
          projected: { sources: [{ configMap: { name: 'part' } }, { secret: { name: 'secret-part' } }] },
        },
      ],
    },
  })
  expect([...podReferences(pod)].toSorted()).toEqual([
    'ConfigMap/default/from',
    'ConfigMap/default/key',
    'ConfigMap/default/part',
    'ConfigMap/default/volume',
    'PersistentVolumeClaim/default/claim',
    'PriorityClass/low',
    'RuntimeClass/gvisor',
    'Secret/default/pull',
    'Secret/default/secret-from',
    'Secret/default/secret-key',
    'Secret/default/secret-part',
    'Secret/default/secret-volume',
  ])
  expect([...podReferences(makePod())]).toEqual([])
})

it('an object that is kept has the problems of its template alone where it is a PodTemplate', () => {
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata }
  const template = (spec: JsonObject) => ({
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata,
    template: { spec },
  })
  expect(keptProblems('Lease', lease)).toEqual([])
  expect(keptProblems('PodTemplate', template({ containers: [{ name: 'a', image: 'i' }] }))).toEqual([])
  expect(keptProblems('PodTemplate', template({ containers: [] }))).toMatchObject([
    { path: ['template', 'spec', 'containers'], reason: 'FieldValueRequired' },
  ])
  expect(keptProblems('PodTemplate', template({ containers: [{ name: 1, image: 'i' }] }))).toMatchObject([
    { path: ['template', 'spec', 'containers', 0, 'name'], reason: 'FieldValueTypeInvalid' },
  ])
  expect(keptProblems('Lease', { ...lease, template: {} })).toMatchObject([
    { path: ['template'], reason: 'UnknownField' },
  ])
})

describe('what a Service asks for and one host without a proxy cannot do', () => {
  const service = (spec: JsonObject): JsonObject => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }], ...spec },
  })

  it.each<[string, JsonObject, string, RegExp]>([
    [
      'a port of the host',
      { type: 'NodePort' },
      'spec.type',
      /write hostPort into the pod, and type ClusterIP/u,
    ],
    [
      'which port of the host',
      { ports: [{ port: 80, nodePort: 30_080 }] },
      'spec.ports[0].nodePort',
      /write `hostPort` into the pod/u,
    ],
    [
      'a load balancer',
      { type: 'LoadBalancer' },
      'spec.type',
      /write hostPort into the pod, and type ClusterIP/u,
    ],
    [
      'a class of them',
      { loadBalancerClass: 'x' },
      'spec.loadBalancerClass',
      /write `hostPort` into the pod/u,
    ],
    [
      'who may ask one',
      { loadBalancerSourceRanges: ['10.0.0.0/8'] },
      'spec.loadBalancerSourceRanges',
      /firewall/u,
    ],
    [
      'an address of the host',
      { externalIPs: ['192.0.2.1'] },
      'spec.externalIPs',
      /write `hostPort` into the pod/u,
    ],
    [
      'an alias',
      { type: 'ExternalName' },
      'spec.type',
      /write the name itself, or hostAliases into the pods/u,
    ],
    ['nothing behind it', { selector: {} }, 'spec.selector', /write one, or `hostAliases` into the pods/u],
  ])('is refused at its field, with what to do: %s', async (_what, spec, field, hint) => {
    const { problems } = await decode(service(spec))
    expect(problems).toHaveLength(1)
    expect(problems[0]?.startsWith(`${field}: not supported: `)).toBe(true)
    expect(problems[0]).toMatch(hint)
  })

  it('another port of its pods is taken, with a warning at its field', async () => {
    const { objects, problems } = await decode(service({ ports: [{ port: 80, targetPort: 8080 }] }))
    expect(objects).toHaveLength(1)
    expect(problems).toEqual([
      'spec.ports[0].targetPort: podd has no proxy: the name leads to the pods themselves, which answer at 8080, and nothing at 80',
    ])
  })
})
