import { describe, expect, it } from 'vitest'
import type * as cri from '../../../src/cri-types/cri-v1.ts'
import {
  nsToMs,
  observePods,
  readCniPlaces,
  readNetworkProblem,
  readPid,
  readRuntimeFeatures,
  readRuntimeProblem,
  readSandboxIps,
} from '../../../src/translate/observe.ts'
import type { RuntimeListing } from '../../../src/translate/observe.ts'

const ms = 1e6

function labelsOf(uid: string): Record<string, string> {
  return {
    'io.kubernetes.pod.name': `pod-${uid}`,
    'io.kubernetes.pod.namespace': 'default',
    'io.kubernetes.pod.uid': uid,
  }
}

function sandbox(id: string, uid: string, attempt: number, createdAtMs: number): cri.PodSandbox {
  return {
    id,
    metadata: { name: `pod-${uid}`, uid, namespace: 'default', attempt },
    state: 'SANDBOX_READY',
    createdAt: createdAtMs * ms,
    labels: labelsOf(uid),
    annotations: { 'podd.dev/manifest-hash': 'v1-x' },
    runtimeHandler: '',
  }
}

function sandboxStatus(id: string, change: Partial<cri.PodSandboxStatus>): cri.PodSandboxStatus {
  return {
    ...sandbox(id, 'a', 0, 1),
    network: null,
    linux: null,
    ...change,
  }
}

const imageSpec: cri.ImageSpec = {
  image: 'sha256:123',
  annotations: {},
  userSpecifiedImage: '',
  runtimeHandler: '',
  imageRef: '',
}

function container(id: string, uid: string, name: string, count: number, createdAtMs: number): cri.Container {
  return {
    id,
    podSandboxId: `s-${uid}`,
    metadata: { name, attempt: count },
    image: imageSpec,
    imageRef: 'sha256:123',
    state: 'CONTAINER_RUNNING',
    createdAt: createdAtMs * ms,
    labels: labelsOf(uid),
    annotations: {
      'io.kubernetes.container.restartCount': String(count),
      'io.kubernetes.container.hash': 'v1-h',
      'podd.dev/image': 'example.org/app:1',
    },
    imageId: '',
  }
}

function containerStatus(id: string, change: Partial<cri.ContainerStatus>): cri.ContainerStatus {
  return {
    ...container(id, 'a', 'app', 0, 1),
    startedAt: 2 * ms,
    finishedAt: 0,
    exitCode: 0,
    imageRef: 'example.org/app@sha256:456',
    reason: '',
    message: '',
    mounts: [],
    logPath: '',
    resources: null,
    user: null,
    stopSignal: 'SIGNAL_RUNTIME_DEFAULT',
    ...change,
  }
}

const nothing: RuntimeListing = {
  sandboxes: [],
  containers: [],
  sandboxStatuses: new Map(),
  containerStatuses: new Map(),
}

describe('the addresses of a sandbox', () => {
  it.each([
    ['are the primary and the additional ones', '10.1.0.2', ['fd00::2'], ['10.1.0.2', 'fd00::2']],
    ['are none on the host’s network', '', [], []],
    ['are none where the primary one is no address', '10.1.0.2/24', [], []],
    ['are none where an additional one is no address', '10.1.0.2', ['unknown'], []],
  ])('%s', (_title, ip, additional, expected) => {
    expect(readSandboxIps({ ip, additionalIps: additional.map((each) => ({ ip: each })) })).toEqual(expected)
  })
})

