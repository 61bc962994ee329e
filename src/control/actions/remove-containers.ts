import { settleAll } from '../../base/waits.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import type { ContainerId, SandboxId } from '../../pod/values/ids.ts'
import { OutdatedView } from './interrupted.ts'
import type { PodContext } from './pod-context.ts'

/**
 * Removes containers with their logs and termination messages. These go first, since nothing else would remove them
 * (`pkg/kubelet/kuberuntime/kuberuntime_container.go` removeContainer, Kubernetes 1.36). Throws what a call threw.
 */
export async function removeContainers(ctx: PodContext, ids: readonly ContainerId[]): Promise<void> {
  await settleAll(ids.map((id) => removeContainer(ctx, id)))
}

export async function removeSandboxes(
  { host: { calls } }: Pick<PodContext, 'host'>,
  ids: readonly SandboxId[],
): Promise<void> {
  await settleAll(
    ids.map(async (podSandboxId) => {
      await calls.stopPodSandbox({ podSandboxId })
      await calls.removePodSandbox({ podSandboxId })
    }),
  )
}

async function removeContainer(ctx: PodContext, id: ContainerId): Promise<void> {
  const container = ctx.observed.containers.find((candidate) => candidate.id === id)
  const isCreated = container?.state === 'created' && container.cancelled === undefined
  const check = async (): Promise<void> => (isCreated ? checkUnstarted(ctx, id) : undefined)
  await check()
  if (container !== undefined) {
    // Those of a pod that ends go, or are kept, with the pod.
    if (ctx.record.ending === undefined) await ctx.host.logs.remove(ctx.ref, container)
    await ctx.host.volumes.removeTerminationLog(ctx.ref.uid, container.name, container.restartCount)
  }
  await removeWhenSettled(ctx, id, check)
}

type RemoveContext = Pick<PodContext, 'clock'> & {
  readonly host: { readonly calls: Pick<PodContext['host']['calls'], 'removeContainer' | 'containerStatus'> }
  readonly signals: Pick<PodContext['signals'], 'pass'>
}

/** How long a container that can't be removed yet is given to settle, 3.4 s in all. */
const settleDelaysMs = [10, 40, 160, 640, 2560]

/**
 * Removes a container. containerd refuses that for a moment after the container's exit, while it still reports the
 * container as running, and for a container whose start was cancelled, while it still starts it: what it reports after a
 * refusal tells whether to wait and try again. Throws what the last attempt threw.
 */
export async function removeWhenSettled(
  ctx: RemoveContext,
  containerId: ContainerId,
  beforeEach: () => Promise<void> = async () => {},
): Promise<void> {
  let hadExited = false
  for (const delayMs of settleDelaysMs) {
    await beforeEach()
    try {
      await ctx.host.calls.removeContainer({ containerId })
      return
    } catch (error) {
      if (!isCriError(error, 'RUNTIME_FAILED')) throw error
      const state = await readState(ctx, containerId)
      if (state === 'gone') return
      const mayChange = state === 'CONTAINER_RUNNING' || state === 'CONTAINER_CREATED'
      // One that has exited since the refusal may be removable now; a second refusal has another reason.
      if (!mayChange && (hadExited || state !== 'CONTAINER_EXITED')) throw error
      hadExited = !mayChange
      if (mayChange) await ctx.clock.sleep(delayMs, ctx.signals.pass)
    }
  }
  await beforeEach()
  await ctx.host.calls.removeContainer({ containerId })
}

async function readState({ host: { calls } }: RemoveContext, containerId: ContainerId) {
  try {
    const { status } = await calls.containerStatus({ containerId })
    return status?.state
  } catch (error) {
    if (isCriError(error, 'RUNTIME_NOT_FOUND')) return 'gone'
    throw error
  }
}

/** Throws OutdatedView where it was started after all: the runtime would kill what runs in order to remove it. */
async function checkUnstarted(ctx: RemoveContext, containerId: ContainerId): Promise<void> {
  const state = await readState(ctx, containerId)
  if (state !== 'gone' && state !== 'CONTAINER_CREATED') throw new OutdatedView()
}
