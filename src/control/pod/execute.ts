import { errorMessage, PoddError } from '../../base/errors.ts'
import { settleAll } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { resizeRetry } from '../../decide/plan/backoff.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import { appliedPod, lowersMemoryLimit, podLevelResources, withPodLevel } from '../../decide/plan/resize.ts'
import type { ContainerResize } from '../../decide/plan/resize.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import { quantityValue } from '../../pod/values/quantity.ts'
import { containerResources } from '../../translate/resources.ts'
import { tell, warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { fetchAhead } from './images.ts'
import { retryLater, checkSeen, makeRetry } from './pass.ts'
import type { Pass, PassLoop, PassSignals } from './pass.ts'
import { createSandbox, useObservedSandbox } from './sandbox.ts'
import type { SandboxInUse } from './sandbox.ts'
import { finishPostStart, startContainer } from './start.ts'
import type { PodState } from './state.ts'
import { removeContainers, removeSandboxes, stopContainer, stopPod } from './stop.ts'

/** What a pass says of its plan beside the actions. */
interface PlanNotes {
  /** Resolves when the plan is on record, before which nothing in the runtime is changed; rejects as a save that is required. */
  readonly recorded?: Promise<void>
  readonly restartsDue?: Pass['restartsDue'] | undefined
  readonly onContainersStopped?: Pass['onContainersStopped']
}

/**
 * Carries out a plan, one action after another; containers that are stopped one after another in the plan are stopped
 * together, and images for running containers are fetched in the background. The rest of the plan is left out after a sandbox
 * could not be created. Each executor tells the pod's state what became of its action. Throws what a call threw, or the
 * reason for which the pass ended; the next pass reads back the result.
 */
export async function execute(
  env: PodEnv,
  state: PodState,
  loop: PassLoop,
  signals: PassSignals,
  actions: readonly PodAction[],
  { recorded = Promise.resolve(), restartsDue = [], onContainersStopped = () => {} }: PlanNotes = {},
): Promise<void> {
  const pass: Pass = {
    state,
    loop,
    signals,
    ref: state.ref,
    pod: state.allocatedPod,
    record: state.record,
    observed: state.observed,
    restartsDue,
    onContainersStopped,
    made: new Set(),
  }
  loop.beginActing()
  try {
    await recorded
    await env.turns.enter()
    await executeSteps(env, pass, actions)
  } finally {
    loop.endActing()
  }
}

type StopAction = Extract<PodAction, { kind: 'stop-container' }>

/** What is done at once: one action, or the stops that follow one another in the plan. */
type Step =
  | Exclude<PodAction, StopAction>
  | { readonly kind: 'stop-containers'; readonly stops: readonly StopAction[] }

async function executeSteps(env: PodEnv, pass: Pass, actions: readonly PodAction[]): Promise<void> {
  const { state, signals } = pass
  const { memory } = state
  let sandbox: SandboxInUse | undefined
  for (const step of toSteps(actions)) {
    signals.manifest.throwIfAborted()
    checkSeen(env, state)
    switch (step.kind) {
      case 'stop-pod':
        tellWhyStopped(env, pass, step.reason)
        await memory.noteRestarts(pass.restartsDue)
        await stopPod(env, pass)
        break
      case 'create-sandbox':
        sandbox = await createSandbox(env, pass, step.attempt)
        if (sandbox === undefined) return signals.manifest.throwIfAborted()
        break
      case 'stop-containers':
        await memory.noteRestarts(pass.restartsDue)
        await settleAll(step.stops.map((stop) => stopForSuccessor(env, pass, stop)))
        break
      case 'start-container':
        sandbox ??= await useObservedSandbox(env, pass)
        if (sandbox === undefined) return
        // It ensures its images itself from here on; a pull in flight goes on.
        if (step.awaitedImage === undefined) state.aheadFetches.cancel(step.spec.name)
        await startContainer(env, pass, step, sandbox)
        break
      case 'finish-post-start':
        sandbox ??= await useObservedSandbox(env, pass)
        if (sandbox === undefined) return
        await finishPostStart(env, pass, step, sandbox)
        break
      case 'fetch-image':
        fetchAhead(env, pass, step.spec)
        break
      case 'resize-containers':
        await resizeContainers(env, pass, step)
        // Resources that a runtime may not report are on disk before they are shown.
        await memory.save('best-effort')
        break
      case 'remove-containers':
        await removeContainers(env, pass, step.ids)
        break
      case 'remove-sandboxes':
        await removeSandboxes(env, pass, step.ids)
        break
    }
  }
}

/** Of a pod that is stopped although it may run. */
function tellWhyStopped(env: PodEnv, { ref }: Pass, reason: string): void {
  if (reason === 'SandboxChanged') {
    const message = 'Pod sandbox changed, it will be killed and re-created.'
    tell(env, ref, reason, message)
  }
  if (reason === 'CgroupRemoved') {
    const message =
      "The pod's cgroup was removed, so that its limits no longer hold: it will be killed and re-created."
    warn(env, ref, reason, message)
  }
}

function* toSteps(actions: readonly PodAction[]): Generator<Step> {
  let stops: StopAction[] = []
  for (const action of actions) {
    if (action.kind === 'stop-container') {
      stops.push(action)
      continue
    }
    if (stops.length > 0) yield { kind: 'stop-containers', stops }
    stops = []
    yield action
  }
  if (stops.length > 0) yield { kind: 'stop-containers', stops }
}

/** Where a container is stopped for another spec, the record says first that it is to be recreated. */
async function stopForSuccessor(env: PodEnv, pass: Pass, stop: StopAction): Promise<void> {
  if (stop.cause === 'changed') await pass.state.memory.claimRestart(stop.container.id)
  await stopContainer(env, pass, stop)
}

/**
 * Gives running containers, and the pod itself, other resources: the pod's cgroup first where it grows, then the containers,
 * then the pod's cgroup where it shrinks. A memory limit below what is in use is refused before anything
 * is touched (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` doPodResizeAction and
 * validateMemoryResizeAction, Kubernetes 1.36). It is tried again after a failure; what was done stays done.
 */
async function resizeContainers(
  env: PodEnv,
  pass: Pass,
  { resizes, podLevel }: Extract<PodAction, { kind: 'resize-containers' }>,
): Promise<void> {
  const { state, ref, pod } = pass
  const isLast = resizes.length === 0 && !podLevel
  const done: ContainerResize[] = []
  try {
    if (podLevel) await checkPodUsage(env, pass)
    for (const resize of resizes) await checkUsage(env, resize)
    await env.cgroups.ensure(ref.uid, pod, appliedPod(pass))
    for (const resize of resizes) {
      await updateContainer(env, pod, resize)
      done.push(resize)
    }
    // Containers that were restarted for it have what the pod asks for, though they weren't seen yet.
    await env.cgroups.ensure(ref.uid, isLast ? pod : withPodLevel(appliedPod(pass, done), pod))
  } catch (error) {
    const message = errorMessage(error)
    warn(env, ref, 'ResizeError', `Pod resize error: ${message}`)
    state.noteResized(done)
    return retryLater(env, pass, resizeRetry, makeRetry(env, { reason: 'Error', message }))
  }
  if (isLast) return
  const what = [...(podLevel ? ['the pod itself'] : []), ...resizes.map(({ spec }) => spec.name)]
  const message = `Pod resize completed: ${what.join(', ')}`
  tell(env, ref, 'ResizeCompleted', message)
  state.noteResized(done, podLevel ? podLevelResources(pod.spec) : undefined)
}

/** All of a pod's containers use less together than the limit that the pod is to have. */
async function checkPodUsage(env: PodEnv, pass: Pass): Promise<void> {
  const [from, to] = [appliedPod(pass), pass.pod].map(({ spec }) => podLevelResources(spec))
  if (from === undefined || to === undefined || !lowersMemoryLimit({ from, to })) return
  const limitBytes = quantityValue(to.limits['memory'] ?? '0')
  const running = pass.observed.containers.filter(({ state }) => state === 'running')
  const used = await Promise.all(running.map(({ id }) => memoryUsage(env, id)))
  const usedBytes = used.reduce((sum: number, bytes) => sum + (bytes ?? 0), 0)
  if (usedBytes < limitBytes) return
  throw new PoddError(
    'RESIZE_BELOW_USAGE',
    `attempting to set pod memory limit (${limitBytes}) below current usage (${usedBytes})`,
  )
}

async function memoryUsage(env: PodEnv, containerId: ContainerId): Promise<number | undefined> {
  const { stats } = await env.calls.containerStats({ containerId })
  return stats?.memory?.usageBytes?.value ?? stats?.memory?.workingSetBytes?.value
}

async function checkUsage(env: PodEnv, resize: ContainerResize): Promise<void> {
  if (!lowersMemoryLimit(resize)) return
  const limitBytes = quantityValue(resize.to.limits['memory'] ?? '0')
  const usedBytes = await memoryUsage(env, resize.container.id)
  if (usedBytes === undefined || usedBytes < limitBytes) return
  throw new PoddError(
    'RESIZE_BELOW_USAGE',
    `attempting to set container "${resize.spec.name}" memory limit (${limitBytes}) below current usage (${usedBytes})`,
  )
}

async function updateContainer(env: PodEnv, pod: Pod, { container, spec }: ContainerResize): Promise<void> {
  const wanted = containerResources(pod.spec, spec, env.resources)
  // Only what a resize is about: the rest stays as the container was made with.
  const linux: cri.Sent<cri.LinuxContainerResources> = {
    cpuShares: wanted.cpuShares,
    cpuPeriod: wanted.cpuPeriod,
    cpuQuota: wanted.cpuQuota,
    memoryLimitInBytes: wanted.memoryLimitInBytes,
    memorySwapLimitInBytes: wanted.memorySwapLimitInBytes,
  }
  await env.calls.updateContainerResources({ containerId: container.id, linux })
}