describe('observePods', () => {
  it('groups by UID and leaves alone what has no pod’s labels', () => {
    const foreign = { ...sandbox('x', 'x', 0, 1), labels: { app: 'other' } }
    const pods = observePods({
      ...nothing,
      sandboxes: [sandbox('s-a', 'a', 0, 1), foreign],
      containers: [container('c1', 'a', 'app', 0, 2), container('c2', 'b', 'app', 0, 2)],
    })
    expect([...pods.keys()].sort()).toEqual(['a', 'b'])
    expect(pods.get('a')).toMatchObject({ name: 'pod-a', namespace: 'default', uid: 'a' })
    expect(pods.get('b')?.sandboxes).toEqual([])
    expect(pods.get('b')?.containers.map(({ id }) => id)).toEqual(['c2'])
  })

  it.each([
    [null, undefined],
    [{ linux: null }, undefined],
    [{ linux: { uid: 0, gid: 0, supplementalGroups: [] } }, { uid: 0, gid: 0 }],
    [
      { linux: { uid: 1000, gid: 3000, supplementalGroups: [10, 4000] } },
      { uid: 1000, gid: 3000, supplementalGroups: [10, 4000] },
    ],
  ])('tells whom a container runs as where the runtime does: %j', (user, expected) => {
    const pods = observePods({
      ...nothing,
      containers: [container('c1', 'a', 'app', 0, 2)],
      containerStatuses: new Map([['c1', containerStatus('c1', { user })]]),
    })
    expect(pods.get('a')?.containers[0]?.user).toEqual(expected)
  })

  it('tells a sandbox’s addresses and network, the primary address first', () => {
    const status = sandboxStatus('s-a', {
      state: 'SANDBOX_NOTREADY',
      network: { ip: '10.1.0.2', additionalIps: [{ ip: 'fd00::2' }] },
    })
    const pods = observePods({
      ...nothing,
      sandboxes: [sandbox('s-a', 'a', 2, 5)],
      sandboxStatuses: new Map([['s-a', status]]),
    })
    expect(pods.get('a')?.sandboxes).toEqual([
      {
        id: 's-a',
        attempt: 2,
        ready: false,
        createdAtMs: 5,
        ips: ['10.1.0.2', 'fd00::2'],
        hostNetwork: false,
        annotations: { 'podd.dev/manifest-hash': 'v1-x' },
      },
    ])
  })

  it('knows the host’s network, where there is no address', () => {
    const options: cri.NamespaceOption = {
      network: 'NODE',
      pid: 'POD',
      ipc: 'POD',
      targetId: '',
      usernsOptions: null,
    }
    const status = sandboxStatus('s-a', {
      network: { ip: '', additionalIps: [] },
      linux: { namespaces: { options } },
    })
    const pods = observePods({
      ...nothing,
      sandboxes: [sandbox('s-a', 'a', 0, 1)],
      sandboxStatuses: new Map([['s-a', status]]),
    })
    expect(pods.get('a')?.sandboxes[0]).toMatchObject({ hostNetwork: true, ips: [] })
  })

  it('tells how a container ended', () => {
    const status = containerStatus('c1', {
      state: 'CONTAINER_EXITED',
      startedAt: 2_000_000,
      finishedAt: 3_999_999,
      exitCode: 137,
      reason: 'OOMKilled',
      message: 'out',
    })
    const pods = observePods({
      ...nothing,
      containers: [container('c1', 'a', 'app', 4, 1)],
      containerStatuses: new Map([['c1', status]]),
    })
    expect(pods.get('a')?.containers[0]).toMatchObject({
      id: 'c1',
      sandboxId: 's-a',
      name: 'app',
      restartCount: 4,
      state: 'exited',
      createdAtMs: 1,
      startedAtMs: 2,
      finishedAtMs: 3,
      exitCode: 137,
      reason: 'OOMKilled',
      message: 'out',
      image: 'example.org/app:1',
      imageId: 'example.org/app@sha256:456',
      specHash: 'v1-h',
    })
  })

  it('has no end for what runs, whatever the runtime’s zero times look like', () => {
    const status = containerStatus('c1', { finishedAt: -6.795_364_578_871_345e18, exitCode: 0 })
    const pods = observePods({
      ...nothing,
      containers: [container('c1', 'a', 'app', 0, 1)],
      containerStatuses: new Map([['c1', status]]),
    })
    expect(pods.get('a')?.containers[0]).toMatchObject({
      state: 'running',
      finishedAtMs: undefined,
      exitCode: undefined,
    })
  })

  it('puts the newest first, by attempt and restart count where the clock went back', () => {
    const pods = observePods({
      ...nothing,
      sandboxes: [sandbox('s0', 'a', 0, 100), sandbox('s1', 'a', 1, 50)],
      containers: [
        container('app-0', 'a', 'app', 0, 100),
        container('side-0', 'a', 'side', 0, 70),
        container('app-1', 'a', 'app', 1, 50),
        container('app-2', 'a', 'app', 2, 60),
      ],
    })
    expect(pods.get('a')?.sandboxes.map(({ id }) => id)).toEqual(['s1', 's0'])
    expect(pods.get('a')?.containers.map(({ id }) => id)).toEqual(['app-2', 'side-0', 'app-1', 'app-0'])
  })
})

