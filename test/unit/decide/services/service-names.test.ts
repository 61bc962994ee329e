import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import {
  computeEndpointSlices,
  computeServiceNames,
  computeServiceVariables,
  listPortProblems,
  selectEndpoints,
} from '../../../../src/decide/services/service-names.ts'
import type { ServicePod } from '../../../../src/decide/services/service-names.ts'
import { objectFromManifest } from '../../../../src/pod/objects/local-object.ts'
import { defaultObjectPolicies } from '../../../support/object-rules.ts'
import type { Service } from '../../../../src/pod/objects/object-kinds.ts'
import type { SourceName } from '../../../../src/pod/values/ids.ts'
import { makePod } from '../../../support/pod-builders.ts'

function service(spec: JsonObject = {}, metadata: JsonObject = {}): Service {
  const object = objectFromManifest({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'db', namespace: 'default', ...metadata },
    spec: { selector: { app: 'db' }, ports: [{ port: 5432 }], ...spec },
  })
  if (object.kind !== 'Service') throw new Error('no Service')
  return object
}

type Changes = Partial<Omit<ServicePod, 'pod'>> & {
  readonly spec?: JsonObject
  readonly namespace?: string
  readonly labels?: JsonObject
}

function backend(name: string, ip: string, changes: Changes = {}): ServicePod {
  const { spec = {}, namespace = 'default', labels = { app: 'db' }, ...facts } = changes
  return {
    uid: `uid-${name}`,
    pod: makePod({ name, metadata: { name, namespace, labels }, spec }),
    source: 'file',
    ips: [ip],
    isReady: true,
    isTerminating: false,
    isOver: false,
    ...facts,
  }
}

const endpointsOf = (given: Service, pods: readonly ServicePod[], source: SourceName = 'file') =>
  selectEndpoints(given, source, pods, defaultObjectPolicies)

const client = makePod({ name: 'client' })
const names = (given: Service, pods: readonly ServicePod[], pod = client, source: SourceName = 'file') =>
  computeServiceNames(pod, [endpointsOf(given, pods, source)]).map(
    ({ ip, hostnames }) => `${ip} ${hostnames.join(' ')}`,
  )
const all = 'db.default.svc.cluster.local db.default.svc db.default db'

describe('the pods behind a Service', () => {
  it.each<[string, Service, ServicePod, readonly string[]]>([
    ['ready', service(), backend('a', '10.0.0.2'), [`10.0.0.2 ${all}`]],
    [
      'of both families',
      service(),
      backend('a', '', { ips: ['10.0.0.2', 'fd00::2'] }),
      [`10.0.0.2 ${all}`, `fd00::2 ${all}`],
    ],
    ['not ready', service(), backend('a', '10.0.0.2', { isReady: false }), []],
    ['terminating', service(), backend('a', '10.0.0.2', { isTerminating: true }), []],
    ['over', service(), backend('a', '10.0.0.2', { isOver: true }), []],
    ['without a sandbox', service(), backend('a', '', { ips: [] }), []],
    ['of other labels', service(), backend('a', '10.0.0.2', { labels: { app: 'web' } }), []],
    ['there where the Service selects none', service({ selector: {} }), backend('a', '10.0.0.2'), []],
    ['of fewer labels', service({ selector: { app: 'db', tier: 'x' } }), backend('a', '10.0.0.2'), []],
    ['of another namespace', service(), backend('a', '10.0.0.2', { namespace: 'shop' }), []],
    [
      'not ready, where that is published',
      service({ publishNotReadyAddresses: true }),
      backend('a', '10.0.0.2', { isReady: false }),
      [`10.0.0.2 ${all}`],
    ],
    [
      'terminating, where that is published',
      service({ publishNotReadyAddresses: true }),
      backend('a', '10.0.0.2', { isTerminating: true }),
      [`10.0.0.2 ${all}`],
    ],
    [
      'over, where not ready ones are published',
      service({ publishNotReadyAddresses: true }),
      backend('a', '10.0.0.2', { isOver: true }),
      [],
    ],
  ])('are found by name or not: one that is %s', (_what, given, pod, expected) => {
    expect(names(given, [pod])).toEqual(expected)
  })

  it('come in the order of their names', () => {
    const pods = [backend('b', '10.0.0.3'), backend('a', '10.0.0.4')]
    expect(names(service(), pods)).toEqual([`10.0.0.4 ${all}`, `10.0.0.3 ${all}`])
  })

  it.each<[SourceName, SourceName, boolean]>([
    ['file', 'file', true],
    ['file', 'http', false],
    ['http', 'file', false],
    ['http:a', 'http:b', false],
    // Over the API one may expose what the directory gives, as its pods may read that one's objects.
    ['api', 'file', true],
    ['file', 'api', false],
  ])('of a Service of %s may be of %s: %s', (source, ofPod, isBehind) => {
    expect(names(service(), [backend('a', '10.0.0.2', { source: ofPod })], client, source)).toHaveLength(
      isBehind ? 1 : 0,
    )
  })
})

