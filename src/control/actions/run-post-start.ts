import { isCriError } from '../../runtime/cri-runtime.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodContext, SandboxInUse } from './pod-context.ts'
import { recordEvent } from './pod-context.ts'
import { stopOneContainer } from './stop-containers.ts'

/** How soon a postStart hook is called again that the runtime's end broke off. */
const hookRetryMs = 1000

interface StartedContainer {
  readonly spec: ContainerSpec
  readonly id: ContainerId
}

/** Whether the runtime keeps the container's postStart hook over podd's end: then it has to be on record before the start. */
export function isPostStartHeld({ host }: Pick<PodContext, 'host'>, { lifecycle }: ContainerSpec): boolean {
  const handler = lifecycle?.postStart
  return handler !== undefined && host.hooks.isHeld?.(handler) === true
}

/** Runs the container's postStart hook; one that fails ends the container. Throws what the pass is aborted with. */
export async function runPostStart(
  ctx: PodContext,
  sandbox: SandboxInUse,
  { spec, id }: StartedContainer,
): Promise<void> {
  const handler = spec.lifecycle?.postStart
  if (handler === undefined) return
  ctx.pass.lookSoon()
  const run = (): Promise<void> =>
    ctx.host.hooks.run({
      pod: ctx.ref,
      handler,
      hook: 'postStart',
      containerId: id,
      podIp: sandbox.ips[0],
      ports: spec.ports,
      // It takes as long as it takes, as in Kubernetes.
      timeoutMs: undefined,
      signal: ctx.signals.pass,
    })
  try {
    await repeatWhileAway(ctx, run)
    await ctx.journal.forgetPostStart(id)
  } catch (error) {
    if (ctx.signals.pass.aborted) throw ctx.signals.pass.reason
    // The hook's output may hold secrets: the event says only that it failed.
    ctx.logger.warn(
      { pod: ctx.ref.name, uid: ctx.ref.uid, container: spec.name, err: error },
      'postStart hook failed',
    )
    recordEvent(ctx, {
      type: 'Warning',
      reason: 'FailedPostStartHook',
      message: 'PostStartHook failed',
      container: spec.name,
    })
    await stopOneContainer(ctx, {
      id,
      name: spec.name,
      graceSeconds: ctx.pod.spec.terminationGracePeriodSeconds,
      message: `Container ${spec.name} failed post-start hook`,
      preStop: spec.lifecycle?.preStop,
      ports: spec.ports,
    })
    await ctx.journal.forgetPostStart(id)
  }
}

/** The same for a container that an earlier podd started. */
export async function finishPostStart(
  ctx: PodContext,
  { container: { id }, spec }: Extract<PodAction, { kind: 'finish-post-start' }>,
  sandbox: SandboxInUse,
): Promise<void> {
  try {
    // It was another manifest's, or another runtime's: it counts as done.
    if (!isPostStartHeld(ctx, spec)) return await ctx.journal.forgetPostStart(id)
    await runPostStart(ctx, sandbox, { spec, id })
  } finally {
    ctx.inFlight.postStarts.delete(id)
  }
}

/** A hook is called at least once: a runtime that went away in the middle says nothing of the container. */
async function repeatWhileAway(ctx: PodContext, run: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await run()
    } catch (error) {
      if (!isCriError(error, 'RUNTIME_UNAVAILABLE')) throw error
      await ctx.clock.sleep(hookRetryMs, ctx.signals.pass)
    }
  }
}
