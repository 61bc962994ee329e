import { errorMessage } from '../../base/errors.ts'
import { settleAll } from '../../base/waits.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import {
  computeTerminationWaves,
  endingDeadlineMs,
  endingOverrideSeconds,
  stopTimeout,
} from '../../decide/plan/ending.ts'
import type { ContainerId, SandboxId } from '../../pod/values/ids.ts'
import type { ObservedContainer } from '../../pod/state/observed.ts'
import type { ContainerSpec, LifecycleHandler } from '../../pod/schema/container-schema.ts'
import { readContainerFacts } from '../../translate/identity.ts'
import { HookError } from './lifecycle-hooks.ts'
import type { HookInFlight, PodContext } from './pod-context.ts'
import { recordEvent } from './pod-context.ts'

interface StopRequest {
  readonly id: ContainerId
  readonly name: string
  readonly graceSeconds: number
  /** See stopTimeout. */
  readonly overrideSeconds?: number | undefined
  readonly message: string
  readonly preStop: LifecycleHandler | undefined
  readonly ports?: ContainerSpec['ports']
  /** Never rejects: when those have ended that end before this one, or one of them couldn't be stopped. Waited for after preStop, within the grace. */
  readonly turn?: Promise<'come' | 'lost'>
}

/**
 * How long StopContainer may take beyond its timeout where another container of the pod was not stopped in time: one shim
 * holds them all.
 */
const stuckContainerMs = 10_000
/** How long StopPodSandbox may take after that, which also takes down the network. */
const stuckSandboxMs = 30_000
/** How long the runtime is given to notice what podd has killed. */
const noticeMs = 15_000

/**
 * preStop inside the grace, then its turn to end, then StopContainer with what is left of the grace, at least 2 s
 * (`pkg/kubelet/kuberuntime/kuberuntime_container.go` killContainer, Kubernetes 1.36).
 */
export async function stopOneContainer(
  ctx: PodContext,
  request: StopRequest,
  isStuck: () => boolean = () => false,
): Promise<void> {
  const { clock } = ctx
  const beganMs = clock.monotonicMs()
  recordEvent(ctx, { type: 'Normal', reason: 'Killing', message: request.message, container: request.name })
  const leftMs = (): number => request.graceSeconds * 1000 - (clock.monotonicMs() - beganMs)
  const { preStop, turn } = request
  if (preStop !== undefined && request.graceSeconds > 0) {
    const begun = ctx.inFlight.preStops.get(request.id) ?? (await beginPreStop(ctx, request, preStop))
    if (begun !== undefined) await waitInGrace(ctx, leftMs(), begun.ended)
  }
  // What keeps it from its turn fails the pass, and the next one stops it in its turn.
  if (turn !== undefined && (await waitInGrace(ctx, leftMs(), turn)) === 'lost') return
  const timeout = stopTimeout(leftMs(), request.overrideSeconds)
  const deadline = isStuck() ? { deadlineMs: timeout * 1000 + stuckContainerMs } : {}
  const signal = ctx.signals.pass
  await ctx.host.calls.stopContainer({ containerId: request.id, timeout }, { signal, ...deadline })
}

/** Undefined where time is up first. Rejects with the reason of the pass's abort, or as what it waits for. */
async function waitInGrace<T>(
  { clock, signals: { pass: signal } }: PodContext,
  delayMs: number,
  event: Promise<T>,
): Promise<T | undefined> {
  if (delayMs <= 0) return undefined
  const over = new AbortController()
  const wait = clock.sleep(delayMs, AbortSignal.any([signal, over.signal]))
  const timeUp = wait.then(nothing, nothing)
  try {
    return await Promise.race([event, timeUp])
  } finally {
    over.abort()
    signal.throwIfAborted()
  }
}

/**
 * Begins a container's preStop hook, once in its life: it goes on when this pass is interrupted, and the next one waits
 * for it, as the next podd does where the runtime holds it. Undefined where it was begun before.
 */
async function beginPreStop(
  ctx: PodContext,
  request: StopRequest,
  handler: LifecycleHandler,
): Promise<HookInFlight | undefined> {
  const { id } = request
  const isHeld = ctx.host.hooks.isHeld?.(handler) === true
  if (!(await ctx.journal.claimPreStop(id, isHeld))) return undefined
  const ended = runPreStop(ctx, request, handler).finally(() => ctx.inFlight.preStops.delete(id))
  // Whoever waits for it gets the error.
  ended.catch(() => undefined)
  // Not the promise itself: whoever awaits this function would wait for the hook.
  const begun = { ended }
  ctx.inFlight.preStops.set(id, begun)
  return begun
}

