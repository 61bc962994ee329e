import { errorMessage } from '../../base/errors.ts'
import { settleAll } from '../../base/waits.ts'
import {
  computeTerminationWaves,
  endingDeadlineMs,
  endingOverrideSeconds,
  stopTimeout,
} from '../../decide/plan/ending.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { ContainerSpec, LifecycleHandler } from '../../pod/schema/container-schema.ts'
import { allContainers } from '../../pod/schema/pod-resources.ts'
import type { ObservedContainer } from '../../pod/state/observed.ts'
import type { ContainerId, SandboxId } from '../../pod/values/ids.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import { readContainerFacts } from '../../translate/identity.ts'
import { tell, warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { HookError } from './hooks.ts'
import { checkSeen, OutdatedView } from './pass.ts'
import type { Pass } from './pass.ts'
import type { HookInFlight } from './state.ts'

interface StopRequest {
  readonly id: ContainerId
  readonly name: string
  readonly graceSeconds: number
  /** See stopTimeout. */
  readonly overrideSeconds?: number | undefined
  readonly message: string
  readonly preStop: LifecycleHandler | undefined
  readonly ports?: ContainerSpec['ports']
  /**
   * Resolves when the containers that end before this one have ended (`come`), or one of them couldn't be stopped (`lost`).
   * Never rejects. Waited for after preStop, within the grace.
   */
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
 * Runs the preStop hook within the grace period, waits for the container's turn to end, and calls StopContainer with what is
 * left of the grace period: at least 2 s, unless the request says how long
 * (`pkg/kubelet/kuberuntime/kuberuntime_container.go` killContainer, Kubernetes 1.36).
 */
export async function stopWithinGrace(
  env: PodEnv,
  pass: Pass,
  request: StopRequest,
  isStuck: () => boolean = () => false,
): Promise<void> {
  const { clock } = env
  const { state } = pass
  const beganMs = clock.monotonicMs()
  tell(env, pass.ref, 'Killing', request.message, request.name)
  const leftMs = (): number => request.graceSeconds * 1000 - (clock.monotonicMs() - beganMs)
  const { preStop, turn } = request
  if (preStop !== undefined && request.graceSeconds > 0) {
    const begun = state.preStops.get(request.id) ?? (await beginPreStop(env, pass, request, preStop))
    if (begun !== undefined) await waitInGrace(env, pass, leftMs(), begun.ended)
  }
  // A container that has to end earlier could not be stopped: that fails the pass, and the next one stops this one too.
  if (turn !== undefined && (await waitInGrace(env, pass, leftMs(), turn)) === 'lost') return
  const timeout = stopTimeout(leftMs(), request.overrideSeconds)
  const deadline = isStuck() ? { deadlineMs: timeout * 1000 + stuckContainerMs } : {}
  const signal = pass.signals.pass
  try {
    await env.calls.stopContainer({ containerId: request.id, timeout }, { signal, ...deadline })
  } catch (error) {
    if (!isCriError(error, 'RUNTIME_FAILED') || !(await haveEnded(env, [request.id], signal))) throw error
  }
}

/** Undefined where time is up first. Rejects with the reason of the pass's abort, or as what it waits for. */
async function waitInGrace<T>(
  { clock }: PodEnv,
  { signals: { pass: signal } }: Pass,
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
  env: PodEnv,
  pass: Pass,
  request: StopRequest,
  handler: LifecycleHandler,
): Promise<HookInFlight | undefined> {
  const { id } = request
  const { state } = pass
  const isHeld = env.hooks.isHeld(handler)
  if (!(await state.memory.claimPreStop(id, isHeld, state.observed))) return undefined
  return state.beginPreStop(id, () => runPreStop(env, pass, request, handler))
}

/** Rejects where the runtime was not there to begin it: it is due still then. */
async function runPreStop(
  env: PodEnv,
  pass: Pass,
  request: StopRequest,
  handler: LifecycleHandler,
): Promise<void> {
  let isSent = false
  try {
    await env.hooks.run({
      pod: pass.ref,
      handler,
      hook: 'preStop',
      containerId: request.id,
      podIp: pass.observed.sandboxes[0]?.ips[0] ?? (pass.pod.spec.hostNetwork ? env.hostIps()[0] : undefined),
      ports: request.ports ?? [],
      timeoutMs: request.graceSeconds * 1000,
      signal: pass.signals.life,
      onSent: () => {
        isSent = true
      },
    })
  } catch (error) {
    if (pass.signals.life.aborted) return
    if (!isSent && !(error instanceof HookError)) {
      await pass.state.memory.releasePreStop(request.id)
      throw error
    }
    env.logger.warn(
      { pod: pass.ref.name, uid: pass.ref.uid, container: request.name, err: error },
      'preStop hook failed',
    )
    const message = 'PreStopHook failed'
    warn(env, pass.ref, 'FailedPreStopHook', message, request.name)
  }
}

/** Stops one container that is to be replaced or has failed its probe; by force where the runtime doesn't in time. */
export async function stopContainer(
  env: PodEnv,
  pass: Pass,
  { container, cause, message }: Extract<PodAction, { kind: 'stop-container' }>,
): Promise<void> {
  const spec = findSpec(pass, container.name)
  const probe =
    cause === 'liveness' ? spec?.livenessProbe : cause === 'startup' ? spec?.startupProbe : undefined
  const graceSeconds = probe?.terminationGracePeriodSeconds ?? pass.pod.spec.terminationGracePeriodSeconds
  const inGrace = { ...stopRequest(pass, container, graceSeconds), message }
  // RestartAllContainers stops containers without grace period and preStop (KEP-5532).
  const atOnce = { graceSeconds: 0, overrideSeconds: 0, preStop: undefined }
  const request = cause === 'restart-all' ? { ...inGrace, ...atOnce } : inGrace
  try {
    await stopWithinGrace(env, pass, request)
  } catch (error) {
    if (!isCriError(error, 'RUNTIME_TIMEOUT')) throw error
    recordNotStopped(env, pass, request.name, error)
    const stop = { containerId: request.id, timeout: 0 }
    await stopByForce(env, pass, { sandboxId: container.sandboxId, ids: [request.id] }, () =>
      env.calls.stopContainer(stop, { signal: pass.signals.pass, deadlineMs: noticeMs }),
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
export async function stopPod(env: PodEnv, pass: Pass): Promise<void> {
  const nowMs = env.clock.wallMs()
  const { ending } = pass.record
  const deadlineMs =
    ending === undefined
      ? nowMs + pass.pod.spec.terminationGracePeriodSeconds * 1000
      : endingDeadlineMs(ending, nowMs)
  const graceSeconds = Math.max(0, Math.ceil((deadlineMs - nowMs) / 1000))
  const overrideSeconds = ending === undefined ? undefined : endingOverrideSeconds(ending)
  const waves: Promise<unknown>[] = []
  const failed: FailedStop[] = []
  const isStuck = (): boolean => failed.some(isSilent)
  const stop = async (container: ObservedContainer, turn: Pick<StopRequest, 'turn'>): Promise<void> => {
    const request = { ...stopRequest(pass, container, graceSeconds), overrideSeconds, ...turn }
    try {
      await stopWithinGrace(env, pass, request, isStuck)
    } catch (error) {
      pass.signals.pass.throwIfAborted()
      // One that fails while there is time is tried again, and the sidecars behind it wait; after that they go on in their order.
      const isOver = ending === undefined || env.clock.wallMs() >= deadlineMs
      if (!isSilent({ error }) && !(isOver && isCriError(error, 'RUNTIME_FAILED'))) throw error
      failed.push({ container, error })
      recordNotStopped(env, pass, container.name, error)
    }
  }
  for (const wave of computeTerminationWaves(pass.observed, pass.pod)) {
    const before = waves.length === 0 ? {} : { turn: settleAll(waves).then(come, lose) }
    waves.push(settleAll(wave.map((container) => stop(container, before))))
  }
  await settleAll(waves)
  if (failed.length === 0) pass.onContainersStopped()
  await settleAll(pass.observed.sandboxes.map(({ id }) => stopSandbox(env, pass, id, failed)))
}

interface FailedStop {
  readonly container: ObservedContainer
  readonly error: unknown
}

const isSilent = ({ error }: Pick<FailedStop, 'error'>): boolean => isCriError(error, 'RUNTIME_TIMEOUT')

async function stopSandbox(
  env: PodEnv,
  pass: Pass,
  sandboxId: SandboxId,
  failed: readonly FailedStop[],
): Promise<void> {
  const stop = (deadlineMs?: number): Promise<unknown> =>
    env.calls.stopPodSandbox(
      { podSandboxId: sandboxId },
      deadlineMs === undefined ? undefined : { deadlineMs },
    )
  const ofIt = failed.filter(({ container }) => container.sandboxId === sandboxId)
  try {
    await stop(ofIt.some(isSilent) ? stuckSandboxMs : undefined).catch(async (error: unknown) => {
      const ids = pass.observed.containers
        .filter((each) => each.sandboxId === sandboxId && each.provisional === true)
        .map(({ id }) => id)
      const mayPass = ids.length > 0 && isCriError(error, 'RUNTIME_FAILED')
      if (!mayPass || !(await haveEnded(env, ids, pass.signals.pass))) throw error
      await stop()
    })
  } catch (error) {
    const isStuck = isSilent({ error })
    if (!isStuck && (ofIt.length === 0 || !isCriError(error, 'RUNTIME_FAILED'))) throw error
    const ids = ofIt.map(({ container }) => container.id)
    await stopByForce(env, pass, { sandboxId, ids: isStuck ? [...ids, sandboxId] : ids }, () =>
      stop(noticeMs),
    )
  }
}

function recordNotStopped(env: PodEnv, pass: Pass, container: string, error: unknown): void {
  const message = `The runtime has not stopped container ${container}: ${errorMessage(error)}`
  warn(env, pass.ref, 'FailedKillPod', message, container)
}

/**
 * For what the runtime could not stop: kills the processes of these containers (or of the sandbox) by their cgroups and
 * stops again; where the runtime still gets no answer, kills the shim that doesn't give one. Throws what `stop` throws.
 */
async function stopByForce(
  env: PodEnv,
  pass: Pass,
  { sandboxId, ids }: { readonly sandboxId: SandboxId; readonly ids: readonly string[] },
  stop: () => Promise<unknown>,
): Promise<void> {
  // It is the runtime that must answer: one that hangs as a whole is another matter.
  await env.calls.podSandboxStatus({ podSandboxId: sandboxId }, { deadlineMs: noticeMs })
  checkSeen(env, pass.state)
  const warnOf = (message: string): void => warn(env, pass.ref, 'Killing', message)
  const killed = await env.cgroups.killProcesses(pass.ref.uid, pass.pod, ids)
  if (killed > 0)
    warnOf(
      `Killed ${killed} process${killed === 1 ? '' : 'es'} of the pod by its cgroup: the runtime did not`,
    )
  try {
    await stop()
  } catch (error) {
    if (!isCriError(error, 'RUNTIME_TIMEOUT')) throw error
    const pid = env.killShim(sandboxId)
    if (pid === undefined) throw error
    warnOf(`Killed the shim of the pod (process ${pid}): it has given the runtime no answer`)
    await stop()
  }
}

const nothing = () => undefined
const come = () => 'come' as const
const lose = () => 'lost' as const

function stopRequest(pass: Pass, container: ObservedContainer, graceSeconds: number): StopRequest {
  const spec = findSpec(pass, container.name)
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

function findSpec(pass: Pass, name: string): ContainerSpec | undefined {
  return allContainers(pass.pod.spec).find((spec) => spec.name === name)
}

/**
 * Removes containers with their termination messages, and their logs unless the pod ends. These go first, since nothing
 * else would remove them (`pkg/kubelet/kuberuntime/kuberuntime_container.go` removeContainer, Kubernetes 1.36). Throws what a call threw.
 */
export async function removeContainers(env: PodEnv, pass: Pass, ids: readonly ContainerId[]): Promise<void> {
  await settleAll(ids.map((id) => removeContainer(env, pass, id)))
}

/** Stops sandboxes, by force where their shim hangs, and removes them. Throws what a call threw. */
export async function removeSandboxes(env: PodEnv, pass: Pass, ids: readonly SandboxId[]): Promise<void> {
  await settleAll(
    ids.map(async (podSandboxId) => {
      await stopSandbox(env, pass, podSandboxId, [])
      await env.calls.removePodSandbox({ podSandboxId })
    }),
  )
}

async function removeContainer(env: PodEnv, pass: Pass, id: ContainerId): Promise<void> {
  const container = pass.observed.containers.find((candidate) => candidate.id === id)
  const isCreated = container?.state === 'created' && container.cancelled === undefined
  const check = async (): Promise<void> => (isCreated ? checkUnstarted(env, id) : undefined)
  await check()
  if (container !== undefined) {
    // Those of a pod that ends go, or are kept, with the pod.
    if (pass.record.ending === undefined) await env.logs.remove(pass.ref, container)
    await env.volumes.removeTerminationLog(pass.ref.uid, container.name, container.restartCount)
  }
  await removeWhenSettled(env, id, pass.signals.pass, check)
}

/** What removing a container needs. */
interface RemoveEnv {
  readonly calls: Pick<PodEnv['calls'], 'removeContainer' | 'containerStatus'>
  readonly clock: Pick<PodEnv['clock'], 'sleep'>
}

/** How long containers that may have ended are given until the runtime tells so, 850 ms in all. */
const endDelaysMs = [10, 40, 160, 640]

/**
 * Whether these have ended, by the time the runtime tells so. For a moment after a container's exit containerd still counts
 * it as running, and stopping it, or its sandbox, may fail because its task is being deleted
 * (`internal/cri/server/container_stop.go` stopContainer, containerd 2.1; 1.6 too).
 */
async function haveEnded(env: RemoveEnv, ids: readonly ContainerId[], signal: AbortSignal): Promise<boolean> {
  const areAlive = async (): Promise<boolean> => {
    const states = await Promise.all(ids.map((id) => readState(env, id)))
    return states.some((state) => state === 'CONTAINER_RUNNING' || state === 'CONTAINER_UNKNOWN')
  }
  for (const delayMs of endDelaysMs) {
    if (!(await areAlive())) return true
    await env.clock.sleep(delayMs, signal)
  }
  return !(await areAlive())
}

/** How long a container that can't be removed yet is given to settle, 3.4 s in all. */
const settleDelaysMs = [10, 40, 160, 640, 2560]

/**
 * Removes a container. containerd refuses that for a moment after the container's exit, while it still reports the
 * container as running, and for a container whose start was cancelled, while it still starts it: what it reports after a
 * refusal tells whether to wait and try again. Throws what the last attempt threw.
 */
export async function removeWhenSettled(
  env: RemoveEnv,
  containerId: ContainerId,
  signal: AbortSignal,
  beforeEach: () => Promise<void> = async () => {},
): Promise<void> {
  let hadExited = false
  for (const delayMs of settleDelaysMs) {
    await beforeEach()
    try {
      await env.calls.removeContainer({ containerId })
      return
    } catch (error) {
      if (!isCriError(error, 'RUNTIME_FAILED')) throw error
      const state = await readState(env, containerId)
      if (state === 'gone') return
      const mayChange = state === 'CONTAINER_RUNNING' || state === 'CONTAINER_CREATED'
      // One that has exited since the refusal may be removable now; a second refusal has another reason.
      if (!mayChange && (hadExited || state !== 'CONTAINER_EXITED')) throw error
      hadExited = !mayChange
      if (mayChange) await env.clock.sleep(delayMs, signal)
    }
  }
  await beforeEach()
  await env.calls.removeContainer({ containerId })
}

async function readState({ calls }: RemoveEnv, containerId: ContainerId) {
  try {
    const { status } = await calls.containerStatus({ containerId })
    return status?.state
  } catch (error) {
    if (isCriError(error, 'RUNTIME_NOT_FOUND')) return 'gone'
    throw error
  }
}

/** Throws OutdatedView where it was started after all: the runtime would kill what runs in order to remove it. */
async function checkUnstarted(env: RemoveEnv, containerId: ContainerId): Promise<void> {
  const state = await readState(env, containerId)
  if (state !== 'gone' && state !== 'CONTAINER_CREATED') throw new OutdatedView()
}
