import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { containerBackoff } from '../../decide/plan/backoff.ts'
import type { PodAction, Waiting } from '../../decide/plan/pod-action.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerId, PodRef, PodUid, SourceName } from '../../pod/values/ids.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import { computeSpecHash } from '../../translate/config-hash.ts'
import { expandCommand } from '../../translate/environment.ts'
import type { Environment } from '../../translate/environment.ts'
import {
  computeSubPath,
  containerMounts,
  selectNestedMounts,
  whenSubPathMissing,
} from '../../translate/mounts.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import { hostNetworkHostsFile, podHostname, podHostsFile } from '../../translate/network.ts'
import { MissingReference } from '../../translate/references.ts'
import { envFileValue, parseEnvFile, resolveEnvironment } from '../../translate/resolve-environment.ts'
import type { EnvFile } from '../../translate/resolve-environment.ts'
import { toContainerConfig } from '../../translate/runtime-config.ts'
import { effectiveSecurityContext, imageUserOf, runAsRootProblem } from '../../translate/security-context.ts'
import { allContainers } from '../../translate/spec-view.ts'
import type { ContainerView, PodView } from '../../translate/spec-view.ts'
import { awaitedPathOf } from '../../volumes/open-inside.ts'
import type { PresentImage } from '../images/image-request.ts'
import { recordEvent } from './context.ts'
import type { ActionOutcome, PodContext, SandboxInUse } from './context.ts'
import type { LoggedContainer, PodHost } from './host.ts'
import { fetchImages } from './images.ts'
import { isAbandoned, prepareContainerFiles } from './sandbox.ts'
import type { AheadWork, ContainerFiles } from './sandbox.ts'
import { stopOneContainer } from './stop.ts'

type StartAction = Extract<PodAction, { kind: 'start-container' }>

/** How long a start that failed for a reason of ours or the runtime's isn't tried again (the kubelet's 10 s after an error). */
const retryMs = 10_000
/** How long a container that could not be run is shown so: what made it end at its start has its own backoff. */
const showErrorMs = 1000

/**
 * Image, CreateContainer, StartContainer, log link, postStart: in the kubelet's order and with its
 * events (`pkg/kubelet/kuberuntime/kuberuntime_container.go` startContainer, Kubernetes 1.36).
 * A failure becomes a backoff of this container; the other containers go on.
 */
export async function startContainer(
  ctx: PodContext,
  action: StartAction,
  { sandbox, ahead }: { readonly sandbox: SandboxInUse; readonly ahead: AheadWork },
): Promise<readonly ActionOutcome[]> {
  const { fetched, used } = await fetchImages(ctx, action, { sandbox, foreseen: ahead.images })
  const imagesUsed: ActionOutcome = { kind: 'images-used', images: used }
  if (fetched.kind === 'backoff') return [imagesUsed, fetched]
  ctx.pass.checkSeen()
  await ctx.journal.charge(action)
  const files = ahead.takeFiles(action.spec)
  const failure = await createAndStart(ctx, action, { sandbox, files, image: fetched.image })
  if (failure === undefined) return [imagesUsed]
  const isAwaited = failure.kind === 'backoff' && failure.backoff.awaitedPath !== undefined
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

/** Returns a backoff where it failed. */
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

/** Whether a start that failed has ended the container; where it hasn't, nothing but the backoff keeps it from being tried again. */
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
  until: BackoffUntil = {},
): ActionOutcome {
  recordEvent(ctx, { type: 'Warning', reason: 'Failed', message: `Error: ${message}`, container: spec.name })
  return backOff(ctx, spec.name, { reason, message }, until)
}

interface BackoffUntil {
  readonly afterMs?: number
  /** See Backoff. */
  readonly awaitedPath?: string | undefined
}

function backOff(
  ctx: PodContext,
  container: string,
  waiting: Waiting,
  { afterMs = retryMs, awaitedPath }: BackoffUntil,
): ActionOutcome {
  const untilMs = ctx.clock.wallMs() + afterMs
  const awaited = awaitedPath === undefined ? {} : { awaitedPath }
  return { kind: 'backoff', key: containerBackoff(container), backoff: { untilMs, waiting, ...awaited } }
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
  return backOff(ctx, name, { reason: 'ContainerCreating', message }, { awaitedPath: awaitedPathOf(error) })
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
    : podHostsFile({ ips: sandbox.ips, hostname: podHostname(pod), aliases: pod.spec.hostAliases })
  return host.volumes.writeHostsFile(ref.uid, text)
}

/** What resolving a pod needs of the host. */
export type ResolveHost = Pick<PodHost, 'objects' | 'capacity' | 'hostName' | 'hostIps' | 'execLimits'> & {
  readonly volumes: Pick<PodHost['volumes'], 'readFile'>
}

export interface ResolvedFor {
  readonly pod: Pod
  readonly source: SourceName
  readonly uid: PodUid
  readonly container: ContainerSpec
  /** The sandbox's addresses, the primary one first. */
  readonly podIps: readonly string[]
  /** Of the pod, prepared. */
  readonly volumes: ReadonlyMap<string, HostVolume>
}

/**
 * Gathers what a container's environment refers to: objects, fields, files in volumes.
 * @throws MissingReference where something is missing that isn't optional
 * @throws ArgumentsTooLarge where no process could have it
 */