/** Rejects where the runtime was not there to begin it: it is due still then. */
async function runPreStop(ctx: PodContext, request: StopRequest, handler: LifecycleHandler): Promise<void> {
  let isSent = false
  try {
    await ctx.host.hooks.run({
      pod: ctx.ref,
      handler,
      hook: 'preStop',
      containerId: request.id,
      podIp:
        ctx.observed.sandboxes[0]?.ips[0] ?? (ctx.pod.spec.hostNetwork ? ctx.host.hostIps()[0] : undefined),
      ports: request.ports ?? [],
      timeoutMs: request.graceSeconds * 1000,
      signal: ctx.signals.life,
      onSent: () => {
        isSent = true
      },
    })
  } catch (error) {
    if (ctx.signals.life.aborted) return
    if (!isSent && !(error instanceof HookError)) {
      await ctx.journal.releasePreStop(request.id)
      throw error
    }
    ctx.logger.warn(
      { pod: ctx.ref.name, uid: ctx.ref.uid, container: request.name, err: error },
      'preStop hook failed',
    )
    const message = 'PreStopHook failed'
    recordEvent(ctx, { type: 'Warning', reason: 'FailedPreStopHook', message, container: request.name })
  }
}

/** Stops one container that is to be replaced or has failed its probe. */
export async function stopContainer(
  ctx: PodContext,
  { container, cause, message }: Extract<PodAction, { kind: 'stop-container' }>,
): Promise<void> {
  const spec = findSpec(ctx, container.name)
  const probe =
    cause === 'liveness' ? spec?.livenessProbe : cause === 'startup' ? spec?.startupProbe : undefined
  const graceSeconds = probe?.terminationGracePeriodSeconds ?? ctx.pod.spec.terminationGracePeriodSeconds
  const request = { ...stopRequest(ctx, container, graceSeconds), message }
  // RestartAllContainers stops containers without grace period and preStop (KEP-5532).
  if (cause === 'restart-all')
    return stopOrForce(ctx, container, {
      ...request,
      graceSeconds: 0,
      overrideSeconds: 0,
      preStop: undefined,
    })
  await stopOrForce(ctx, container, request)
}

/** Where the runtime doesn't stop the container in time, by force. */
async function stopOrForce(
  ctx: PodContext,
  { sandboxId }: ObservedContainer,
  request: StopRequest,
): Promise<void> {
  try {
    await stopOneContainer(ctx, request)
  } catch (error) {
    if (!isCriError(error, 'RUNTIME_TIMEOUT')) throw error
    recordNotStopped(ctx, request.name, error)
    const stop = { containerId: request.id, timeout: 0 }
    await stopByForce(ctx, { sandboxId, ids: [request.id] }, () =>
      ctx.host.calls.stopContainer(stop, { signal: ctx.signals.pass, deadlineMs: noticeMs }),
    )
  }
}

/**
 * Stops all containers of the pod by the ending's deadline or within the pod's grace, and then its sandboxes. All preStop
 * hooks run at once; then they end in waves, sidecars last. A container without grace left does not wait for the others
 * (`pkg/kubelet/kuberuntime/kuberuntime_container.go` killContainersWithSyncResult, Kubernetes 1.36).
 *
 * The sandboxes are stopped whether or not the containers could be, which stops them by force. Should that fail too,
 * their processes are killed by their cgroups, and then the shim that holds them.
 */
export async function stopPod(ctx: PodContext): Promise<void> {
  const nowMs = ctx.clock.wallMs()
  const { ending } = ctx.record
  const deadlineMs =
    ending === undefined
      ? nowMs + ctx.pod.spec.terminationGracePeriodSeconds * 1000
      : endingDeadlineMs(ending, nowMs)
  const graceSeconds = Math.max(0, Math.ceil((deadlineMs - nowMs) / 1000))
  const overrideSeconds = ending === undefined ? undefined : endingOverrideSeconds(ending)
  const waves: Promise<unknown>[] = []
  const failed: FailedStop[] = []
  const isStuck = (): boolean => failed.some(isSilent)
  const stop = async (container: ObservedContainer, turn: Pick<StopRequest, 'turn'>): Promise<void> => {
    const request = { ...stopRequest(ctx, container, graceSeconds), overrideSeconds, ...turn }
    try {
      await stopOneContainer(ctx, request, isStuck)
    } catch (error) {
      ctx.signals.pass.throwIfAborted()
      // One that fails while there is time is tried again, and the sidecars behind it wait; after that they go on in their order.
      const isOver = ending === undefined || ctx.clock.wallMs() >= deadlineMs
      if (!isSilent({ error }) && !(isOver && isCriError(error, 'RUNTIME_FAILED'))) throw error
      failed.push({ container, error })
      recordNotStopped(ctx, container.name, error)
    }
  }
  for (const wave of computeTerminationWaves(ctx.observed, ctx.pod)) {
    const before = waves.length === 0 ? {} : { turn: settleAll(waves).then(come, lose) }
    waves.push(settleAll(wave.map((container) => stop(container, before))))
  }
  await settleAll(waves)
  if (failed.length === 0) ctx.pass.onContainersStopped()
  await settleAll(ctx.observed.sandboxes.map(({ id }) => stopSandbox(ctx, id, failed)))
}

