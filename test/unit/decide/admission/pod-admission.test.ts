import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import { admitPod, computeAllocatable } from '../../../../src/decide/admission/admit-pod.ts'
import { preflightPod } from '../../../../src/decide/admission/preflight-pod.ts'
import type { PreflightFacts } from '../../../../src/decide/admission/preflight-pod.ts'
import { resolveClasses } from '../../../../src/decide/admission/resolve-classes.ts'
import { podFromManifest } from '../../../../src/pod/schema/default-pod.ts'
import { withClasses } from '../../../../src/pod/schema/pod-resources.ts'
import type { RuntimeFeatures } from '../../../../src/pod/state/observed.ts'
import type { Pod } from '../../../../src/pod/schema/pod-schema.ts'

function podOf(spec: JsonObject = {}, requests: JsonObject = {}): Pod {
  return podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'app', image: 'a', resources: { requests } }], ...spec },
  })
}

const gib = 2 ** 30

describe('computeAllocatable', () => {
  it('is the machine without its reservations and huge pages', () => {
    const capacity = { cpus: 4, memoryBytes: 8 * gib, hugePagesBytes: new Map([['2Mi', gib]]) }
    expect(computeAllocatable(capacity, [{ cpu: '500m', memory: '1Gi' }, { cpu: '0.5' }])).toEqual({
      cpu: '3000m',
      memory: String(6 * gib),
      'hugepages-2Mi': String(gib),
    })
  })

  it('is never less than nothing', () => {
    const capacity = { cpus: 1, memoryBytes: gib, hugePagesBytes: new Map<string, number>() }
    expect(computeAllocatable(capacity, [{ cpu: '2', memory: '2Gi' }])).toEqual({ cpu: '0m', memory: '0' })
  })
})

describe('admitPod', () => {
  const limits = { maxPods: 10, allocatable: { cpu: '2', memory: '1Gi', 'hugepages-2Mi': '4Mi' } }
  const neighbour = { key: 'default/other', pod: podOf({}, { cpu: '1500m', memory: '512Mi' }) }

  it.each<[JsonObject, string | undefined]>([
    [{ cpu: '500m', memory: '512Mi' }, undefined],
    [{ cpu: '501m' }, 'cpu, requested: 501, used: 1500, capacity: 2000'],
    [{ memory: '513Mi' }, 'memory, requested: 537919488, used: 536870912, capacity: 1073741824'],
    [{ cpu: '1m', 'hugepages-1Gi': '1Gi' }, 'hugepages-1Gi, requested: 1073741824, used: 0, capacity: 0'],
    [{}, undefined],
  ])('of %j beside a neighbour', (requests, numbers) => {
    const admission = admitPod(podOf({}, requests), [neighbour], limits)
    expect(admission).toMatchObject(
      numbers === undefined
        ? { kind: 'admitted' }
        : { kind: 'blocked', reason: 'Blocked', message: `Node didn't have enough resource: ${numbers}` },
    )
  })

  it('counts the overhead of a RuntimeClass', () => {
    const classes = { runtimeHandler: 'kata', overhead: { cpu: '200m' } }
    const admission = admitPod(withClasses(podOf({}, { cpu: '400m' }), classes), [neighbour], limits)
    expect(admission).toMatchObject({ kind: 'blocked', message: expect.stringContaining('resource: cpu') })
  })

  it('gives freely what isn’t counted', () => {
    expect(admitPod(podOf({}, { cpu: '99' }), [], { maxPods: 1 })).toEqual({ kind: 'admitted' })
  })
})