describe('the names that a pod finds', () => {
  const pods = [backend('a', '10.0.0.2', { spec: { hostname: 'node-0', subdomain: 'db' } })]

  it('are the longer ones in another namespace', () => {
    const other = makePod({ metadata: { name: 'client', namespace: 'shop' } })
    expect(names(service(), [backend('a', '10.0.0.2')], other)).toEqual([
      '10.0.0.2 db.default.svc.cluster.local db.default.svc db.default',
    ])
  })

  it('include each pod by its hostname below the Service that is its subdomain', () => {
    expect(names(service({ clusterIP: 'None' }), pods)).toEqual([
      `10.0.0.2 ${all}`,
      '10.0.0.2 node-0.db.default.svc.cluster.local node-0.db.default.svc node-0.db.default node-0.db',
    ])
    expect(names(service({}, { name: 'other' }), pods)).toHaveLength(1)
  })

  it.each<[string, JsonObject, number]>([
    ['that asks the DNS of a cluster', {}, 1],
    ["on the host's network", { hostNetwork: true }, 0],
    [
      "on the host's network that asks the DNS of a cluster",
      { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' },
      1,
    ],
    ["that asks the host's resolver alone", { dnsPolicy: 'Default' }, 0],
    ['that names its own resolver', { dnsPolicy: 'None' }, 0],
  ])('are those of a pod %s', (_what, spec, count) => {
    expect(names(service(), [backend('a', '10.0.0.2')], makePod({ name: 'client', spec }))).toHaveLength(
      count,
    )
  })

  it('stand in lines that musl reads whole', () => {
    const long = 'x'.repeat(63)
    const given = service({}, { name: long, namespace: long })
    const spec = { hostname: long, subdomain: long }
    const lines = names(given, [backend('a', 'fd00::2', { namespace: long, spec })])
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(511)
    expect(lines.join(' ')).toContain(`${long}.${long}.${long}.svc.cluster.local`)
  })
})

describe('the variables of Services', () => {
  const variables = (given: Service, pods: readonly ServicePod[] = [], spec: JsonObject = {}) =>
    Object.fromEntries(computeServiceVariables(makePod({ name: 'client', spec }), [endpointsOf(given, pods)]))

  it('are those of Kubernetes, with the name for the address', () => {
    const host = 'my-db.default.svc.cluster.local'
    const ports = [
      { name: 'sql', port: 8765, targetPort: 8080 },
      { name: 'dns-udp', port: 53, protocol: 'UDP' },
    ]
    expect(variables(service({ ports }, { name: 'my-db' }))).toEqual({
      MY_DB_SERVICE_HOST: host,
      MY_DB_SERVICE_PORT: '8765',
      MY_DB_SERVICE_PORT_SQL: '8765',
      MY_DB_SERVICE_PORT_DNS_UDP: '53',
      MY_DB_PORT: `tcp://${host}:8765`,
      MY_DB_PORT_8765_TCP: `tcp://${host}:8765`,
      MY_DB_PORT_8765_TCP_PROTO: 'tcp',
      MY_DB_PORT_8765_TCP_PORT: '8765',
      MY_DB_PORT_8765_TCP_ADDR: host,
      MY_DB_PORT_53_UDP: `udp://${host}:53`,
      MY_DB_PORT_53_UDP_PROTO: 'udp',
      MY_DB_PORT_53_UDP_PORT: '53',
      MY_DB_PORT_53_UDP_ADDR: host,
    })
  })

  it.each<[string, Service, JsonObject]>([
    ['a headless one', service({ clusterIP: 'None' }), {}],
    ['one of another namespace', service({}, { namespace: 'shop' }), {}],
    ['any, where the pod wants none', service(), { enableServiceLinks: false }],
    ['one without a ready pod, where no name is found', service(), { hostNetwork: true }],
  ])('are none of %s', (_what, given, spec) => {
    expect(variables(given, [], spec)).toEqual({})
  })

  it('have an address where a pod finds no names: that of the first ready pod that has one', () => {
    const pods = [
      backend('a', '', { ips: [] }),
      backend('b', '10.0.0.2', { isReady: false }),
      backend('c', 'fd00::2'),
    ]
    expect(variables(service(), pods, { hostNetwork: true })).toMatchObject({
      DB_SERVICE_HOST: 'fd00::2',
      DB_PORT: 'tcp://[fd00::2]:5432',
    })
  })
})

describe('EndpointSlices', () => {
  const sql = { name: 'sql', containerPort: 5433 }
  const identity = { serviceUid: 'uid-of-db', nodeName: 'box' }
  const named = { containers: [{ name: 'main', image: 'i', ports: [{ name: 'sql', containerPort: 5433 }] }] }

  it('have all pods with addresses, ready or not', () => {
    const pods = [backend('a', '10.0.0.2', { isReady: false }), backend('b', '10.0.0.3')]
    const [slice, ...more] = computeEndpointSlices(endpointsOf(service(), pods), identity)
    expect(more).toEqual([])
    expect(slice).toMatchObject({
      metadata: {
        name: 'db-ipv4',
        namespace: 'default',
        labels: { 'kubernetes.io/service-name': 'db' },
        ownerReferences: [
          { kind: 'Service', name: 'db', uid: 'uid-of-db', controller: true, blockOwnerDeletion: true },
        ],
      },
      addressType: 'IPv4',
      ports: [{ port: 5432, protocol: 'TCP' }],
      endpoints: [
        { addresses: ['10.0.0.2'], conditions: { ready: false, serving: false }, targetRef: { name: 'a' } },
        { addresses: ['10.0.0.3'], conditions: { ready: true, serving: true }, nodeName: 'box' },
      ],
    })
  })

  it('are one for each family and each set of ports', () => {
    const given = service({ ports: [{ port: 80, targetPort: 'sql' }] })
    const pods = [backend('a', '', { ips: ['10.0.0.2', 'fd00::2'], spec: named }), backend('b', '10.0.0.3')]
    const slices = computeEndpointSlices(endpointsOf(given, pods), identity)
    expect(
      slices.map(({ addressType, ports, endpoints }) => [addressType, ports.length, endpoints.length]),
    ).toEqual([
      ['IPv4', 1, 1],
      ['IPv6', 1, 1],
      ['IPv4', 0, 1],
    ])
    expect(new Set(slices.map(({ metadata }) => metadata.name)).size).toBe(3)
  })

  it.each<[string, readonly JsonObject[], readonly JsonObject[], readonly number[]]>([
    ['of the protocol asked for', [{ name: 'sql', containerPort: 1, protocol: 'UDP' }, sql], [], [5433]],
    ['of the name asked for', [{ name: 'web', containerPort: 80 }, sql], [], [5433]],
    ['of a sidecar', [], [{ name: 's', restartPolicy: 'Always', image: 'i', ports: [sql] }], [5433]],
    ['not of an init container that ends', [], [{ name: 'i', image: 'i', ports: [sql] }], []],
  ])('have the port by its name: that %s', (_which, ports, initContainers, expected) => {
    const containers = [{ name: 'main', image: 'i', ports }]
    const given = service({ ports: [{ port: 80, targetPort: 'sql' }] })
    const pods = [backend('a', '10.0.0.2', { spec: { containers, initContainers } })]
    const [slice] = computeEndpointSlices(endpointsOf(given, pods), identity)
    expect(slice?.ports.map(({ port }) => port)).toEqual(expected)
  })

  it('have the hostname of a pod whose subdomain is the Service, and of no other', () => {
    const pods = [
      backend('a', '10.0.0.2', { spec: { hostname: 'x', subdomain: 'db' } }),
      backend('b', '10.0.0.3', { spec: { hostname: 'y', subdomain: 'other' } }),
      backend('c', '10.0.0.4', { spec: { subdomain: 'db' } }),
      backend('d', '10.0.0.5', { spec: { hostname: 'z' } }),
    ]
    const [slice] = computeEndpointSlices(endpointsOf(service(), pods), identity)
    expect(slice?.endpoints.map((each) => ('hostname' in each ? each.hostname : undefined))).toEqual([
      'x',
      undefined,
      undefined,
      undefined,
    ])
  })

  it('are one without endpoints where no pod is there', () => {
    expect(computeEndpointSlices(endpointsOf(service(), []), identity)).toMatchObject([
      { addressType: 'IPv4', endpoints: [], ports: [{ port: 5432 }] },
    ])
  })
})

it('a port by name that is another one in the pods is warned of', () => {
  const named = (containerPort: number) => ({
    containers: [{ name: 'main', image: 'i', ports: [{ name: 'sql', containerPort }] }],
  })
  const problems = (containerPort: number) =>
    listPortProblems(
      endpointsOf(service({ ports: [{ port: 80, targetPort: 'sql' }] }), [
        backend('a', '10.0.0.2', { spec: named(containerPort) }),
      ]),
      { path: '/db.yaml' },
    )
  expect(problems(80)).toEqual([])
  expect(problems(8080)).toMatchObject([
    {
      severity: 'warning',
      field: 'spec.ports[0].targetPort',
      message: expect.stringContaining('sql is 8080'),
    },
  ])
})