async function gatherEnvironment(host: ResolveHost, input: ResolvedFor): Promise<Environment> {
  const { pod, source, uid, container, podIps } = input
  const files = await readFiles(host, input)
  return resolveEnvironment({
    container,
    fields: { pod, uid, nodeName: host.hostName, hostIps: host.hostIps(), podIps },
    capacity: host.capacity,
    objects: host.objects.seenBy(source),
    limits: host.execLimits,
    fileValue: ({ volumeName, path, key }) => {
      const file = files.get(fileKey(volumeName, path))
      if (file === undefined) return undefined
      try {
        return envFileValue(file, key)
      } catch (error) {
        throw new MissingReference(`couldn't parse env file ${path}: ${errorMessage(error)}`)
      }
    },
  })
}

async function readFiles(
  host: ResolveHost,
  { container, volumes }: ResolvedFor,
): Promise<ReadonlyMap<string, EnvFile | undefined>> {
  const references = container.env.flatMap(({ valueFrom }) => valueFrom?.fileKeyRef ?? [])
  const files = new Map<string, EnvFile | undefined>()
  // Each file once, and one after the other: many keys may stand in it, and it may be large.
  for (const { volumeName, path } of references) {
    const key = fileKey(volumeName, path)
    if (files.has(key)) continue
    const volume = volumes.get(volumeName)
    const text = volume === undefined ? undefined : await host.volumes.readFile(volume.hostPath, path)
    files.set(key, text === undefined ? undefined : parseEnvFile(text))
  }
  return files
}

function fileKey(volumeName: string, path: string): string {
  return `${volumeName}\0${path}`
}

/**
 * Binds the parts of volumes that a container's mounts show, by the mount's index.
 * @throws PoddError where one can't be: it leads out of its volume, its expression has no value, or it is no file of
 * those that podd writes
 */
async function bindSubPaths(
  host: { readonly volumes: Pick<PodHost['volumes'], 'bindSubPath'> },
  { pod, uid, container, volumes }: Pick<ResolvedFor, 'pod' | 'uid' | 'container' | 'volumes'>,
  environment: Environment,
): Promise<ReadonlyMap<number, string>> {
  const bound = new Map<number, string>()
  for (const [index, mount] of container.volumeMounts.entries()) {
    const subPath = computeSubPath(mount, environment)
    const volume = volumes.get(mount.name)
    const volumeSpec = pod.spec.volumes.find(({ name }) => name === mount.name)
    if (subPath === undefined || volume === undefined || volumeSpec === undefined) continue
    if (volume.image !== undefined) {
      // The runtime finds its way in an image itself.
      bound.set(index, subPath)
      continue
    }
    const volumePath = volume.hostPath
    const place = { uid, container: container.name, volume: mount.name, index, volumePath, subPath }
    const whenMissing = whenSubPathMissing(volumeSpec, subPath)
    try {
      bound.set(index, await host.volumes.bindSubPath({ ...place, whenMissing }))
    } catch (error) {
      const message = `failed to prepare subPath for volumeMount "${mount.name}" of container "${container.name}": ${errorMessage(error)}`
      throw new PoddError('SUB_PATH', message, { cause: error })
    }
  }
  return bound
}

/** How soon a postStart hook is called again that the runtime's end broke off. */
const hookRetryMs = 1000

interface StartedContainer {
  readonly spec: ContainerSpec
  readonly id: ContainerId
}

/** Whether the runtime keeps the container's postStart hook over podd's end: then it has to be on record before the start. */
function isPostStartHeld({ host }: Pick<PodContext, 'host'>, { lifecycle }: ContainerSpec): boolean {
  const handler = lifecycle?.postStart
  return handler !== undefined && host.hooks.isHeld?.(handler) === true
}

/** Runs the container's postStart hook; one that fails ends the container. Throws what the pass is aborted with. */
async function runPostStart(
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

export interface LinkLogsDeps {
  readonly host: { readonly logs: Pick<PodHost['logs'], 'link' | 'retainLinks'> }
  readonly logger: Logger
}

type Linked = Map<ContainerId, 'linked' | 'failed'>

/**
 * Links the logs of all containers that have been started: a podd that was killed may not have come to it. One that
 * fails is tried again with the next call.
 */
export async function linkLogs(deps: LinkLogsDeps, pod: ObservedPod, linked: Linked): Promise<void> {
  const { namespace, name, uid, containers } = pod
  for (const container of containers)
    if (container.state !== 'created') await linkLog(deps, { namespace, name, uid }, container, linked)
  for (const id of linked.keys()) if (!containers.some((container) => container.id === id)) linked.delete(id)
}

/** Removes links to logs of containers that are gone: a podd that was killed may have removed the container alone. */
export async function unlinkGone({ host, logger }: LinkLogsDeps, pod: ObservedPod): Promise<void> {
  const { namespace, name, uid, containers } = pod
  try {
    await host.logs.retainLinks({ namespace, name, uid }, containers)
  } catch (error) {
    logger.warn({ pod: name, uid, err: error }, 'cannot remove the log links of removed containers')
  }
}

/** A missing link costs a log shipper its file, never the pod its container: a failure is only logged, once. */
async function linkLog(
  { host, logger }: LinkLogsDeps,
  ref: PodRef,
  { id, name, restartCount }: LoggedContainer,
  linked: Linked,
): Promise<void> {
  if (linked.get(id) === 'linked') return
  try {
    // One that isn't there yet is looked for again.
    if (await host.logs.link(ref, { id, name, restartCount })) linked.set(id, 'linked')
  } catch (error) {
    if (!linked.has(id))
      logger.warn({ pod: ref.name, uid: ref.uid, container: name, err: error }, 'cannot link a log')
    linked.set(id, 'failed')
  }
}