describe('resolveClasses', () => {
  const facts = {
    runtimeClasses: new Map([
      ['gvisor', { handler: 'runsc', overhead: { memory: '64Mi' } }],
      ['plain', { handler: 'runc' }],
      ['odd', { handler: 'none-such' }],
    ]),
    priorityClasses: new Map([
      ['high', { value: 1000, globalDefault: false, preemptionPolicy: 'Never' }],
      ['usual', { value: 7, globalDefault: true, preemptionPolicy: 'PreemptLowerPriority' }],
    ]),
    handlers: new Map([
      ['', { userNamespaces: false, recursiveReadOnlyMounts: false }],
      ['runc', { userNamespaces: false, recursiveReadOnlyMounts: false }],
      ['runsc', { userNamespaces: false, recursiveReadOnlyMounts: false }],
    ]),
  }

  it.each<[JsonObject, object]>([
    [{}, { runtimeHandler: '', priority: 7 }],
    [{ runtimeClassName: 'plain' }, { runtimeHandler: 'runc', priority: 7 }],
    [
      { runtimeClassName: 'gvisor', priorityClassName: 'high' },
      { runtimeHandler: 'runsc', overhead: { memory: '64Mi' }, priority: 1000 },
    ],
    [
      { runtimeClassName: 'gvisor', overhead: { memory: '65536Ki' } },
      { runtimeHandler: 'runsc', overhead: { memory: '64Mi' }, priority: 7 },
    ],
    [{ priorityClassName: 'system-node-critical' }, { runtimeHandler: '', priority: 2_000_001_000 }],
    [
      { priorityClassName: 'high', priority: 1000 },
      { runtimeHandler: '', priority: 1000 },
    ],
    [{ priority: 12 }, { runtimeHandler: '', priority: 12 }],
    [
      { priorityClassName: 'high', preemptionPolicy: 'Never' },
      { runtimeHandler: '', priority: 1000 },
    ],
    [{ preemptionPolicy: 'PreemptLowerPriority' }, { runtimeHandler: '', priority: 7 }],
  ])('of %j are %j', (spec, classes) => {
    expect(resolveClasses(podOf(spec).spec, facts)).toEqual({ kind: 'resolved', classes })
  })

  it.each<[JsonObject, string, reason?: string]>([
    [
      { runtimeClassName: 'kata' },
      'RuntimeClass "kata" not found; there are gvisor, odd, plain. Add a RuntimeClass document, or name it in runtimeClasses of the config',
    ],
    [
      { runtimeClassName: 'odd' },
      'Failed to create pod sandbox: the container runtime has no handler "none-such" of RuntimeClass "odd"; it has runc, runsc',
      'FailedCreatePodSandBox',
    ],
    [
      { overhead: { cpu: '1' } },
      'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    ],
    [
      { runtimeClassName: 'gvisor', overhead: { memory: '1Mi' } },
      "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ],
    [
      { priorityClassName: 'low' },
      'no PriorityClass with name low was found; there are high, system-cluster-critical, system-node-critical, usual',
    ],
    [
      { priorityClassName: 'high', priority: 1 },
      'the integer value of priority (1) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name',
    ],
    [
      { priorityClassName: 'high', preemptionPolicy: 'PreemptLowerPriority' },
      'the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name',
    ],
    [
      { preemptionPolicy: 'Never' },
      'the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name',
    ],
  ])('of %j are refused', (spec, message, reason = 'FailedCreate') => {
    expect(resolveClasses(podOf(spec).spec, facts)).toMatchObject({ kind: 'refused', reason, message })
  })

  it('trusts a runtime that doesn’t tell its handlers', () => {
    const resolved = resolveClasses(podOf({ runtimeClassName: 'odd' }).spec, {
      ...facts,
      handlers: undefined,
    })
    expect(resolved).toMatchObject({ kind: 'resolved' })
  })
})

describe('preflightPod', () => {
  const runtime: RuntimeFeatures = {
    runtime: 'containerd 1.6.20',
    handlers: new Map([['', { userNamespaces: false, recursiveReadOnlyMounts: false }]]),
    supplementalGroupsPolicy: false,
    imageVolumes: false,
    imageSubPaths: false,
    stopSignals: false,
  }
  const facts: PreflightFacts = {
    runtime,
    runtimeHandler: '',
    allowedUnsafeSysctls: ['net.core.*', 'kernel.msgmax'],
    appArmor: false,
  }
  const container = { name: 'a', image: 'b' }
  const imageVolume = { name: 'v', image: { reference: 'c' } }
  const imageMount = { name: 'v', mountPath: '/v' }
  const signalled: JsonObject = {
    os: { name: 'linux' },
    containers: [{ ...container, lifecycle: { stopSignal: 'SIGUSR1' } }],
  }
  const context = (securityContext: JsonObject): JsonObject => ({ securityContext })
  const sysctl = (name: string): JsonObject => context({ sysctls: [{ name, value: '1' }] })

  it.each<[JsonObject, Partial<PreflightFacts>, string | undefined]>([
    [{}, {}, undefined],
    [{}, { runtime: undefined }, undefined],
    [sysctl('net.ipv4.tcp_syncookies'), {}, undefined],
    [sysctl('net/ipv4/tcp_syncookies'), {}, undefined],
    [sysctl('net.core.somaxconn'), {}, undefined],
    [sysctl('kernel.msgmax'), {}, undefined],
    [{ os: { name: 'linux' } }, {}, undefined],
    [
      { os: { name: 'windows' } },
      {},
      "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS",
    ],
    [sysctl('kernel.msgmnb'), {}, 'SysctlForbidden: forbidden sysctl: "kernel.msgmnb" not allowlisted'],
    [
      sysctl('vm.swappiness'),
      { allowedUnsafeSysctls: ['vm.*'] },
      'SysctlForbidden: forbidden sysctl: "vm.swappiness" not allowlisted',
    ],
    [
      { ...sysctl('kernel.msgmax'), hostIPC: true },
      {},
      'SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowed with host IPC enabled',
    ],
    [
      { ...sysctl('net.ipv4.tcp_syncookies'), hostNetwork: true },
      {},
      'SysctlForbidden: forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled',
    ],
    [
      context({ appArmorProfile: { type: 'RuntimeDefault' } }),
      {},
      'AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host',
    ],
    [context({ appArmorProfile: { type: 'RuntimeDefault' } }), { appArmor: true }, undefined],
    [context({ appArmorProfile: { type: 'Unconfined' } }), {}, undefined],
    [context({ supplementalGroupsPolicy: 'Merge' }), {}, undefined],
    [
      context({ supplementalGroupsPolicy: 'Strict' }),
      {},
      'RuntimeUnsupported: not supported by this container runtime (containerd 1.6.20): spec.securityContext.supplementalGroupsPolicy: Strict needs containerd 2.0',
    ],
    [
      context({ supplementalGroupsPolicy: 'Strict' }),
      { runtime: { ...runtime, supplementalGroupsPolicy: true } },
      undefined,
    ],
    [
      context({ supplementalGroupsPolicy: 'Strict' }),
      { runtime: undefined },
      'RuntimeNotReady: waiting for the container runtime to say what it can do',
    ],
    [
      {
        volumes: [imageVolume],
        containers: [{ ...container, volumeMounts: [{ ...imageMount, subPath: 'etc' }] }],
      },
      { runtime: { ...runtime, runtime: 'containerd 2.1.9', imageVolumes: true } },
      'RuntimeUnsupported: not supported by this container runtime (containerd 2.1.9): volumeMounts.subPath of an image needs containerd 2.2',
    ],
    [
      {
        volumes: [imageVolume],
        containers: [{ ...container, volumeMounts: [{ ...imageMount, subPathExpr: 'a' }] }],
      },
      { runtime: { ...runtime, imageVolumes: true, imageSubPaths: true } },
      undefined,
    ],
    [
      { volumes: [imageVolume], containers: [{ ...container, volumeMounts: [imageMount] }] },
      { runtime: { ...runtime, imageVolumes: true } },
      undefined,
    ],
    [
      signalled,
      {},
      'RuntimeUnsupported: not supported by this container runtime (containerd 1.6.20): lifecycle.stopSignal needs containerd 2.3; the STOPSIGNAL of the image works everywhere',
    ],
    [signalled, { runtime: { ...runtime, stopSignals: true } }, undefined],
    [{ hostUsers: true }, {}, undefined],
    [
      { hostUsers: false },
      {},
      'RuntimeUnsupported: not supported by this container runtime (containerd 1.6.20): spec.hostUsers: false needs containerd 2.0 with runc 1.2 or crun 1.9',
    ],
    [
      { hostUsers: false },
      {
        runtimeHandler: 'new',
        runtime: {
          ...runtime,
          handlers: new Map([['new', { userNamespaces: true, recursiveReadOnlyMounts: false }]]),
        },
      },
      undefined,
    ],
    [
      {},
      { runtime: undefined, runtimeHandler: 'kata' },
      'RuntimeNotReady: waiting for the container runtime to say what it can do',
    ],
  ])('of %j with %j', (spec, other, expected) => {
    const refusal = preflightPod(podOf(spec).spec, { ...facts, ...other })
    expect(refusal === undefined ? undefined : `${refusal.reason}: ${refusal.message}`).toBe(expected)
  })

  it.each<[JsonObject, Partial<PreflightFacts>, 'forbidden' | readonly string[]]>([
    [sysctl('kernel.msgmnb'), {}, 'forbidden'],
    [context({ appArmorProfile: { type: 'RuntimeDefault' } }), {}, 'forbidden'],
    [context({ supplementalGroupsPolicy: 'Strict' }), {}, ['app', 'side']],
    [context({ supplementalGroupsPolicy: 'Strict' }), { runtime: undefined }, ['app', 'side']],
    [{ hostUsers: false }, {}, ['app', 'side']],
    [{ containers: [{ ...container, lifecycle: { stopSignal: 'SIGUSR1' } }], os: { name: 'linux' } }, {}, []],
    [
      {
        volumes: [imageVolume],
        containers: [
          { ...container, volumeMounts: [imageMount] },
          { name: 'side', image: 'b' },
        ],
      },
      {},
      ['a'],
    ],
    [
      {
        volumes: [imageVolume, { name: 'e', emptyDir: {} }],
        containers: [
          { ...container, volumeMounts: [{ ...imageMount, subPath: 'etc' }] },
          { name: 'whole', image: 'b', volumeMounts: [imageMount] },
          { name: 'other', image: 'b', volumeMounts: [{ name: 'e', mountPath: '/e', subPath: 'etc' }] },
        ],
      },
      { runtime: { ...runtime, imageVolumes: true } },
      ['a'],
    ],
    [
      {
        volumes: [{ name: 'e', emptyDir: {} }],
        containers: [
          {
            ...container,
            volumeMounts: [{ name: 'e', mountPath: '/e', readOnly: true, recursiveReadOnly: 'Enabled' }],
          },
          { name: 'side', image: 'b', volumeMounts: [{ name: 'e', mountPath: '/e' }] },
        ],
      },
      {},
      ['a'],
    ],
  ])('of %j with %j tells what may not go on or begin', (spec, other, expected) => {
    const two = [
      { name: 'app', image: 'a' },
      { name: 'side', image: 'a' },
    ]
    const refusal = preflightPod(podOf({ containers: two, ...spec }).spec, { ...facts, ...other })
    const told = refusal?.kind === 'blocked' ? refusal : undefined
    expect(told?.isForbidden === true ? 'forbidden' : told?.containers).toEqual(expected)
  })
})
