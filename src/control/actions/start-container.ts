import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { containerHold } from '../../decide/plan/backoff.ts'
import type { PodAction, Waiting } from '../../decide/plan/pod-action.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { toContainerConfig } from '../../translate/runtime-config.ts'
import { expandCommand } from '../../translate/environment.ts'
import { hostNetworkHostsFile, podHostsFile, podHostname } from '../../translate/network.ts'
import { containerMounts, selectNestedMounts } from '../../translate/mounts.ts'
import { effectiveSecurityContext, imageUserOf, runAsRootProblem } from '../../translate/security-context.ts'
import { allContainers } from '../../translate/spec-view.ts'
import type { ContainerView, PodView } from '../../translate/spec-view.ts'
import { awaitedPathOf } from '../../volumes/open-inside.ts'
import type { ActionOutcome } from './action-outcome.ts'
import { computeSpecHash } from '../../translate/config-hash.ts'
import { prepareContainerFiles } from './ahead.ts'
import type { AheadWork, ContainerFiles } from './ahead.ts'
import { isAbandoned } from './create-sandbox.ts'
import { fetchImages } from './fetch-images.ts'
import type { PresentImage } from '../images/image-request.ts'
import { linkLog } from './link-logs.ts'
import type { PodContext, SandboxInUse } from './pod-context.ts'
import { recordEvent } from './pod-context.ts'
import { bindSubPaths, gatherEnvironment } from './resolve-pod.ts'
import { isPostStartHeld, runPostStart } from './run-post-start.ts'

type StartAction = Extract<PodAction, { kind: 'start-container' }>

/** How long a start that failed for a reason of ours or the runtime's isn't tried again (the kubelet's 10 s after an error). */
const retryMs = 10_000
/** How long a container that could not be run is shown so: what made it end at its start has its own backoff. */
const showErrorMs = 1000

/**
 * Image, CreateContainer, StartContainer, log link, postStart: in the kubelet's order and with its
 * events (`pkg/kubelet/kuberuntime/kuberuntime_container.go` startContainer, Kubernetes 1.36).
 * A failure becomes a hold on this container; the other containers go on.
 */
export async function startContainer(
  ctx: PodContext,
  action: StartAction,
  { sandbox, ahead }: { readonly sandbox: SandboxInUse; readonly ahead: AheadWork },
): Promise<readonly ActionOutcome[]> {
  const { fetched, used } = await fetchImages(ctx, action, { sandbox, foreseen: ahead.images })
  const imagesUsed: ActionOutcome = { kind: 'images-used', images: used }
  if (fetched.kind === 'held') return [imagesUsed, fetched]
  ctx.pass.checkSeen()
  await ctx.journal.charge(action)
  const files = ahead.takeFiles(action.spec)
  const failure = await createAndStart(ctx, action, { sandbox, files, image: fetched.image })
  if (failure === undefined) return [imagesUsed]
  const isAwaited = failure.kind === 'held' && failure.hold.awaitedPath !== undefined
  return [
    imagesUsed,
    ...(isAwaited ? [{ kind: 'backoff-unused', container: action.spec.name } as const] : []),
    failure,
  ]
}

interface ContainerNeeds {
  readonly sandbox: SandboxInUse
  readonly image: PresentImage
  /** Those that were begun before; they may have failed. */
  readonly files: Promise<ContainerFiles | undefined> | undefined
}

/** Returns a hold where it failed. */
async function createAndStart(
  ctx: PodContext,
  action: StartAction,
  needs: ContainerNeeds,
): Promise<ActionOutcome | undefined> {
  const { spec } = action
  const made = await createContainer(ctx, action, needs)
  if ('kind' in made) return made
  const { id } = made
  if (isPostStartHeld(ctx, spec)) await ctx.journal.notePostStart(id)
  if (spec.lifecycle?.postStart !== undefined) ctx.inFlight.postStarts.add(id)
  try {
    return await bringUp(ctx, needs.sandbox, action, made)
  } finally {
    ctx.inFlight.postStarts.delete(id)
  }
}

