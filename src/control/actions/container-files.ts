import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { podResolvConf } from '../../translate/network/dns.ts'
import type { HostVolume } from '../../translate/volumes/mounts.ts'
import type { PodContext } from './pod-context.ts'

/** What a container has on the host that its pod's addresses don't show in. */
export interface ContainerFiles {
  /** Which start of the container this is. */
  readonly restartCount: number
  readonly volumes: ReadonlyMap<string, HostVolume>
  readonly resolvConfPath: string
  readonly terminationLogPath: string
}

/**
 * Makes them.
 * @param volumes those of the pod, where they were prepared a moment ago
 */
export async function prepareContainerFiles(
  ctx: PodContext,
  { spec, restartCount: knownCount }: Extract<PodAction, { kind: 'start-container' }>,
  volumes?: ReadonlyMap<string, HostVolume>,
): Promise<ContainerFiles> {
  const { pod, ref, host } = ctx
  const restartCount = await prepareLog(ctx, spec, knownCount)
  const [prepared, resolvConfPath, terminationLogPath] = await Promise.all([
    volumes ?? host.volumes.prepare({ uid: ref.uid, pod, source: ctx.record.source }),
    host.readResolver().then((conf) => host.volumes.writeResolvConf(ref.uid, podResolvConf(pod, conf))),
    host.volumes.makeTerminationLog(ref.uid, spec.name, restartCount),
  ])
  return { restartCount, volumes: prepared, resolvConfPath, terminationLogPath }
}

/**
 * Makes the directory of a container's logs. Where neither record nor runtime know of a container before it and yet there
 * are logs of one, it counts on from the newest of them (`pkg/kubelet/kuberuntime/kuberuntime_container.go`
 * calcRestartCountByLogDir, Kubernetes 1.36).
 */
async function prepareLog(ctx: PodContext, { name }: ContainerSpec, knownCount: number): Promise<number> {
  const { logs } = ctx.host
  const isNew = await logs.prepare(ctx.ref, name)
  const isKnown = knownCount > 0 || ctx.observed.containers.some((container) => container.name === name)
  if (isNew || isKnown) return knownCount
  const newest = await logs.newestInstance(ctx.ref, name)
  return newest === undefined ? 0 : newest + 1
}
