import { errorMessage, PoddError } from '../../base/errors.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { sandboxHold } from '../../decide/plan/backoff.ts'
import type { Hold } from '../../decide/plan/backoff.ts'
import { podManifestHash } from '../../pod/values/hash.ts'
import type { SandboxId } from '../../pod/values/ids.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import { awaitedPathOf } from '../../volumes/open-inside.ts'
import { readSandboxIps } from '../../translate/observe.ts'
import { toSandboxConfig } from '../../translate/runtime-config.ts'
import type { ActionOutcome } from './action-outcome.ts'
import { appliedPod } from '../../decide/plan/resize.ts'
import type { PodContext, SandboxInUse, SandboxNeeds } from './pod-context.ts'
import { podResolver } from '../../translate/network.ts'
import { recordEvent } from './pod-context.ts'

/** After a failed attempt: the kubelet retries a pod after an error in 10 s. */
const retryMs = 10_000

export type CreatedSandbox =
  | { readonly kind: 'created'; readonly sandbox: SandboxInUse }
  | { readonly kind: 'failed'; readonly outcomes: readonly ActionOutcome[] }

/**
 * Creates a sandbox and reads its addresses. A failure becomes a hold on the sandbox.
 * @param onSending the runtime is about to be asked for it
 */
export async function createSandbox(
  ctx: PodContext,
  { attempt, needs, onSending }: { attempt: number; needs: SandboxNeeds; onSending: () => void },
): Promise<CreatedSandbox> {
  const unused: ActionOutcome = { kind: 'attempt-unused', attempt }
  const network = ctx.pod.spec.hostNetwork ? undefined : await ctx.networkProblem()
  if (network !== undefined) {
    // `pkg/kubelet/kubelet.go` SyncPod, Kubernetes 1.36.
    const outcome = holdSandbox(ctx, 'NetworkNotReady', `network is not ready: ${network}`)
    return { kind: 'failed', outcomes: [unused, outcome] }
  }
  const held = await mountVolumes(ctx, needs.volumes)
  if (held !== undefined) return { kind: 'failed', outcomes: [unused, held] }
  let made: { readonly id: SandboxId; readonly config: cri.PodSandboxConfigInput }
  try {
    const config = await needs.config
    await ctx.host.volumes.removeResolvConf(ctx.ref.uid)
    onSending()
    const { podSandboxId } = await ctx.host.calls.runPodSandbox(
      { config, runtimeHandler: ctx.record.classes?.runtimeHandler ?? '' },
      { signal: ctx.signals.manifest },
    )
    made = { id: podSandboxId, config }
  } catch (error) {
    if (isAbandoned(ctx, error)) return { kind: 'failed', outcomes: [unused] }
    const message = `Failed to create pod sandbox: ${errorMessage(error)}`
    const failed = holdSandbox(ctx, 'FailedCreatePodSandBox', message)
    return { kind: 'failed', outcomes: isOutcomeUnknown(error) ? [failed] : [unused, failed] }
  }
  try {
    return { kind: 'created', sandbox: await inspectSandbox(ctx, made.id, made.config) }
  } catch (error) {
    // It exists: its number is used, and the next pass goes on with it (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` SyncPod, 1.36).
    const message = `Unable to get pod sandbox status: ${errorMessage(error)}`
    return { kind: 'failed', outcomes: [holdSandbox(ctx, 'FailedStatusPodSandBox', message)] }
  }
}

/** Records why there is no sandbox to go on with, and holds the next attempt. */
function holdSandbox(ctx: PodContext, reason: string, message: string, awaitedPath?: string): ActionOutcome {
  recordEvent(ctx, { type: 'Warning', reason, message })
  const untilMs = ctx.clock.wallMs() + retryMs
  const hold: Hold = {
    untilMs,
    waiting: { reason: 'ContainerCreating', message },
    ...(awaitedPath !== undefined && { awaitedPath }),
  }
  return { kind: 'held', key: sandboxHold, hold }
}

/** Whether the call was not sent, because the pod has more urgent work. */
export function isAbandoned({ signals }: Pick<PodContext, 'signals'>, error: unknown): boolean {
  return signals.manifest.aborted && error === signals.manifest.reason
}

/** The runtime may have made it after all, or may be about to. */
function isOutcomeUnknown(error: unknown): boolean {
  return isCriError(error, 'RUNTIME_TIMEOUT') || isCriError(error, 'RUNTIME_UNAVAILABLE')
}

/**
 * The sandbox that is there already, with the config its containers are made with.
 * @param begun its config, where it was begun before
 */
export async function useObservedSandbox(
  ctx: PodContext,
  begun?: Promise<cri.PodSandboxConfigInput>,
): Promise<SandboxInUse | undefined> {
  const sandbox = ctx.observed.sandboxes[0]
  if (sandbox === undefined) return undefined
  const config = await (begun ?? buildSandboxConfig(ctx, sandbox.attempt))
  const ips = ctx.pod.spec.hostNetwork ? ctx.host.hostIps() : sandbox.ips
  return { id: sandbox.id, config, ips }
}

async function inspectSandbox(
  ctx: PodContext,
  id: SandboxId,
  config: cri.PodSandboxConfigInput,
): Promise<SandboxInUse> {
  if (ctx.pod.spec.hostNetwork) return { id, config, ips: ctx.host.hostIps() }
  const { status } = await ctx.host.calls.podSandboxStatus({ podSandboxId: id })
  return { id, config, ips: readSandboxIps(status?.network) }
}

/** Makes the pod's cgroup, too. */
export async function buildSandboxConfig(
  ctx: PodContext,
  attempt: number,
): Promise<cri.PodSandboxConfigInput> {
  const { pod, ref, host } = ctx
  const cgroupParent = await host.cgroups.ensure(ref.uid, pod, appliedPod(ctx))
  const dns = podResolver(pod, await host.readResolver())
  for (const warning of dns.warnings) recordEvent(ctx, { type: 'Warning', ...warning })
  return toSandboxConfig({
    pod,
    uid: ref.uid,
    attempt,
    instance: host.instance,
    manifestHash: podManifestHash(ctx.record.manifest),
    cgroupParent,
    logDirectory: host.logs.directory(ref),
    dns: dns.config,
    clusterDomain: '',
    resources: host.resources,
    userRange: pod.spec.hostUsers === false ? host.volumes.userRange(ref.uid) : undefined,
    seccompPath: host.sandboxSeccompPath?.(),
  })
}

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
 * Waits for the pod's volumes, which have to be ready before its sandbox is made. Returns a hold, and records the
 * kubelet's event, where one can't be made (`pkg/kubelet/kubelet.go` SyncPod, WaitForAttachAndMount, 1.36).
 */
async function mountVolumes(
  ctx: PodContext,
  volumes: ReturnType<typeof prepareVolumes>,
): Promise<ActionOutcome | undefined> {
  try {
    await volumes
    return undefined
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    return holdSandbox(ctx, 'FailedMount', errorMessage(error), awaitedPathOf(error))
  }
}
