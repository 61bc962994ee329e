import { PoddError, errorMessage } from '../../base/errors.ts'
import { sandboxHold } from '../../decide/plan/hold.ts'
import type { HostVolume } from '../../translate/volumes/mounts.ts'
import type { ActionOutcome } from './action-outcome.ts'
import type { PodContext } from './pod-context.ts'
import { recordEvent } from './pod-context.ts'

/** After a failed attempt; what comes meanwhile (an object that was missing) ends the wait. */
const retryMs = 10_000

/** Makes the pod's volumes. */
export function prepareVolumes(ctx: PodContext): Promise<ReadonlyMap<string, HostVolume>> {
  return ctx.host.volumes.prepare({
    uid: ctx.ref.uid,
    pod: ctx.pod,
    source: ctx.record.source,
    warn: (message) => recordEvent(ctx, { type: 'Warning', reason: 'VolumeOwnershipNotChanged', message }),
  })
}

/**
 * Waits for the pod's volumes, which have to be ready before its sandbox is made. Returns a hold, and records the kubelet's event, where one
 * can't be (`pkg/kubelet/kubelet.go` SyncPod, WaitForAttachAndMount, 1.36).
 */
export async function mountVolumes(
  ctx: PodContext,
  volumes: ReturnType<typeof prepareVolumes>,
): Promise<ActionOutcome | undefined> {
  try {
    await volumes
    return undefined
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    const message = errorMessage(error)
    recordEvent(ctx, { type: 'Warning', reason: 'FailedMount', message })
    const untilMs = ctx.clock.wallMs() + retryMs
    return {
      kind: 'held',
      key: sandboxHold,
      hold: { untilMs, waiting: { reason: 'ContainerCreating', message } },
    }
  }
}
