import { expect, it } from 'vitest'
import { ClusterObjects } from '../../../src/control/serving/cluster-objects.ts'
import { ObjectStore } from '../../../src/control/serving/object-store.ts'
import { createShown } from '../../../src/control/serving/resource-store.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { plainObjectRules } from '../../support/object-rules.ts'
import { eventObject, podObject } from '../../support/pod-objects.ts'

function begin() {
  const clock = new ManualClock()
  const shown = createShown(clock.wallMs())
  const host = {
    runtimeProblem: undefined as string | undefined,
    pressure: [] as ('MemoryPressure' | 'DiskPressure' | 'PIDPressure')[],
    draining: false,
  }
  const images = [
    { names: ['small'], sizeBytes: 1 },
    { names: ['large'], sizeBytes: 2 },
  ]
  const objects = new ClusterObjects({
    shown,
    objects: new ObjectStore(plainObjectRules),
    machine: { machineId: 'm1', systemUuid: 'u1', osImage: 'Debian' },
    hostName: 'box',
    written: () => [],
    writtenNode: () => undefined,
    runtimeClasses: new Map([['kata', { handler: 'kata-qemu', overhead: { memory: '64Mi' } }]]),
    readNode: () => ({
      bootId: 'b1',
      kernel: '6.1',
      architecture: 'amd64',
      addresses: ['10.0.0.2'],
      podCidrs: ['10.88.0.0/16'],
      kubeletPort: 6443,
      capacity: { cpu: '2', pods: '110' },
      allocatable: { cpu: '1900m', pods: '110' },
      runtime: { name: 'containerd', version: '2.1.9' },
      ...host,
    }),
    listImages: async () => [...images],
    createdMs: Date.UTC(2026, 0, 1),
    clock,
  })
  objects.begin()
  return { shown, host, images, objects, clock }
}

const namesOf = (list: readonly { readonly metadata: { readonly name: string } }[]) =>
  list.map(({ metadata }) => metadata.name)

it('shows the namespaces that are in use, each with a service account, and those that always are', async () => {
  const { shown } = begin()
  expect(namesOf(shown.namespaces.list())).toEqual(['default', 'kube-system'])
  shown.pods.put('a', podObject({ name: 'a', namespace: 'shop' }))
  shown.pods.put('b', podObject({ name: 'b', namespace: 'shop' }))
  await Promise.resolve()
  expect(namesOf(shown.namespaces.list())).toEqual(['default', 'kube-system', 'shop'])
  const accounts = shown.serviceaccounts.list()
  expect(accounts.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual([
    'default/default',
    'kube-system/default',
    'shop/default',
  ])
  shown.pods.remove('a')
  await Promise.resolve()
  expect(namesOf(shown.namespaces.list())).toContain('shop')
  shown.pods.remove('b')
  await Promise.resolve()
  expect(namesOf(shown.namespaces.list())).toEqual(['default', 'kube-system'])
})

it('a namespace is no younger than what is in it, and does not depend on when podd first saw a ConfigMap', async () => {
  const { shown } = begin()
  const creationTimestamp = '2026-05-05T05:05:05Z'
  for (const [uid, namespace, source] of [
    ['a', 'written', 'api'],
    ['b', 'given', 'file'],
  ] as const)
    shown.configmaps.put(uid, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'c',
        namespace,
        uid,
        creationTimestamp,
        annotations: { 'podd.dev/source': source },
      },
    })
  await Promise.resolve()
  const times = shown.namespaces
    .list()
    .map(({ metadata }) => [metadata.name, metadata.creationTimestamp] as const)
  expect(Object.fromEntries(times)).toMatchObject({
    written: creationTimestamp,
    given: '2026-01-01T00:00:00Z',
  })
})

