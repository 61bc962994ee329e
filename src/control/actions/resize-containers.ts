import { PoddError, errorMessage } from '../../base/errors.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import { resizeHold } from '../../decide/plan/backoff.ts'
import { lowersMemoryLimit, podLevelResources, withPodLevel } from '../../decide/plan/resize.ts'
import type { ContainerResize } from '../../decide/plan/resize.ts'
import type { ResourceLists } from '../../pod/schema/pod-resources.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import { quantityValue } from '../../pod/values/quantity.ts'
import { containerResources } from '../../translate/resources.ts'
import type { ActionOutcome } from './action-outcome.ts'
import { appliedPod } from '../../decide/plan/resize.ts'
import type { PodContext } from './pod-context.ts'
import { recordEvent } from './pod-context.ts'

/** How long a resize that failed isn't tried again, unless the manifest changes. */
const retryMs = 10_000

/**
 * Gives running containers, and the pod itself, other resources: the pod's cgroup first where it grows, then the containers,
 * then the pod's cgroup where it shrinks. A memory limit below what is in use is refused before anything
 * is touched (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` doPodResizeAction and
 * validateMemoryResizeAction, Kubernetes 1.36). A failure becomes a hold; what was done stays done.
 */
export async function resizeContainers(
  ctx: PodContext,
  { resizes, podLevel }: Extract<PodAction, { kind: 'resize-containers' }>,
): Promise<readonly ActionOutcome[]> {
  const { host, ref } = ctx
  const isLast = resizes.length === 0 && !podLevel
  const done: ContainerResize[] = []
  const resized = (podResources?: ResourceLists): ActionOutcome => ({
    kind: 'resized',
    resizes: done,
    podResources,
  })
  try {
    if (podLevel) await checkPodUsage(ctx)
    for (const resize of resizes) await checkUsage(ctx, resize)
    await host.cgroups.ensure(ref.uid, ctx.pod, appliedPod(ctx))
    for (const resize of resizes) {
      await updateContainer(ctx, resize)
      done.push(resize)
    }
    // Containers that were restarted for it have what the pod asks for, though they weren't seen yet.
    await host.cgroups.ensure(ref.uid, isLast ? ctx.pod : withPodLevel(appliedPod(ctx, done), ctx.pod))
  } catch (error) {
    const message = errorMessage(error)
    recordEvent(ctx, { type: 'Warning', reason: 'ResizeError', message: `Pod resize error: ${message}` })
    const hold = { untilMs: ctx.clock.wallMs() + retryMs, waiting: { reason: 'Error', message } }
    return [resized(), { kind: 'held', key: resizeHold, hold }]
  }
  if (isLast) return []
  const what = [...(podLevel ? ['the pod itself'] : []), ...resizes.map(({ spec }) => spec.name)]
  const message = `Pod resize completed: ${what.join(', ')}`
  recordEvent(ctx, { type: 'Normal', reason: 'ResizeCompleted', message })
  return [resized(podLevel ? podLevelResources(ctx.pod.spec) : undefined)]
}

/** All of a pod's containers use less together than the limit that the pod is to have. */
async function checkPodUsage(ctx: PodContext): Promise<void> {
  const [from, to] = [appliedPod(ctx), ctx.pod].map(({ spec }) => podLevelResources(spec))
  if (from === undefined || to === undefined || !lowersMemoryLimit({ from, to })) return
  const limitBytes = quantityValue(to.limits['memory'] ?? '0')
  const running = ctx.observed.containers.filter(({ state }) => state === 'running')
  const used = await Promise.all(running.map(({ id }) => memoryUsage(ctx, id)))
  const usedBytes = used.reduce((sum: number, bytes) => sum + (bytes ?? 0), 0)
  if (usedBytes < limitBytes) return
  throw new PoddError(
    'RESIZE_BELOW_USAGE',
    `attempting to set pod memory limit (${limitBytes}) below current usage (${usedBytes})`,
  )
}

async function memoryUsage(ctx: PodContext, containerId: ContainerId): Promise<number | undefined> {
  const { stats } = await ctx.host.calls.containerStats({ containerId })
  return stats?.memory?.usageBytes?.value ?? stats?.memory?.workingSetBytes?.value
}

async function checkUsage(ctx: PodContext, resize: ContainerResize): Promise<void> {
  if (!lowersMemoryLimit(resize)) return
  const limitBytes = quantityValue(resize.to.limits['memory'] ?? '0')
  const usedBytes = await memoryUsage(ctx, resize.container.id)
  if (usedBytes === undefined || usedBytes < limitBytes) return
  throw new PoddError(
    'RESIZE_BELOW_USAGE',
    `attempting to set container "${resize.spec.name}" memory limit (${limitBytes}) below current usage (${usedBytes})`,
  )
}

async function updateContainer(ctx: PodContext, { container, spec }: ContainerResize): Promise<void> {
  const wanted = containerResources(ctx.pod.spec, spec, ctx.host.resources)
  // Only what a resize is about: the rest stays as the container was made with.
  const linux: cri.LinuxContainerResourcesInput = {
    cpuShares: wanted.cpuShares,
    cpuPeriod: wanted.cpuPeriod,
    cpuQuota: wanted.cpuQuota,
    memoryLimitInBytes: wanted.memoryLimitInBytes,
    memorySwapLimitInBytes: wanted.memorySwapLimitInBytes,
  }
  await ctx.host.calls.updateContainerResources({ containerId: container.id, linux })
}