/** StartContainer, log link, postStart. */
async function bringUp(
  ctx: PodContext,
  sandbox: SandboxInUse,
  { spec }: StartAction,
  made: MadeContainer,
): Promise<ActionOutcome | undefined> {
  const { id } = made
  // Nothing starts once the pod is to end.
  ctx.signals.pass.throwIfAborted()
  ctx.pass.checkSeen()
  try {
    await ctx.host.calls.startContainer({ containerId: id }, { signal: ctx.signals.manifest })
  } catch (error) {
    if (isAbandoned(ctx, error)) throw error
    const afterMs = (await hasEnded(ctx, id)) ? showErrorMs : retryMs
    return fail(ctx, spec, 'RunContainerError', errorMessage(error), { afterMs })
  }
  recordEvent(ctx, {
    type: 'Normal',
    reason: 'Started',
    message: `Started container ${spec.name}`,
    container: spec.name,
  })
  await linkLog(ctx, ctx.ref, { name: spec.name, ...made }, ctx.inFlight.linkedLogs)
  await runPostStart(ctx, sandbox, { spec, id })
  return undefined
}

/** Whether a start that failed has ended the container; where it hasn't, nothing but the hold keeps it from being tried again. */
async function hasEnded(ctx: PodContext, id: ContainerId): Promise<boolean> {
  try {
    const { status } = await ctx.host.calls.containerStatus({ containerId: id })
    return status?.state === 'CONTAINER_EXITED'
  } catch {
    // It isn't known: the next pass looks at the container again.
    return false
  }
}

function fail(
  ctx: PodContext,
  spec: ContainerSpec,
  reason: string,
  message: string,
  until: HoldUntil = {},
): ActionOutcome {
  recordEvent(ctx, { type: 'Warning', reason: 'Failed', message: `Error: ${message}`, container: spec.name })
  return hold(ctx, spec.name, { reason, message }, until)
}

interface HoldUntil {
  readonly afterMs?: number
  /** See Hold. */
  readonly awaitedPath?: string | undefined
}

function hold(
  ctx: PodContext,
  container: string,
  waiting: Waiting,
  { afterMs = retryMs, awaitedPath }: HoldUntil,
): ActionOutcome {
  const untilMs = ctx.clock.wallMs() + afterMs
  const awaited = awaitedPath === undefined ? {} : { awaitedPath }
  return { kind: 'held', key: containerHold(container), hold: { untilMs, waiting, ...awaited } }
}

interface MadeContainer {
  readonly id: ContainerId
  readonly restartCount: number
}

async function createContainer(
  ctx: PodContext,
  action: StartAction,
  { sandbox, image, files: begun }: ContainerNeeds,
): Promise<MadeContainer | ActionOutcome> {
  const { spec } = action
  try {
    const files = (await begun) ?? (await prepareContainerFiles(ctx, action))
    const config = await buildContainerConfig(ctx, { spec, sandbox, image, files })
    const { restartCount } = files
    const { containerId } = await ctx.host.calls.createContainer(
      { podSandboxId: sandbox.id, config, sandboxConfig: sandbox.config },
      { signal: ctx.signals.manifest },
    )
    ctx.made.add(spec.name)
    const message = `Created container: ${spec.name}`
    recordEvent(ctx, { type: 'Normal', reason: 'Created', message, container: spec.name })
    return { id: containerId, restartCount }
  } catch (error) {
    if (isAbandoned(ctx, error)) throw error
    if (errorCode(error) === 'VOLUME_SETUP') return failMount(ctx, spec, error)
    const ours = error instanceof PoddError && !error.code.startsWith('RUNTIME_')
    const reason = ours ? 'CreateContainerConfigError' : 'CreateContainerError'
    return fail(ctx, spec, reason, errorMessage(error), { awaitedPath: awaitedPathOf(error) })
  }
}

/** One of the pod's volumes is not there any more (`pkg/kubelet/kubelet.go` SyncPod, WaitForAttachAndMount, 1.36). */
function failMount(ctx: PodContext, { name }: ContainerSpec, error: unknown): ActionOutcome {
  const message = errorMessage(error)
  recordEvent(ctx, { type: 'Warning', reason: 'FailedMount', message })
  return hold(ctx, name, { reason: 'ContainerCreating', message }, { awaitedPath: awaitedPathOf(error) })
}