describe('what is listed', () => {
  it('has a container whose status is provisional marked as such, and no other', () => {
    const pods = observePods({
      ...nothing,
      containers: [
        container('c1', 'a', 'app', 0, 2),
        container('c2', 'a', 'side', 0, 2),
        container('c3', 'a', 'x', 0, 2),
      ],
      containerStatuses: new Map([
        ['c1', containerStatus('c1', {})],
        ['c2', containerStatus('c2', {})],
      ]),
      isProvisional: ({ id }) => id === 'c1',
    })
    const provisional = pods.get('a')?.containers.filter(({ provisional }) => provisional === true)
    expect(provisional?.map(({ id }) => id)).toEqual(['c1'])
  })

  it('is newest first by creation, and in the order of ids where that is the same', () => {
    const pods = observePods({
      ...nothing,
      sandboxes: [sandbox('s0', 'a', 0, 50), sandbox('s2', 'a', 0, 100), sandbox('s1', 'a', 0, 100)],
      containers: [
        container('app-0', 'a', 'app', 0, 10),
        container('b', 'a', 'side', 0, 100),
        container('a', 'a', 'main', 0, 100),
        container('app-0b', 'a', 'app', 0, 20),
      ],
    })
    expect(pods.get('a')?.sandboxes.map(({ id }) => id)).toEqual(['s1', 's2', 's0'])
    expect(pods.get('a')?.containers.map(({ id }) => id)).toEqual(['a', 'b', 'app-0b', 'app-0'])
  })
})

describe('readPid', () => {
  it.each([
    ['{"pid":42}', 42],
    ['{"pid":1}', 1],
    ['{"pid":0}', undefined],
    ['{"pid":"42"}', undefined],
    ['no JSON', undefined],
    [undefined, undefined],
  ])('of %s is %s', (info, expected) => {
    expect(readPid(info)).toBe(expected)
  })
})

