import { PoddError, errorMessage } from '../../base/errors.ts'
import { sandboxHold } from '../../decide/plan/hold.ts'
import type { PodContext } from './pod-context.ts'
import { recordEvent } from './pod-context.ts'

/** After a failed attempt; what comes meanwhile (an object that was missing) ends the wait. */
const retryMs = 10_000

/**
 * Makes the pod's volumes ready before its sandbox is made. Returns false, with the kubelet's event and a
 * hold, where one can't be (`pkg/kubelet/kubelet.go` SyncPod, WaitForAttachAndMount, 1.36).
 */
export async function mountVolumes(ctx: PodContext): Promise<boolean> {
  try {
    await ctx.host.volumes.prepare({
      uid: ctx.ref.uid,
      pod: ctx.pod,
      source: ctx.source,
      warn: (message) => recordEvent(ctx, { type: 'Warning', reason: 'VolumeOwnershipNotChanged', message }),
    })
    return true
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    const message = errorMessage(error)
    recordEvent(ctx, { type: 'Warning', reason: 'FailedMount', message })
    ctx.hold(sandboxHold, {
      untilMs: ctx.clock.wallMs() + retryMs,
      waiting: { reason: 'ContainerCreating', message },
    })
    return false
  }
}
