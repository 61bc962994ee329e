import { errorMessage, PoddError } from '../../base/errors.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { sandboxBackoff } from '../../decide/plan/backoff.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import { appliedPod } from '../../decide/plan/resize.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { podManifestHash } from '../../pod/values/hash.ts'
import type { SandboxId } from '../../pod/values/ids.ts'
import { CriError, isCriError } from '../../runtime/cri-runtime.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import { podDns, podResolvConf } from '../../translate/network.ts'
import { readSandboxIps } from '../../translate/observe.ts'
import { toSandboxConfig } from '../../translate/runtime-config.ts'
import { awaitedPathOf } from '../../volumes/open-inside.ts'
import { networkProblem, recordEvent, warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { foreseeImages } from './images.ts'
import type { ForeseenImages } from './images.ts'
import { backOff } from './pass.ts'
import type { Pass } from './pass.ts'

/** After a failed attempt: the kubelet retries a pod after an error in 10 s. */
const retryMs = 10_000

/** The sandbox that containers are started in. */
export interface SandboxInUse {
  readonly id: SandboxId
  readonly config: cri.PodSandboxConfigInput
  readonly ips: readonly string[]
}

/** What a sandbox that is about to be made needs. */
interface SandboxNeeds {
  readonly volumes: Promise<ReadonlyMap<string, HostVolume>>
  readonly config: Promise<cri.PodSandboxConfigInput>
}

/** Creates a sandbox and reads its addresses. Undefined where that failed, which is put off. */
export async function createSandbox(
  env: PodEnv,
  pass: Pass,
  attempt: number,
  ahead: AheadWork,
): Promise<SandboxInUse | undefined> {
  const { pod, ref, state, signals } = pass
  const needs = ahead.needsOfSandbox(attempt)
  const network = pod.spec.hostNetwork ? undefined : await networkProblem(env)
  if (network !== undefined) {
    // `pkg/kubelet/kubelet.go` SyncPod, Kubernetes 1.36.
    state.memory.freeSandboxAttempt(attempt)
    return fail(env, pass, 'NetworkNotReady', `network is not ready: ${network}`)
  }
  try {
    // They have to be ready before it is made (`pkg/kubelet/kubelet.go` SyncPod, WaitForAttachAndMount, 1.36).
    await needs.volumes
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    state.memory.freeSandboxAttempt(attempt)
    return fail(env, pass, 'FailedMount', errorMessage(error), awaitedPathOf(error))
  }
  let id: SandboxId
  let config: cri.PodSandboxConfigInput
  try {
    config = await needs.config
    await env.volumes.removeResolvConf(ref.uid)
    ahead.beginFiles()
    const made = await env.calls.runPodSandbox(
      { config, runtimeHandler: pass.record.classes?.runtimeHandler ?? '' },
      { signal: signals.manifest },
    )
    id = made.podSandboxId
  } catch (error) {
    // The runtime may say itself that it isn't ready.
    if (error instanceof CriError) void env.knowledge.look()
    if (!isOutcomeUnknown(error)) state.memory.freeSandboxAttempt(attempt)
    if (isAbandoned(pass, error)) throw error
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
  backOff(env, pass, sandboxBackoff, {
    untilMs: env.clock.wallMs() + retryMs,
    waiting: { reason: 'ContainerCreating', message },
    ...(awaitedPath !== undefined && { awaitedPath }),
  })
  return undefined
}

/** Whether the call was not sent, because the pod has more urgent work. */
export function isAbandoned({ signals }: Pass, error: unknown): boolean {
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
  env: PodEnv,
  pass: Pass,
  begun?: Promise<cri.PodSandboxConfigInput>,
): Promise<SandboxInUse | undefined> {
  const sandbox = pass.observed.sandboxes[0]
  if (sandbox === undefined) return undefined
  const config = await (begun ?? buildSandboxConfig(env, pass, sandbox.attempt))
  const ips = pass.pod.spec.hostNetwork ? env.hostIps() : sandbox.ips
  return { id: sandbox.id, config, ips }
}

async function inspectSandbox(
  env: PodEnv,
  pass: Pass,
  id: SandboxId,
  config: cri.PodSandboxConfigInput,
): Promise<SandboxInUse> {
  if (pass.pod.spec.hostNetwork) return { id, config, ips: env.hostIps() }
  const { status } = await env.calls.podSandboxStatus({ podSandboxId: id })
  // It isn't asked again to show the pod.
  if (status !== null) env.observer.noteSandbox(status)
  return { id, config, ips: readSandboxIps(status?.network) }
}

/** Makes the pod's cgroup, too. */
async function buildSandboxConfig(
  env: PodEnv,
  pass: Pass,
  attempt: number,
): Promise<cri.PodSandboxConfigInput> {
  const { pod, ref } = pass
  const cgroupParent = await env.cgroups.ensure(ref.uid, pod, appliedPod(pass))
  const dns = podDns(pod, await env.readResolver())
  for (const warning of dns.warnings) recordEvent(env, pass.ref, { type: 'Warning', ...warning })
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

/** Makes the pod's volumes. */
function prepareVolumes(env: PodEnv, pass: Pass): Promise<ReadonlyMap<string, HostVolume>> {
  return env.volumes.prepare({
    uid: pass.ref.uid,
    pod: pass.pod,
    source: pass.record.source,
    warn: (message) =>
      recordEvent(env, pass.ref, { type: 'Warning', reason: 'VolumeOwnershipNotChanged', message }),
  })
}

type StartAction = Extract<PodAction, { kind: 'start-container' }>

/**
 * What the first steps of a plan need. Images are looked for while the pod's record is written; what is made on the host is
 * begun once the record is on disk, beside what else is under way. Nothing of it changes what the runtime has. The code that
 * needs a part handles its failure.
 */
export class AheadWork {
  readonly images: ForeseenImages
  /** Where it begins with a container in the sandbox that is there. */
  readonly sandboxConfig: Promise<cri.PodSandboxConfigInput> | undefined
  readonly #env: PodEnv
  readonly #pass: Pass
  readonly #first: StartAction | undefined
  readonly #isFirstThere: Promise<boolean>
  #newSandbox: SandboxNeeds | undefined
  #files: Promise<ContainerFiles | undefined> | undefined
  readonly #begun: Promise<unknown>[] = []

  constructor(env: PodEnv, pass: Pass, actions: readonly PodAction[]) {
    this.#env = env
    this.#pass = pass
    const [head] = actions
    const isStart = head?.kind === 'create-sandbox' || head?.kind === 'start-container'
    const starts = isStart ? actions.filter((action) => action.kind === 'start-container') : []
    const own = starts.filter(({ awaitedImage }) => awaitedImage === undefined)
    this.images = foreseeImages(env, pass, own)
    this.#first = own[0]
    this.#isFirstThere = this.#isThere()
    if (head?.kind === 'create-sandbox') this.needsOfSandbox(head.attempt)
    const sandbox = pass.observed.sandboxes[0]
    if (head?.kind === 'start-container' && sandbox !== undefined) {
      this.sandboxConfig = this.#begin(() => buildSandboxConfig(env, pass, sandbox.attempt))
      this.beginFiles()
    }
  }

  /** Begins what a new sandbox needs, where it wasn't begun yet. */
  needsOfSandbox(attempt: number): SandboxNeeds {
    this.#newSandbox ??= {
      volumes: this.#begin(() => prepareVolumes(this.#env, this.#pass)),
      config: this.#begin(() => buildSandboxConfig(this.#env, this.#pass, attempt)),
    }
    return this.#newSandbox
  }

  /** Begins the files of the first container. To be called where its sandbox is made. */
  beginFiles(): void {
    this.#files = this.#begin(() => this.#makeFiles())
  }

  /** The files of this container, where they were begun; for its first start only. */
  takeFiles(spec: ContainerSpec): Promise<ContainerFiles | undefined> | undefined {
    if (spec !== this.#first?.spec) return undefined
    const files = this.#files
    this.#files = undefined
    return files
  }

  /** Nothing is written any more once this has resolved; it never rejects. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#begun)
  }

  /** A pull may take long: what is written before it could be outdated when the container is made. */
  async #isThere(): Promise<boolean> {
    if (this.#first === undefined || this.#first.spec.imagePullPolicy === 'Always') return false
    // The start asks again, and reports why it is unavailable.
    return (await this.images.get(this.#first.spec.image)?.catch(() => undefined)) !== undefined
  }

  async #makeFiles(): Promise<ContainerFiles | undefined> {
    if (this.#first === undefined || !(await this.#isFirstThere)) return undefined
    const volumes = await this.#newSandbox?.volumes
    return prepareContainerFiles(this.#env, this.#pass, this.#first, volumes)
  }

  /** A pod that podd doesn't know after a power cut must have nothing on the host. */
  #begin<T>(make: () => Promise<T>): Promise<T> {
    const work = this.#pass.recorded.then(make)
    // The code that needs it handles its failure.
    work.catch(() => undefined)
    this.#begun.push(work)
    return work
  }
}

/** A container's files on the host that don't depend on the pod's addresses. */
export interface ContainerFiles {
  /** Which start of the container this is. */
  readonly restartCount: number
  readonly volumes: ReadonlyMap<string, HostVolume>
  readonly resolvConfPath: string
  readonly terminationLogPath: string
}

/**
 * Makes what a container has on the host.
 * @param volumes those of the pod, where they were prepared a moment ago
 */
export async function prepareContainerFiles(
  env: PodEnv,
  pass: Pass,
  { spec, restartCount: knownCount }: StartAction,
  volumes?: ReadonlyMap<string, HostVolume>,
): Promise<ContainerFiles> {
  const { pod, ref } = pass
  const restartCount = await prepareLog(env, pass, spec, knownCount)
  const [prepared, resolvConfPath, terminationLogPath] = await Promise.all([
    volumes ?? env.volumes.prepare({ uid: ref.uid, pod, source: pass.record.source }),
    env.readResolver().then((conf) => env.volumes.writeResolvConf(ref.uid, podResolvConf(pod, conf))),
    env.volumes.makeTerminationLog(ref.uid, spec.name, restartCount),
  ])
  return { restartCount, volumes: prepared, resolvConfPath, terminationLogPath }
}

/**
 * Makes the directory of a container's logs. Where neither record nor runtime know of a container before it and yet there
 * are logs of one, it counts on from the newest of them (`pkg/kubelet/kuberuntime/kuberuntime_container.go`
 * calcRestartCountByLogDir, Kubernetes 1.36).
 */
async function prepareLog(
  env: PodEnv,
  pass: Pass,
  { name }: ContainerSpec,
  knownCount: number,
): Promise<number> {
  const { logs } = env
  const isNew = await logs.prepare(pass.ref, name)
  const isKnown = knownCount > 0 || pass.observed.containers.some((container) => container.name === name)
  if (isNew || isKnown) return knownCount
  const newest = await logs.newestInstance(pass.ref, name)
  return newest === undefined ? 0 : newest + 1
}
