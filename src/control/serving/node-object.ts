import type { NodeCondition, NodeObject } from '../../api/cluster-objects.ts'
import { kubernetesVersion, poddVersion } from '../../api/resource.ts'
import { formatTime } from '../../base/clock.ts'
import type { PressureCondition } from '../../decide/node/judge-pressure.ts'
import type { OwnNode } from '../../decide/writing/own-node.ts'
import type { MachineInfo } from '../../host/facts/host-info.ts'

/** The facts about this host. */
export interface NodeFacts {
  readonly name: string
  readonly uid: string
  /** When podd was set up on this host, in wall milliseconds. */
  readonly createdMs: number
  readonly machine: MachineInfo
  readonly bootId: string
  readonly kernel: string
  readonly architecture: string
  readonly addresses: readonly string[]
  readonly podCidrs: readonly string[]
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  readonly runtime: { readonly name: string; readonly version: string | undefined }
  /** Why the runtime can't be used, or has no network for pods; undefined while it can be used for all. */
  readonly runtimeProblem: string | undefined
  /** Where a kubelet's paths are served over TCP; 0: nowhere. */
  readonly kubeletPort: number
  readonly pressure: readonly PressureCondition[]
  readonly draining: boolean
  readonly images: readonly { readonly names: readonly string[]; readonly sizeBytes: number }[]
  /** What clients have written of it. */
  readonly own: OwnNode
}

/** `pkg/kubelet/apis/config/v1beta1/defaults.go`, NodeStatusMaxImages, 1.36. */
const mostImages = 50
/** The heartbeat of an unchanged condition is renewed after this (NodeStatusReportFrequency, there). */
const heartbeatMs = 300_000

const pressures: readonly (readonly [PressureCondition, about: string, has: string])[] = [
  ['MemoryPressure', 'Memory', 'memory'],
  ['DiskPressure', 'Disk', 'disk'],
  ['PIDPressure', 'PID', 'PID'],
]

/**
 * The host as a Node, in the words of `pkg/kubelet/nodestatus/setters.go`, 1.36.
 * @param before as it was last shown: conditions that still hold keep their times
 */
export function toNodeObject(facts: NodeFacts, nowMs: number, before: NodeObject | undefined): NodeObject {
  const { capacity, allocatable, addresses, machine, runtime, podCidrs, own } = facts
  const [podCIDR] = podCidrs
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: facts.name,
      uid: facts.uid,
      creationTimestamp: formatTime(facts.createdMs),
      labels: {
        ...own.labels,
        'kubernetes.io/arch': facts.architecture,
        'kubernetes.io/hostname': facts.name,
        'kubernetes.io/os': 'linux',
      },
      ...(Object.keys(own.annotations).length > 0 && { annotations: own.annotations }),
    },
    spec: {
      ...(facts.draining && { unschedulable: true }),
      ...(podCIDR !== undefined && { podCIDR, podCIDRs: podCidrs }),
    },
    status: {
      capacity: { ...own.capacity, ...capacity },
      allocatable: { ...own.capacity, ...allocatable },
      conditions: conditionsOf(facts, nowMs, before?.status.conditions ?? []),
      addresses: [
        ...addresses.map((address) => ({ type: 'InternalIP', address }) as const),
        { type: 'Hostname', address: facts.name },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: facts.kubeletPort } },
      nodeInfo: {
        machineID: machine.machineId,
        systemUUID: machine.systemUuid,
        bootID: facts.bootId,
        kernelVersion: facts.kernel,
        osImage: machine.osImage,
        containerRuntimeVersion: runtime.version === undefined ? '' : `${runtime.name}://${runtime.version}`,
        kubeletVersion: `v${kubernetesVersion}.0+podd-${poddVersion}`,
        kubeProxyVersion: '',
        operatingSystem: 'linux',
        architecture: facts.architecture,
      },
      images: facts.images.toSorted((a, b) => b.sizeBytes - a.sizeBytes).slice(0, mostImages),
    },
  }
}

function conditionsOf(
  { pressure, runtimeProblem }: NodeFacts,
  nowMs: number,
  before: readonly NodeCondition[],
): readonly NodeCondition[] {
  const lastHeartbeatTime = formatTime(nowMs - (nowMs % heartbeatMs))
  const condition = (
    type: NodeCondition['type'],
    holds: boolean,
    words: Pick<NodeCondition, 'reason' | 'message'>,
  ): NodeCondition => {
    const status = holds ? 'True' : 'False'
    const known = before.find((other) => other.type === type && other.status === status)
    const lastTransitionTime = known?.lastTransitionTime ?? formatTime(nowMs)
    return { type, status, ...words, lastHeartbeatTime, lastTransitionTime }
  }
  return [
    ...pressures.map(([type, about, has]) =>
      pressure.includes(type)
        ? condition(type, true, {
            reason: `KubeletHasInsufficient${about}`,
            message: `podd has insufficient ${has} available`,
          })
        : condition(type, false, {
            reason: type === 'DiskPressure' ? 'KubeletHasNoDiskPressure' : `KubeletHasSufficient${about}`,
            message:
              type === 'DiskPressure' ? 'podd has no disk pressure' : `podd has sufficient ${has} available`,
          }),
    ),
    runtimeProblem === undefined
      ? condition('Ready', true, { reason: 'KubeletReady', message: 'podd is posting ready status' })
      : condition('Ready', false, { reason: 'KubeletNotReady', message: runtimeProblem }),
  ]
}