/** A container that the runtime did not stop. */
interface FailedStop {
  readonly container: ObservedContainer
  readonly error: unknown
}

const isSilent = ({ error }: Pick<FailedStop, 'error'>): boolean => isCriError(error, 'RUNTIME_TIMEOUT')

async function stopSandbox(
  ctx: PodContext,
  sandboxId: SandboxId,
  failed: readonly FailedStop[],
): Promise<void> {
  const stop = (deadlineMs?: number): Promise<unknown> =>
    ctx.host.calls.stopPodSandbox(
      { podSandboxId: sandboxId },
      deadlineMs === undefined ? undefined : { deadlineMs },
    )
  const ofIt = failed.filter(({ container }) => container.sandboxId === sandboxId)
  try {
    await stop(ofIt.some(isSilent) ? stuckSandboxMs : undefined)
  } catch (error) {
    const isStuck = isSilent({ error })
    if (!isStuck && (ofIt.length === 0 || !isCriError(error, 'RUNTIME_FAILED'))) throw error
    const ids = ofIt.map(({ container }) => container.id)
    await stopByForce(ctx, { sandboxId, ids: isStuck ? [...ids, sandboxId] : ids }, () => stop(noticeMs))
  }
}

function recordNotStopped(ctx: PodContext, container: string, error: unknown): void {
  const message = `The runtime has not stopped container ${container}: ${errorMessage(error)}`
  recordEvent(ctx, { type: 'Warning', reason: 'FailedKillPod', message, container })
}

/**
 * For what the runtime could not stop: kills the processes of these containers (or of the sandbox) by their cgroups and
 * stops again; where the runtime still gets no answer, kills the shim that doesn't give one. Throws what `stop` throws.
 */
async function stopByForce(
  ctx: PodContext,
  { sandboxId, ids }: { readonly sandboxId: SandboxId; readonly ids: readonly string[] },
  stop: () => Promise<unknown>,
): Promise<void> {
  // It is the runtime that must answer: one that hangs as a whole is another matter.
  await ctx.host.calls.podSandboxStatus({ podSandboxId: sandboxId }, { deadlineMs: noticeMs })
  ctx.pass.checkSeen()
  const tell = (message: string): void => recordEvent(ctx, { type: 'Warning', reason: 'Killing', message })
  const killed = await ctx.host.cgroups.killProcesses(ctx.ref.uid, ctx.pod, ids)
  if (killed > 0)
    tell(`Killed ${killed} process${killed === 1 ? '' : 'es'} of the pod by its cgroup: the runtime did not`)
  try {
    await stop()
  } catch (error) {
    if (!isCriError(error, 'RUNTIME_TIMEOUT')) throw error
    const pid = ctx.host.killShim(sandboxId)
    if (pid === undefined) throw error
    tell(`Killed the shim of the pod (process ${pid}): it has given the runtime no answer`)
    await stop()
  }
}

const nothing = () => undefined
const come = () => 'come' as const
const lose = () => 'lost' as const

function stopRequest(ctx: PodContext, container: ObservedContainer, graceSeconds: number): StopRequest {
  const spec = findSpec(ctx, container.name)
  const kept = readContainerFacts(container.annotations)
  return {
    id: container.id,
    name: container.name,
    graceSeconds,
    message: `Stopping container ${container.name}`,
    preStop: container.state === 'running' ? (spec?.lifecycle?.preStop ?? kept.preStop) : undefined,
    ports: spec?.ports ?? kept.ports,
  }
}

function findSpec(ctx: PodContext, name: string): ContainerSpec | undefined {
  const { initContainers, containers, ephemeralContainers } = ctx.pod.spec
  return [...initContainers, ...containers, ...ephemeralContainers].find((spec) => spec.name === name)
}
