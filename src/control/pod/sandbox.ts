import { errorMessage, PoddError } from '../../base/errors.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { sandboxBackoff } from '../../decide/plan/backoff.ts'
import type { Backoff } from '../../decide/plan/backoff.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import { appliedPod } from '../../decide/plan/resize.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { podManifestHash } from '../../pod/values/hash.ts'
import type { SandboxId } from '../../pod/values/ids.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import { podDns, podResolvConf } from '../../translate/network.ts'
import { readSandboxIps } from '../../translate/observe.ts'
import { toSandboxConfig } from '../../translate/runtime-config.ts'
import { awaitedPathOf } from '../../volumes/open-inside.ts'
import { recordEvent } from './context.ts'
import type { ActionOutcome, PodContext, SandboxInUse, SandboxNeeds } from './context.ts'
import { foreseeImages } from './images.ts'
import type { ForeseenImages } from './images.ts'

/** After a failed attempt: the kubelet retries a pod after an error in 10 s. */
const retryMs = 10_000

export type CreatedSandbox =
  | { readonly kind: 'created'; readonly sandbox: SandboxInUse }
  | { readonly kind: 'failed'; readonly outcomes: readonly ActionOutcome[] }

/**
 * Creates a sandbox and reads its addresses. A failure becomes a backoff of the sandbox.
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
    const outcome = backOffSandbox(ctx, 'NetworkNotReady', `network is not ready: ${network}`)
    return { kind: 'failed', outcomes: [unused, outcome] }
  }
  const failed = await mountVolumes(ctx, needs.volumes)
  if (failed !== undefined) return { kind: 'failed', outcomes: [unused, failed] }
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
    const failed = backOffSandbox(ctx, 'FailedCreatePodSandBox', message)
    return { kind: 'failed', outcomes: isOutcomeUnknown(error) ? [failed] : [unused, failed] }
  }
  try {
    return { kind: 'created', sandbox: await inspectSandbox(ctx, made.id, made.config) }
  } catch (error) {
    // It exists: its number is used, and the next pass goes on with it (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` SyncPod, 1.36).
    const message = `Unable to get pod sandbox status: ${errorMessage(error)}`
    return { kind: 'failed', outcomes: [backOffSandbox(ctx, 'FailedStatusPodSandBox', message)] }
  }
}

/** Records why there is no sandbox to go on with, and puts the next attempt off. */
function backOffSandbox(
  ctx: PodContext,
  reason: string,
  message: string,
  awaitedPath?: string,
): ActionOutcome {
  recordEvent(ctx, { type: 'Warning', reason, message })
  const untilMs = ctx.clock.wallMs() + retryMs
  const backoff: Backoff = {
    untilMs,
    waiting: { reason: 'ContainerCreating', message },
    ...(awaitedPath !== undefined && { awaitedPath }),
  }
  return { kind: 'backoff', key: sandboxBackoff, backoff }
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
async function buildSandboxConfig(ctx: PodContext, attempt: number): Promise<cri.PodSandboxConfigInput> {
  const { pod, ref, host } = ctx
  const cgroupParent = await host.cgroups.ensure(ref.uid, pod, appliedPod(ctx))
  const dns = podDns(pod, await host.readResolver())
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
    resources: host.resources,
    userRange: pod.spec.hostUsers === false ? host.volumes.userRange(ref.uid) : undefined,
    seccompPath: host.sandboxSeccompPath?.(),
  })
}

/** Makes the pod's volumes. */
function prepareVolumes(ctx: PodContext): Promise<ReadonlyMap<string, HostVolume>> {
  return ctx.host.volumes.prepare({
    uid: ctx.ref.uid,
    pod: ctx.pod,
    source: ctx.record.source,
    warn: (message) => recordEvent(ctx, { type: 'Warning', reason: 'VolumeOwnershipNotChanged', message }),
  })
}

/**
 * Waits for the pod's volumes, which have to be ready before its sandbox is made. Returns a backoff, and records the
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
    return backOffSandbox(ctx, 'FailedMount', errorMessage(error), awaitedPathOf(error))
  }
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
  readonly #ctx: PodContext
  readonly #first: StartAction | undefined
  readonly #isFirstThere: Promise<boolean>
  #newSandbox: SandboxNeeds | undefined
  #files: Promise<ContainerFiles | undefined> | undefined
  readonly #begun: Promise<unknown>[] = []

  constructor(ctx: PodContext, actions: readonly PodAction[]) {
    this.#ctx = ctx
    const [head] = actions
    const isStart = head?.kind === 'create-sandbox' || head?.kind === 'start-container'
    const starts = isStart ? actions.filter((action) => action.kind === 'start-container') : []
    const own = starts.filter(({ awaitedImage }) => awaitedImage === undefined)
    this.images = foreseeImages(ctx, own)
    this.#first = own[0]
    this.#isFirstThere = this.#isThere()
    if (head?.kind === 'create-sandbox') this.needsOfSandbox(head.attempt)
    const sandbox = ctx.observed.sandboxes[0]
    if (head?.kind === 'start-container' && sandbox !== undefined) {
      this.sandboxConfig = this.#begin(() => buildSandboxConfig(ctx, sandbox.attempt))
      this.beginFiles()
    }
  }

  /** Begins what a new sandbox needs, where it wasn't begun yet. */
  needsOfSandbox(attempt: number): SandboxNeeds {
    this.#newSandbox ??= {
      volumes: this.#begin(() => prepareVolumes(this.#ctx)),
      config: this.#begin(() => buildSandboxConfig(this.#ctx, attempt)),
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
    return prepareContainerFiles(this.#ctx, this.#first, volumes)
  }

  /** A pod that podd doesn't know after a power cut must have nothing on the host. */
  #begin<T>(make: () => Promise<T>): Promise<T> {
    const work = this.#ctx.journal.recorded.then(make)
    // The code that needs it handles its failure.
    work.catch(() => undefined)
    this.#begun.push(work)
    return work
  }
}

/** What a container has on the host that its pod's addresses don't show in. */
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
  ctx: PodContext,
  { spec, restartCount: knownCount }: StartAction,
  volumes?: ReadonlyMap<string, HostVolume>,
): Promise<ContainerFiles> {
  const { pod, ref, host } = ctx
  const restartCount = await prepareLog(ctx, spec, knownCount)
  const [prepared, resolvConfPath, terminationLogPath] = await Promise.all([
    volumes ?? host.volumes.prepare({ uid: ref.uid, pod, source: ctx.record.source }),
    host.readResolver().then((conf) => host.volumes.writeResolvConf(ref.uid, podResolvConf(pod, conf))),
    host.volumes.makeTerminationLog(ref.uid, spec.name, restartCount),
  ])
  return { restartCount, volumes: prepared, resolvConfPath, terminationLogPath }
}

/**
 * Makes the directory of a container's logs. Where neither record nor runtime know of a container before it and yet there
 * are logs of one, it counts on from the newest of them (`pkg/kubelet/kuberuntime/kuberuntime_container.go`
 * calcRestartCountByLogDir, Kubernetes 1.36).
 */
async function prepareLog(ctx: PodContext, { name }: ContainerSpec, knownCount: number): Promise<number> {
  const { logs } = ctx.host
  const isNew = await logs.prepare(ctx.ref, name)
  const isKnown = knownCount > 0 || ctx.observed.containers.some((container) => container.name === name)
  if (isNew || isKnown) return knownCount
  const newest = await logs.newestInstance(ctx.ref, name)
  return newest === undefined ? 0 : newest + 1
}
