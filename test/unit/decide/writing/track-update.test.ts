import { describe, expect, it } from 'vitest'
import { jsonAt, listOrEmpty } from '../../../../src/base/json.ts'
import type { JsonObject } from '../../../../src/base/json.ts'
import { applyManifest, trackUpdate } from '../../../../src/decide/writing/apply-manifest.ts'

const entry = (manager: string, operation: string, fieldsV1: JsonObject): JsonObject => ({
  manager,
  operation,
  apiVersion: 'v1',
  time: 'before',
  fieldsType: 'FieldsV1',
  fieldsV1,
})
const map = (data: JsonObject, managedFields?: readonly JsonObject[]): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', ...(managedFields && { managedFields }) },
  data,
})
const data = (...keys: readonly string[]): JsonObject => ({
  'f:data': Object.fromEntries(keys.map((key) => [`f:${key}`, {}])),
})
const applied = entry('ann', 'Apply', data('a', 'b'))

it.each<[string, JsonObject, JsonObject, readonly JsonObject[] | undefined]>([
  ['nobody applied', map({ a: '1' }), map({ a: '2' }), undefined],
  ['nothing changed', map({ a: '1', b: '1' }, [applied]), map({ a: '1', b: '1' }), [applied]],
  [
    'a field changed',
    map({ a: '1', b: '1' }, [applied]),
    map({ a: '2', b: '1' }),
    [
      { ...applied, fieldsV1: data('b') },
      { ...entry('bob', 'Update', data('a')), time: 'now' },
    ],
  ],
  [
    'a field is gone, and one is new',
    map({ a: '1', b: '1' }, [applied]),
    map({ a: '1', c: '1' }),
    [
      { ...applied, fieldsV1: data('a') },
      { ...entry('bob', 'Update', data('c')), time: 'now' },
    ],
  ],
  [
    'the same manager changed something before',
    map({ a: '1', c: '1' }, [applied, entry('bob', 'Update', data('c'))]),
    map({ a: '1', c: '1', d: '1' }),
    [
      { ...applied, fieldsV1: data('a') },
      { ...entry('bob', 'Update', data('c', 'd')), time: 'now' },
    ],
  ],
  ['the managers are reset', map({ a: '1' }, [applied]), map({ a: '1' }, []), undefined],
])('says who owns what where %s', (_, before, after, managers) => {
  const { metadata } = trackUpdate(before, after, { manager: 'bob', time: 'now' })
  expect(metadata).toEqual({ name: 'a', ...(managers && { managedFields: managers }) })
})

it('has another entry for what a manager updates that applied before', () => {
  const { metadata } = trackUpdate(map({ a: '1', b: '1' }, [applied]), map({ a: '2', b: '1' }), {
    manager: 'ann',
    time: 'now',
  })
  expect(metadata).toMatchObject({
    managedFields: [
      { ...applied, fieldsV1: data('b') },
      { ...entry('ann', 'Update', data('a')), time: 'now' },
    ],
  })
})

it('drops a step of an entry that names no item', () => {
  const pod = (managedFields: readonly JsonObject[]): JsonObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a', managedFields },
    spec: { containers: [{ name: 'main' }] },
  })
  const broken = entry('ann', 'Apply', { 'f:spec': { 'f:containers': { 'k:no json': {} } } })
  const { metadata } = trackUpdate(pod([broken]), pod([broken]), { manager: 'bob', time: 'now' })
  expect(metadata).toEqual({ name: 'a' })
})

