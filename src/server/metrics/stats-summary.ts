import type { PodObject } from '../../api/resource.ts'
import { formatTime } from '../../base/clock.ts'
import type {
  ContainerStats,
  ContainerUsage,
  FileSystemStats,
  MemoryStats,
  NodeStats,
  PodStats,
} from '../../pod/state/usage.ts'
import { pairPods, startedAtMs } from './resource-metrics.ts'

/** `/stats/summary` (`staging/src/k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go`, 1.36). */
export function statsSummary(
  nodeName: string,
  stats: NodeStats,
  pods: readonly PodObject[],
  usage: readonly ContainerUsage[],
): object {
  const { host } = stats
  const time = formatTime(stats.atMs)
  const fs = (of: FileSystemStats | undefined): object => (of === undefined ? {} : toFs(of, time))
  return {
    node: {
      nodeName,
      startTime: formatTime(host.bootedAtMs),
      cpu: { time, usageCoreNanoSeconds: Math.round(host.cpuNanoSeconds) },
      memory: {
        time,
        availableBytes: host.memoryAvailableBytes,
        usageBytes: host.memoryUsageBytes,
        workingSetBytes: host.memoryWorkingSetBytes,
      },
      swap: { time, swapUsageBytes: host.swapUsedBytes },
      fs: fs(host.rootFs),
      runtime: { imageFs: fs(host.imageFs), containerFs: fs(host.containerFs ?? host.imageFs) },
      rlimit: { time, maxpid: host.maxProcesses, curproc: host.processes },
    },
    pods: pairPods(pods, stats).map((pair) => toPod(pair, usage, time)),
  }
}

function toPod(
  { pod, stats }: { readonly pod: PodObject; readonly stats: PodStats },
  usage: readonly ContainerUsage[],
  time: string,
): object {
  const { name, namespace, uid } = pod.metadata
  const own = usage.filter((each) => each.uid === uid)
  const nanoCores = own.reduce((total, { cpuNanoCores }) => total + cpuNanoCores, 0)
  const interfaces = stats.interfaces.map((each) => toInterface(each))
  const [first] = interfaces
  return {
    podRef: { name, namespace, uid },
    startTime: pod.status.startTime,
    containers: stats.containers.map((container) =>
      toContainer(container, {
        startTime: startTimeOf(pod, container.id),
        nanoCores: own.find((each) => each.container === container.name)?.cpuNanoCores,
        time,
      }),
    ),
    cpu: {
      time,
      usageCoreNanoSeconds: stats.cpuNanoSeconds,
      ...(own.length === 0 ? {} : { usageNanoCores: nanoCores }),
    },
    memory: toMemory(stats.memory, time),
    ...(stats.swapBytes === undefined ? {} : { swap: { time, swapUsageBytes: stats.swapBytes } }),
    ...(first !== undefined && { network: { time, ...first, interfaces } }),
    ...(stats.processes === undefined ? {} : { process_stats: { process_count: stats.processes } }),
  }
}

function startTimeOf(pod: PodObject, id: string): string | undefined {
  const ms = startedAtMs(pod, id)
  return ms === undefined ? undefined : formatTime(ms)
}

function toContainer(
  { name, cpuNanoSeconds, memory, layer, swapBytes }: ContainerStats,
  about: {
    readonly startTime: string | undefined
    readonly nanoCores: number | undefined
    readonly time: string
  },
): object {
  const { startTime, nanoCores: usageNanoCores, time } = about
  return {
    name,
    startTime,
    cpu: { time, usageNanoCores, usageCoreNanoSeconds: cpuNanoSeconds },
    memory: toMemory(memory, time),
    rootfs: { time, usedBytes: layer.usedBytes, inodesUsed: layer.inodesUsed },
    ...(swapBytes === undefined ? {} : { swap: { time, swapUsageBytes: swapBytes } }),
  }
}

function toMemory(
  { usage, workingSet, rss, pageFaults, majorPageFaults }: MemoryStats,
  time: string,
): object {
  return { time, usageBytes: usage, workingSetBytes: workingSet, rssBytes: rss, pageFaults, majorPageFaults }
}

function toInterface(one: PodStats['interfaces'][number]): object {
  const { name, receivedBytes, receiveErrors, sentBytes, sendErrors } = one
  return { name, rxBytes: receivedBytes, rxErrors: receiveErrors, txBytes: sentBytes, txErrors: sendErrors }
}

function toFs(of: FileSystemStats, time: string): object {
  const { capacityBytes, availableBytes, inodes, inodesFree } = of
  const { usedBytes = capacityBytes - availableBytes } = of
  const knowsInodes = inodes !== undefined && inodesFree !== undefined
  const inodesUsed = of.inodesUsed ?? (knowsInodes ? inodes - inodesFree : undefined)
  return {
    time,
    capacityBytes,
    availableBytes,
    usedBytes,
    ...(knowsInodes ? { inodes, inodesFree } : {}),
    ...(inodesUsed === undefined ? {} : { inodesUsed }),
  }
}