describe('what the runtime says of itself', () => {
  const condition = (type: string, status: boolean) => ({ type, status, reason: 'Why', message: 'because' })
  const reply = (...conditions: readonly cri.RuntimeCondition[]): cri.StatusResponse => ({
    status: { conditions: [...conditions] },
    info: {},
    runtimeHandlers: [],
    features: null,
  })

  it('is no problem where it says that it is ready, or nothing', () => {
    const ready = reply(condition('NetworkReady', true), condition('RuntimeReady', true))
    expect([readRuntimeProblem(ready), readNetworkProblem(ready, false)]).toEqual([undefined, undefined])
    expect([readRuntimeProblem(reply()), readNetworkProblem(reply(), false)]).toEqual([undefined, undefined])
  })

  it('is why it takes no pods, or none with a network', () => {
    expect(readRuntimeProblem(reply(condition('NetworkReady', true), condition('RuntimeReady', false)))).toBe(
      'container runtime not ready: RuntimeReady=false reason:Why message:because',
    )
    expect(
      readNetworkProblem(reply(condition('RuntimeReady', true), condition('NetworkReady', false)), false),
    ).toContain('container runtime network not ready: NetworkReady=false reason:Why message:because. ')
    const noNetwork = reply(condition('RuntimeReady', true), condition('NetworkReady', false))
    expect([false, true].map((isOwn) => readNetworkProblem(noNetwork, isOwn)?.includes('embedded'))).toEqual([
      true,
      false,
    ])
  })

  it.each([
    [{}, undefined, []],
    [{ config: '{"cni":{"confDir":""}}' }, undefined, []],
    [{ config: '{"cni":{"confDir":3}}' }, undefined, []],
    [
      { config: '{"cni":{"confDir":"/etc/cni"}}', cniconfig: '{"PluginDirs":["/opt/cni",3]}' },
      '/etc/cni',
      ['/opt/cni'],
    ],
  ])('is where its CNI lies by %j', (info, cniConfDir, cniPluginDirs) => {
    expect(readCniPlaces(info)).toEqual({ cniConfDir, cniPluginDirs })
  })
})

describe('nsToMs', () => {
  it.each([
    [undefined, undefined],
    [0, undefined],
    [-1, undefined],
    [1, 0],
    [1_700_000_000_123_456_800, 1_700_000_000_123],
  ])('%d ns are %d ms', (ns, expected) => {
    expect(nsToMs(ns)).toBe(expected)
  })
})

const version = { runtimeName: 'containerd', runtimeVersion: 'v2.1.9' }

describe('readRuntimeFeatures', () => {
  it('takes what a runtime lists', () => {
    const features = readRuntimeFeatures(version, {
      runtimeHandlers: [
        { name: '', features: { userNamespaces: true, recursiveReadOnlyMounts: true } },
        { name: 'kata', features: null },
      ],
      features: { supplementalGroupsPolicy: true, mountOptions: false },
      info: {},
    })
    expect(features).toMatchObject({
      runtime: 'containerd 2.1.9',
      supplementalGroupsPolicy: true,
      handlers: new Map([
        ['', { userNamespaces: true, recursiveReadOnlyMounts: true }],
        ['kata', { userNamespaces: false, recursiveReadOnlyMounts: false }],
      ]),
    })
  })

  it.each([
    ['containerd', 'v2.0.5', [false, false, false]],
    ['containerd', 'v2.1.9', [true, false, false]],
    ['containerd', '2.2.0-rc.1', [true, true, false]],
    ['containerd', 'v2.3.0', [true, true, true]],
    ['containerd', '3.0.0', [true, true, true]],
    ['cri-o', '1.33.0', [true, true, false]],
  ])('knows of %s %s by its version what no reply says', (runtimeName, runtimeVersion, expected) => {
    const features = readRuntimeFeatures(
      { runtimeName, runtimeVersion },
      { runtimeHandlers: [], features: null, info: {} },
    )
    expect([features.imageVolumes, features.imageSubPaths, features.stopSignals]).toEqual(expected)
  })

  it('finds the names alone in the configuration of an older one', () => {
    const info = { config: JSON.stringify({ containerd: { runtimes: { runc: {}, runsc: {} } } }) }
    const old = { runtimeName: 'containerd', runtimeVersion: '1.6.20~ds1' }
    const features = readRuntimeFeatures(old, { runtimeHandlers: [], features: null, info })
    expect(features.runtime).toBe('containerd 1.6.20')
    expect([...(features.handlers?.keys() ?? [])]).toEqual(['', 'runc', 'runsc'])
    expect(features.supplementalGroupsPolicy).toBe(false)
  })

  it.each([{}, { config: 'no JSON' }, { config: '{"containerd": 3}' }])(
    'knows of no handlers by %j',
    (info) => {
      const features = readRuntimeFeatures(version, { runtimeHandlers: [], features: null, info })
      expect(features.handlers).toBeUndefined()
    },
  )
})