describe('applyManifest', () => {
  const apply = (current: JsonObject, applied: JsonObject, manager = 'ann', force = false) =>
    applyManifest(current, { applied, manager, force, time: 'now' })
  const managersOf = (object: JsonObject) => jsonAt(object, 'metadata', 'managedFields')
  const byAnn = (fieldsV1: JsonObject) => entry('ann', 'Apply', fieldsV1)
  const fresh = (each: JsonObject) => ({ ...each, time: 'now' })

  const pod = (containers: readonly JsonObject[], managedFields?: readonly JsonObject[]): JsonObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a', labels: { app: 'a' }, ...(managedFields && { managedFields }) },
    spec: { containers },
  })

  it('makes the manager the owner of what it gives, and leaves other fields as they are', () => {
    const { object, conflicts } = apply(map({ a: '1', z: '0' }), map({ a: '2', b: '1' }))
    expect(conflicts).toEqual([])
    expect(object['data']).toEqual({ a: '2', b: '1', z: '0' })
    expect(managersOf(object)).toEqual([fresh(byAnn(data('a', 'b')))])
  })

  it.each<[string, string, readonly JsonObject[], string]>([
    [
      'a port of TCP and one of UDP with the same number',
      'ports',
      [{ containerPort: 53 }, { containerPort: 53, protocol: 'UDP' }],
      'k:{"containerPort":53,"protocol":"TCP"}',
    ],
    [
      "a Service's ports of TCP and UDP with the same number",
      'ports',
      [
        { name: 'tcp', port: 53, protocol: 'TCP' },
        { name: 'udp', port: 53, protocol: 'UDP' },
      ],
      'k:{"port":53,"protocol":"TCP"}',
    ],
    [
      'two constraints of one topology',
      'topologySpreadConstraints',
      [
        { topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' },
        { topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' },
      ],
      'k:{"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}',
    ],
  ])('keeps %s apart', (_, field, items, step) => {
    const manifest = (list: readonly JsonObject[]): JsonObject => ({ kind: 'Pod', spec: { [field]: list } })
    const { object } = apply({}, manifest(items))
    expect(jsonAt(object, 'spec', field)).toEqual(items)
    expect(managersOf(object)).toMatchObject([
      { fieldsV1: { 'f:spec': { [`f:${field}`]: { [step]: { '.': {} } } } } },
    ])
    // Again, and without the first.
    expect(jsonAt(apply(object, manifest(items)).object, 'spec', field)).toEqual(items)
    expect(jsonAt(apply(object, manifest(items.slice(1))).object, 'spec', field)).toEqual(items.slice(1))
  })

  describe('of an object whose ports an earlier version recorded by their number alone', () => {
    const web = { containerPort: 80, hostPort: 8080 }
    const dns = { containerPort: 53, protocol: 'UDP' }
    const spec = (...ports: readonly JsonObject[]): JsonObject => ({ kind: 'Pod', spec: { ports } })
    const portFields = (step: JsonObject, ...fields: readonly string[]): JsonObject => ({
      [`k:${JSON.stringify(step)}`]: {
        '.': {},
        ...Object.fromEntries(fields.map((field) => [`f:${field}`, {}])),
      },
    })
    const setOfPorts = (...ports: readonly JsonObject[]): JsonObject => ({
      'f:spec': { 'f:ports': Object.assign({}, ...ports) },
    })
    const recorded = byAnn(
      setOfPorts(
        portFields({ containerPort: 53 }, 'containerPort', 'protocol'),
        portFields({ containerPort: 80 }, 'containerPort'),
      ),
    )
    const current = (...more: readonly JsonObject[]): JsonObject => ({
      ...spec(web, dns),
      metadata: { managedFields: [recorded, ...more] },
    })
    const full = byAnn(
      setOfPorts(
        portFields({ containerPort: 53, protocol: 'UDP' }, 'containerPort', 'protocol'),
        portFields({ containerPort: 80, protocol: 'TCP' }, 'containerPort'),
      ),
    )

    it('keeps the items, their order and the fields of others where the manager applies the same again', () => {
      const { object } = apply(current(), spec(dns, { containerPort: 80 }))
      expect(jsonAt(object, 'spec')).toEqual(spec(web, dns)['spec'])
      expect(managersOf(object)).toEqual([full])
    })

    it('refuses another value of such a port to another manager', () => {
      const before = current(entry('bob', 'Apply', setOfPorts(portFields({ containerPort: 80 }, 'hostPort'))))
      expect(apply(before, spec({ containerPort: 80, hostPort: 81 }), 'cat').conflicts).toEqual([
        { manager: '"bob"', field: '.spec.ports[containerPort=80,protocol="TCP"].hostPort' },
      ])
    })

    it('keeps a port that the manager omits and another one has applied since', () => {
      const { object } = apply(current(), spec({ containerPort: 80 }), 'bob')
      expect(jsonAt(apply(object, spec(dns)).object, 'spec')).toEqual(spec(web, dns)['spec'])
      // Also one that is recorded by its number alone, of the other manager.
      const fields = portFields({ containerPort: 80 }, 'containerPort', 'hostPort')
      const bob = entry('bob', 'Apply', setOfPorts(fields))
      const known = { ...current(), metadata: { managedFields: [full, bob] } }
      expect(jsonAt(apply(known, spec(dns)).object, 'spec')).toEqual(spec(web, dns)['spec'])
    })

    it('removes a port that the manager omits, and no other of that number', () => {
      const { object } = apply(current(), spec(dns))
      expect(jsonAt(object, 'spec')).toEqual(spec(dns)['spec'])
    })

    it('takes from the manager what another one updates, and leaves it the rest', () => {
      const after = { ...current(), ...spec({ containerPort: 80, hostPort: 81 }, dns) }
      const { metadata } = trackUpdate(current(), after, { manager: 'bob', time: 'now' })
      const bob = entry(
        'bob',
        'Update',
        setOfPorts({ 'k:{"containerPort":80,"protocol":"TCP"}': { 'f:hostPort': {} } }),
      )
      expect(metadata).toEqual({ managedFields: [full, fresh(bob)] })
      const other = { ...current(), ...spec({ ...web, protocol: 'UDP' }, dns) }
      expect(trackUpdate(current(), other, { manager: 'bob', time: 'now' })['metadata']).toMatchObject({
        managedFields: [
          {
            fieldsV1: setOfPorts(
              portFields({ containerPort: 53, protocol: 'UDP' }, 'containerPort', 'protocol'),
            ),
          },
          { manager: 'bob' },
        ],
      })
    })

    it.each<[string, string, JsonObject, JsonObject, string]>([
      [
        "a Service's ports",
        'ports',
        { port: 53, protocol: 'UDP', name: 'dns' },
        { port: 53 },
        'k:{"port":53,"protocol":"UDP"}',
      ],
      [
        'the constraints of a topology',
        'topologySpreadConstraints',
        { topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 1 },
        { topologyKey: 'zone' },
        'k:{"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}',
      ],
    ])('keeps the item of %s in its place', (_, field, item, step, complete) => {
      const manifest = (...items: readonly JsonObject[]): JsonObject => ({
        kind: 'Any',
        spec: { [field]: items },
      })
      const other = { ...item, ...(field === 'ports' ? { port: 80 } : { topologyKey: 'host' }) }
      const old = byAnn({ 'f:spec': { [`f:${field}`]: portFields(step) } })
      const known = { ...manifest(item, other), metadata: { managedFields: [old] } }
      const { object } = apply(known, manifest(item))
      expect(jsonAt(object, 'spec', field)).toEqual([item, other])
      expect(managersOf(object)).toMatchObject([
        { fieldsV1: { 'f:spec': { [`f:${field}`]: { [complete]: { '.': {} } } } } },
      ])
    })
  })

  it('finds no conflict in an empty object, which changes nothing of what another manager gave in it', () => {
    const limits = { resources: { limits: { cpu: '1' } } }
    const { object } = apply(pod([]), pod([{ name: 'main', ...limits }]), 'bob')
    const both = apply(object, pod([{ name: 'main', resources: {} }]))
    expect(both.conflicts).toEqual([])
    expect(both.object['spec']).toEqual({ containers: [{ name: 'main', ...limits }] })
    // Nor does it take that over as its own.
    const { object: left } = apply(both.object, pod([{ name: 'main' }]))
    expect(left['spec']).toEqual({ containers: [{ name: 'main', ...limits }] })
  })

  it('leaves to another manager nothing of an item that goes, so that it conflicts with nothing later', () => {
    const side = { name: 'side', image: 'log:1' }
    const { object: mine } = apply({}, pod([{ name: 'main' }, side]))
    const updated = { ...mine, spec: { containers: [{ name: 'main' }, { ...side, image: 'log:2' }] } }
    const both = trackUpdate(mine, updated, { manager: 'bob', time: 'now' })
    expect(managersOf(both)).toMatchObject([{ manager: 'ann' }, { manager: 'bob' }])
    const { object: without } = apply(both, pod([{ name: 'main' }]))
    expect(without['spec']).toEqual({ containers: [{ name: 'main' }] })
    expect(managersOf(without)).toMatchObject([{ manager: 'ann' }])
    expect(listOrEmpty(managersOf(without))).toHaveLength(1)
    expect(apply(without, pod([{ name: 'main' }, side])).conflicts).toEqual([])
  })

  it('keeps the time of the entry where the manager gives the same fields again', () => {
    const { object } = apply(map({ a: '1', b: '1' }, [applied]), map({ a: '2', b: '1' }))
    expect(object['data']).toEqual({ a: '2', b: '1' })
    expect(managersOf(object)).toEqual([applied])
  })

  it('removes what the manager gave before and now omits, unless another manager has it', () => {
    const bob = entry('bob', 'Apply', data('b'))
    const mine = byAnn(data('a', 'b', 'c'))
    const { object } = apply(map({ a: '1', b: '1', c: '1', z: '0' }, [mine, bob]), map({ a: '1' }))
    expect(object['data']).toEqual({ a: '1', b: '1', z: '0' })
    expect(managersOf(object)).toEqual([fresh(byAnn(data('a'))), bob])
  })

  it.each([
    ['applied', 'Apply', '"bob"'],
    ['updated', 'Update', '"bob" using v1'],
  ])('refuses another value for a field that another manager %s', (_, operation, manager) => {
    const current = map({ a: '1', b: '1' }, [entry('bob', operation, data('a', 'b'))])
    expect(apply(current, map({ a: '2', b: '1' }))).toEqual({
      object: current,
      conflicts: [{ manager, field: '.data.a' }],
    })
  })

  it('takes the field over by force, and leaves the rest to the other manager', () => {
    const bob = entry('bob', 'Apply', data('a', 'b'))
    const { object, conflicts } = apply(map({ a: '1', b: '1' }, [bob]), map({ a: '2' }), 'ann', true)
    expect(conflicts).toEqual([])
    expect(object['data']).toEqual({ a: '2', b: '1' })
    expect(managersOf(object)).toEqual([fresh(byAnn(data('a'))), { ...bob, fieldsV1: data('b') }])
    const only = entry('bob', 'Apply', data('a'))
    expect(managersOf(apply(map({ a: '1' }, [only]), map({ a: '2' }), 'ann', true).object)).toEqual([
      fresh(byAnn(data('a'))),
    ])
  })

  it('takes an update by the same manager for another owner', () => {
    const current = map({ a: '1' }, [entry('ann', 'Update', data('a'))])
    expect(apply(current, map({ a: '2' })).conflicts).toEqual([
      { manager: '"ann" using v1', field: '.data.a' },
    ])
  })

  it('passes over entries of managers that are none', () => {
    const { fieldsV1: _fields, ...withoutFields } = applied
    const { manager: _manager, ...withoutManager } = applied
    const { object, conflicts } = apply(map({ a: '1' }, [withoutFields, withoutManager]), map({ a: '2' }))
    expect(conflicts).toEqual([])
    expect(managersOf(object)).toEqual([fresh(byAnn(data('a')))])
  })

  const container = (name: string, ...fields: readonly string[]): JsonObject => ({
    [`k:${JSON.stringify({ name })}`]: {
      '.': {},
      'f:name': {},
      ...Object.fromEntries(fields.map((field) => [`f:${field}`, {}])),
    },
  })
  const podFields = (...containers: readonly JsonObject[]): JsonObject => ({
    'f:metadata': { 'f:labels': { 'f:app': {} } },
    'f:spec': { 'f:containers': Object.assign({}, ...containers) },
  })

  it('merges lists by their keys, and removes a field or an item that is omitted', () => {
    const both = podFields(container('main', 'image', 'tty'), container('side', 'image'))
    const current = pod(
      [
        { name: 'main', image: 'web:1', tty: true, stdin: true },
        { name: 'side', image: 'log:1' },
        { name: 'other', image: 'x' },
      ],
      [byAnn(both)],
    )
    const { object } = apply(current, pod([{ name: 'main', image: 'web:2' }]))
    expect(object['spec']).toEqual({
      containers: [
        { name: 'main', image: 'web:2', stdin: true },
        { name: 'other', image: 'x' },
      ],
    })
    expect(managersOf(object)).toEqual([fresh(byAnn(podFields(container('main', 'image'))))])
  })

  it('names the item of a list in a conflict', () => {
    const bob = entry('bob', 'Apply', podFields(container('main', 'image')))
    const current = pod([{ name: 'main', image: 'web:1' }], [bob])
    expect(apply(current, pod([{ name: 'main', image: 'web:2' }])).conflicts).toEqual([
      { manager: '"bob"', field: '.spec.containers[name="main"].image' },
    ])
  })

  it('lets two managers have different fields of one item', () => {
    const bob = entry('bob', 'Apply', podFields(container('main', 'image')))
    const current = pod([{ name: 'main', image: 'web:1' }], [bob])
    const { object, conflicts } = apply(current, pod([{ name: 'main', tty: true }]))
    expect(conflicts).toEqual([])
    expect(object['spec']).toEqual({ containers: [{ name: 'main', image: 'web:1', tty: true }] })
    expect(managersOf(object)).toEqual([fresh(byAnn(podFields(container('main', 'tty')))), bob])
  })

  it('owns an empty object, and not empty metadata', () => {
    const applied = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a' },
      spec: { volumes: [{ name: 'v', emptyDir: {} }] },
    }
    expect(managersOf(apply({}, applied).object)).toEqual([
      fresh(
        byAnn({
          'f:spec': { 'f:volumes': { 'k:{"name":"v"}': { '.': {}, 'f:name': {}, 'f:emptyDir': {} } } },
        }),
      ),
    ])
  })

  const noted = 'kubectl.kubernetes.io/last-applied-configuration'

  it.each<[string, string, JsonObject, string | undefined]>([
    ['is updated by kubectl', 'kubectl', { [noted]: 'old' }, 'new'],
    ['is not made by kubectl', 'kubectl', {}, undefined],
    ['is left empty by kubectl', 'kubectl', { [noted]: '' }, ''],
    ['is left alone by another manager', 'ann', { [noted]: 'old' }, 'old'],
  ])('what kubectl has noted of a client-side apply %s', (_, manager, annotations, expected) => {
    const current = { ...map({ a: '1' }), metadata: { name: 'a', annotations } }
    const manifest = { ...map({ a: '2' }), metadata: { name: 'a', annotations: { note: 'y' } } }
    const { object } = apply(current, manifest, manager)
    const text =
      '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"annotations":{"note":"y"},"name":"a"}}\n'
    expect(jsonAt(object, 'metadata', 'annotations')).toEqual({
      note: 'y',
      ...(expected !== undefined && { [noted]: expected === 'new' ? text : expected }),
    })
  })

  it('what kubectl notes of its apply has neither an earlier note nor annotations that are none', () => {
    const current = { ...map({ a: '1' }), metadata: { name: 'a', annotations: { [noted]: 'old' } } }
    const manifest = { ...map({ a: '2' }), metadata: { name: 'a', annotations: { [noted]: 'mine' } } }
    const { object } = apply(current, manifest, 'kubectl')
    expect(jsonAt(object, 'metadata', 'annotations', noted)).toBe(
      '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"a"}}\n',
    )
  })
})
