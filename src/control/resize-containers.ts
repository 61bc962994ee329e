import { PoddError, errorMessage } from '../base/errors.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import type { PodAction } from '../decide/pod-action.ts'
import { lowersMemoryLimit, resizeHold } from '../decide/resize.ts'
import type { ContainerResize } from '../decide/resize.ts'
import { quantityValue } from '../pod/quantity.ts'
import { containerResources } from '../translate/resources.ts'
import type { PodContext } from './pod-context.ts'
import { recordEvent } from './pod-context.ts'

/** How long a resize that failed isn't tried again, unless the manifest changes. */
const retryMs = 10_000

/**
 * Gives running containers other resources: the pod's cgroup first where it grows, then the containers,
 * then the pod's cgroup where it shrinks. A memory limit below what is in use is refused before anything
 * is touched (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` doPodResizeAction and
 * validateMemoryResizeAction, Kubernetes 1.36). A failure becomes a hold; what was done stays done.
 */
export async function resizeContainers(
  ctx: PodContext,
  { resizes }: Extract<PodAction, { kind: 'resize-containers' }>,
): Promise<void> {
  const { host, ref } = ctx
  try {
    for (const resize of resizes) await checkUsage(ctx, resize)
    await host.cgroups.ensure(ref.uid, ctx.pod, ctx.appliedPod())
    for (const resize of resizes) {
      await updateContainer(ctx, resize)
      ctx.noteResized(resize)
    }
    // Containers that were restarted for it have what the pod asks for, though they weren't seen yet.
    await host.cgroups.ensure(ref.uid, resizes.length === 0 ? ctx.pod : ctx.appliedPod())
  } catch (error) {
    const message = errorMessage(error)
    recordEvent(ctx, { type: 'Warning', reason: 'ResizeError', message: `Pod resize error: ${message}` })
    ctx.hold(resizeHold, {
      untilMs: ctx.clock.wallMs() + retryMs,
      waiting: { reason: 'Error', message },
    })
    return
  }
  if (resizes.length === 0) return
  const names = resizes.map(({ spec }) => spec.name).join(', ')
  recordEvent(ctx, { type: 'Normal', reason: 'ResizeCompleted', message: `Pod resize completed: ${names}` })
}

async function checkUsage(ctx: PodContext, resize: ContainerResize): Promise<void> {
  if (!lowersMemoryLimit(resize)) return
  const limitBytes = quantityValue(resize.to.limits['memory'] ?? '0')
  const { stats } = await ctx.host.calls.containerStats({ containerId: resize.container.id })
  const usedBytes = stats?.memory?.usageBytes?.value ?? stats?.memory?.workingSetBytes?.value
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
