import { errorMessage, PoddError } from '../../base/errors.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { sandboxRetry } from '../../decide/plan/backoff.ts'
import { appliedPod } from '../../decide/plan/resize.ts'
import { isHostStopping } from '../../host/cgroups/systemd-bus.ts'
import { podManifestHash } from '../../pod/values/hash.ts'
import type { SandboxId } from '../../pod/values/ids.ts'
import { CriError, isCriError } from '../../runtime/cri-runtime.ts'
import { podDns } from '../../translate/network.ts'
import { readSandboxIps } from '../../translate/observe.ts'
import { toSandboxConfig } from '../../translate/runtime-config.ts'
import { awaitedPathOf } from '../../volumes/open-inside.ts'
import { networkProblem, warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { retryLater, isAbandoned, makeRetry } from './pass.ts'
import type { Pass } from './pass.ts'

export interface SandboxInUse {
  readonly id: SandboxId
  readonly config: cri.Sent<cri.PodSandboxConfig>
  readonly ips: readonly string[]
}

/** Creates a sandbox and reads its addresses. Undefined where that failed, which is put off. */
export async function createSandbox(
  env: PodEnv,
  pass: Pass,
  attempt: number,
): Promise<SandboxInUse | undefined> {
  const { pod, ref, state, signals } = pass
  const network = pod.spec.hostNetwork ? undefined : await networkProblem(env)
  if (network !== undefined) {
    // `pkg/kubelet/kubelet.go` SyncPod, Kubernetes 1.36.
    state.memory.freeSandboxAttempt(attempt)
    return fail(env, pass, 'NetworkNotReady', `network is not ready: ${network}`)
  }
  try {
    // They have to be ready before it is made (`pkg/kubelet/kubelet.go` SyncPod, WaitForAttachAndMount, 1.36).
    await env.volumes.prepare({
      uid: ref.uid,
      pod,
      source: pass.record.source,
      warn: (message) => warn(env, ref, 'VolumeOwnershipNotChanged', message),
    })
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    state.memory.freeSandboxAttempt(attempt)
    return fail(env, pass, 'FailedMount', errorMessage(error), awaitedPathOf(error))
  }
  let id: SandboxId
  let config: cri.Sent<cri.PodSandboxConfig>
  try {
    config = await buildSandboxConfig(env, pass, attempt)
    await env.volumes.removeResolvConf(ref.uid)
    const made = await env.calls.runPodSandbox(
      { config, runtimeHandler: pass.record.classes?.runtimeHandler ?? '' },
      { signal: signals.manifest },
    )
    id = made.podSandboxId
  } catch (error) {
    // The runtime may say itself that it isn't ready.
    if (error instanceof CriError) void env.knowledge.look()
    if (!isOutcomeUnknown(error)) state.memory.freeSandboxAttempt(attempt)
    if (isAbandoned(pass, error) || isHostStopping(error)) throw error
    return fail(env, pass, 'FailedCreatePodSandBox', `Failed to create pod sandbox: ${errorMessage(error)}`)
  }
  try {
    return await inspectSandbox(env, pass, id, config)
  } catch (error) {
    // It exists: its number is used, and the next pass goes on with it (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` SyncPod, 1.36).
    return fail(
      env,
      pass,
      'FailedStatusPodSandBox',
      `Unable to get pod sandbox status: ${errorMessage(error)}`,
    )
  }
}

/** Records why there is no sandbox to go on with, and puts the next attempt off. */
function fail(env: PodEnv, pass: Pass, reason: string, message: string, awaitedPath?: string): undefined {
  warn(env, pass.ref, reason, message)
  const retry = makeRetry(env, { reason: 'ContainerCreating', message }, { awaitedPath })
  retryLater(env, pass, sandboxRetry, retry)
  return undefined
}

/** The runtime may have made it after all, or may be about to. */
function isOutcomeUnknown(error: unknown): boolean {
  return isCriError(error, 'RUNTIME_TIMEOUT') || isCriError(error, 'RUNTIME_UNAVAILABLE')
}

/** The sandbox that is there already, with the config its containers are made with. */
export async function useObservedSandbox(env: PodEnv, pass: Pass): Promise<SandboxInUse | undefined> {
  const sandbox = pass.observed.sandboxes[0]
  if (sandbox === undefined) return undefined
  const config = await buildSandboxConfig(env, pass, sandbox.attempt)
  const ips = pass.pod.spec.hostNetwork ? env.hostIps() : sandbox.ips
  return { id: sandbox.id, config, ips }
}

async function inspectSandbox(
  env: PodEnv,
  pass: Pass,
  id: SandboxId,
  config: cri.Sent<cri.PodSandboxConfig>,
): Promise<SandboxInUse> {
  if (pass.pod.spec.hostNetwork) return { id, config, ips: env.hostIps() }
  const { status } = await env.calls.podSandboxStatus({ podSandboxId: id })
  // It isn't asked again to show the pod.
  if (status !== null) env.observer.noteSandbox(status)
  return { id, config, ips: readSandboxIps(status?.network) }
}

/** The config of a sandbox. Makes the pod's cgroup, too. */
async function buildSandboxConfig(
  env: PodEnv,
  pass: Pass,
  attempt: number,
): Promise<cri.Sent<cri.PodSandboxConfig>> {
  const { pod, ref } = pass
  const cgroupParent = await env.cgroups.ensure(ref.uid, pod, appliedPod(pass))
  const dns = podDns(pod, await env.readResolver())
  for (const { reason, message } of dns.warnings) warn(env, ref, reason, message)
  return toSandboxConfig({
    pod,
    uid: ref.uid,
    attempt,
    instance: env.instance,
    manifestHash: podManifestHash(pass.record.manifest),
    cgroupParent,
    logDirectory: env.logs.directory(ref),
    dns: dns.config,
    resources: env.resources,
    userRange: pod.spec.hostUsers === false ? env.volumes.userRange(ref.uid) : undefined,
    seccompPath: env.sandboxSeccompPath(),
  })
}