it('dates a namespace from its oldest object, whichever comes first', async () => {
  const { shown } = begin()
  const put = async (name: string, creationTimestamp: string): Promise<string | undefined> => {
    const object = podObject({ name, namespace: 'shop' })
    shown.pods.put(name, { ...object, metadata: { ...object.metadata, creationTimestamp } })
    await Promise.resolve()
    const found = shown.namespaces.list().find(({ metadata }) => metadata.name === 'shop')
    return found?.metadata.creationTimestamp
  }
  expect(await put('second', '2026-02-02T00:00:00Z')).toBe('2026-02-02T00:00:00Z')
  expect(await put('third', '2026-03-03T00:00:00Z')).toBe('2026-02-02T00:00:00Z')
  expect(await put('first', '2026-01-01T00:00:00Z')).toBe('2026-01-01T00:00:00Z')
  shown.pods.remove('first')
  await Promise.resolve()
  const dates = shown.namespaces.list().map(({ metadata }) => metadata.creationTimestamp)
  expect(dates).toContain('2026-02-02T00:00:00Z')
})

it('shows the host as a node, with conditions that keep their times while they hold', async () => {
  const { shown, host, objects, clock } = begin()
  await objects.whenNodeShown()
  const [node] = shown.nodes.list()
  expect(node).toMatchObject({
    metadata: { name: 'box' },
    spec: { podCIDR: '10.88.0.0/16' },
    status: {
      addresses: [
        { type: 'InternalIP', address: '10.0.0.2' },
        { type: 'Hostname', address: 'box' },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: 6443 } },
      nodeInfo: { containerRuntimeVersion: 'containerd://2.1.9', machineID: 'm1' },
      images: [{ names: ['large'] }, { names: ['small'] }],
    },
  })
  const conditions = () =>
    shown.nodes.list()[0]?.status.conditions.map(({ type, status, lastTransitionTime }) => ({
      type,
      status,
      lastTransitionTime,
    })) ?? []
  const before = conditions()
  expect(before.map(({ type, status }) => `${type}=${status}`)).toEqual([
    'MemoryPressure=False',
    'DiskPressure=False',
    'PIDPressure=False',
    'Ready=True',
  ])
  await clock.advance(60_000)
  host.pressure.push('DiskPressure')
  host.runtimeProblem = 'containerd does not answer'
  host.draining = true
  const about = { kind: 'Node', namespace: '', name: 'box', uid: 'box' }
  shown.events.put('e', eventObject('e', { involvedObject: about }))
  const after = conditions()
  expect(after.map(({ type, status }) => `${type}=${status}`)).toEqual([
    'MemoryPressure=False',
    'DiskPressure=True',
    'PIDPressure=False',
    'Ready=False',
  ])
  expect(after[0]).toEqual(before[0])
  expect(after[1]?.lastTransitionTime).not.toBe(before[1]?.lastTransitionTime)
  expect(shown.nodes.list()[0]?.spec.unschedulable).toBe(true)
})

it("shows the system's priority classes and the config's runtime classes", () => {
  const { shown } = begin()
  expect(shown.priorityclasses.list().map(({ metadata, value }) => [metadata.name, value])).toEqual([
    ['system-cluster-critical', 2_000_000_000],
    ['system-node-critical', 2_000_001_000],
  ])
  expect(shown.runtimeclasses.list()).toMatchObject([
    { metadata: { name: 'kata' }, handler: 'kata-qemu', overhead: { podFixed: { memory: '64Mi' } } },
  ])
})

it('is the same node while the runtime lists the same images in another order', async () => {
  const { shown, images, objects } = begin()
  images.push({ names: ['twin'], sizeBytes: 2 }, { names: ['tagged', 'twice'], sizeBytes: 2 })
  const versions = new Set<string | undefined>()
  for (let turn = 0; turn < 4; turn += 1) {
    await objects.whenNodeShown()
    versions.add(shown.nodes.list()[0]?.metadata.resourceVersion)
    images.push(...images.splice(0, 1))
  }
  expect(shown.nodes.list()[0]?.status.images.map(({ names }) => names[0])).toEqual([
    'large',
    'tagged',
    'twin',
    'small',
  ])
  expect(versions).toHaveProperty('size', 1)
})