async function buildContainerConfig(
  ctx: PodContext,
  needs: Omit<ContainerNeeds, 'files'> & { readonly spec: ContainerSpec; readonly files: ContainerFiles },
) {
  const { spec, sandbox, image } = needs
  const { restartCount, volumes, resolvConfPath, terminationLogPath } = needs.files
  const { pod, ref, host } = ctx
  const { source } = ctx.record
  const imageUser = imageUserOf(image.image)
  const podView: PodView = pod
  const containerView: ContainerView = spec
  const security = effectiveSecurityContext(podView.spec.securityContext, containerView.securityContext)
  const rootProblem = runAsRootProblem(security, imageUser)
  if (rootProblem !== undefined) throw new PoddError('RUN_AS_NON_ROOT', rootProblem)
  const etcHostsPath = await writeHostsFile(ctx, sandbox)
  const resolved = { pod, source, uid: ref.uid, container: spec, podIps: sandbox.ips, volumes }
  const environment = await gatherEnvironment(host, resolved)
  const subPaths = await bindSubPaths(host, resolved, environment)
  const userRange = pod.spec.hostUsers === false ? host.volumes.userRange(ref.uid) : undefined
  const mounts = containerMounts({
    container: spec,
    volumes,
    subPaths,
    recursiveReadOnly: ctx.recursiveReadOnly,
    etcHostsPath,
    resolvConfPath,
    terminationLogPath,
    selinux: host.selinux,
    userRange,
  })
  for (const { hostPath = '', propagation = 'PROPAGATION_PRIVATE' } of mounts) {
    if (propagation !== 'PROPAGATION_PRIVATE')
      await host.volumes.checkMountSharing(hostPath, propagation === 'PROPAGATION_BIDIRECTIONAL')
  }
  for (const nested of selectNestedMounts(spec, volumes, mounts))
    await host.volumes.makeMountPoint(nested, isMountedBeside(ctx, spec, volumes, nested.directory))
  return toContainerConfig({
    pod,
    uid: ref.uid,
    container: spec,
    restartCount,
    instance: host.instance,
    specHash: computeSpecHash({ host, pod, source, container: spec, running: undefined }),
    imageRef: image.ref,
    imageUser,
    environment,
    command: expandCommand(spec, environment, host.execLimits),
    mounts,
    resources: host.resources,
    security: host.security,
    userRange,
    targetContainerId: findTarget(ctx, containerView.targetContainerName),
  })
}

/** Whether another container of the pod runs that mounts this directory of a volume. */
function isMountedBeside(
  { pod, observed, made }: PodContext,
  { name: own }: ContainerSpec,
  volumes: ContainerFiles['volumes'],
  directory: string,
): boolean {
  const running = observed.containers.filter(({ state }) => state === 'running').map(({ name }) => name)
  const mayRun = new Set([...running, ...made])
  return allContainers(pod.spec).some(
    ({ name, volumeMounts }) =>
      name !== own &&
      mayRun.has(name) &&
      volumeMounts.some((mount) => volumes.get(mount.name)?.hostPath === directory),
  )
}

/** The container whose processes an ephemeral container is to see. */
function findTarget({ observed }: PodContext, name: string | undefined): ContainerId | undefined {
  if (name === undefined || name === '') return undefined
  const target = observed.containers.find((found) => found.name === name && found.state === 'running')
  if (target !== undefined) return target.id
  throw new PoddError('REFERENCE_MISSING', `unable to find target container ${name}: it does not run`)
}

async function writeHostsFile(ctx: PodContext, sandbox: SandboxInUse): Promise<string> {
  const { pod, ref, host } = ctx
  const text = pod.spec.hostNetwork
    ? hostNetworkHostsFile({ hostFile: await host.readHostsFile(), aliases: pod.spec.hostAliases })
    : podHostsFile({ ips: sandbox.ips, hostname: podHostname(pod, ''), aliases: pod.spec.hostAliases })
  return host.volumes.writeHostsFile(ref.uid, text)
}
