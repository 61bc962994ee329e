import { statSync } from 'node:fs'
import type { Clock } from '../base/clock.ts'
import type { PoddConfig } from '../config/options.ts'
import type { PodAssembly } from '../control/assemble.ts'
import { ClusterObjects } from '../control/serving/cluster-objects.ts'
import { diskBytes } from '../host/host-probe.ts'
import { readMachineInfo } from '../host/facts/host-info.ts'
import type { ApiObjects } from '../sources/written/api-objects.ts'

/** How long the runtime may take to list its images for the node's status. */
const imagesMs = 10_000

/** The node, namespaces and classes, from the daemon's parts. */
export function createClusterObjects(
  config: PoddConfig,
  { hostInfo, hostName, runtime, hostIps, pods, shown, allocatable }: PodAssembly,
  { written, clock }: { readonly written: ApiObjects; readonly clock: Clock },
): ClusterObjects {
  const { birthtimeMs, ctimeMs } = statSync(config.rootDir)
  const maxPods = String(config.maxPods)
  const hugePages = [...hostInfo.hugePagesBytes].map(([size, bytes]) => [`hugepages-${size}`, String(bytes)])
  return new ClusterObjects({
    shown,
    objects: pods.objects,
    machine: readMachineInfo(),
    hostName,
    runtimeClasses: new Map(Object.entries(config.runtimeClasses)),
    readNode() {
      const storage = String(diskBytes(config.rootDir) ?? 0)
      return {
        bootId: hostInfo.bootId,
        kernel: hostInfo.kernel,
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        addresses: hostIps(),
        podCidrs: config.podCidrs,
        kubeletPort: config.apiListen?.port ?? config.readOnlyPort,
        capacity: {
          ...Object.fromEntries(hugePages),
          cpu: String(hostInfo.cpus),
          'ephemeral-storage': storage,
          memory: `${Math.floor(hostInfo.memoryBytes / 1024)}Ki`,
          pods: maxPods,
        },
        allocatable: { ...allocatable, 'ephemeral-storage': storage, pods: maxPods },
        runtime: { name: runtime.name, version: runtime.version },
        runtimeProblem: pods.runtimeProblem ?? pods.networkProblem,
        pressure: pods.node.pressure?.conditions ?? [],
        draining: pods.node.drain?.isDraining === true,
      }
    },
    async listImages() {
      const patience = new AbortController()
      const timer = clock.startTimer(imagesMs, () => patience.abort())
      try {
        const images = await runtime.imageStore.listImages(patience.signal)
        return images.map(({ repoDigests, repoTags, size }) => ({
          names: [...repoDigests, ...repoTags],
          sizeBytes: size,
        }))
      } finally {
        timer.cancel()
      }
    },
    writtenNamespaces: () => written.list('Namespace').map(({ manifest }) => manifest),
    writtenNode: () => written.get({ kind: 'Node', namespace: '', name: hostName })?.manifest,
    createdMs: birthtimeMs > 0 ? birthtimeMs : ctimeMs,
    clock,
  })
}
