import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { containerRetry } from '../../decide/plan/backoff.ts'
import type { Retry } from '../../decide/plan/backoff.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { allContainers } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ContainerId, PodUid, SourceName } from '../../pod/values/ids.ts'
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
import {
  hostNetworkHostsFile,
  podHostname,
  podHostsFile,
  podResolvConf,
  servicesSectionOf,
} from '../../translate/network.ts'
import { MissingReference } from '../../translate/references.ts'
import { envFileValue, parseEnvFile, resolveEnvironment } from '../../translate/resolve-environment.ts'
import type { EnvFile } from '../../translate/resolve-environment.ts'
import { toContainerConfig } from '../../translate/runtime-config.ts'
import { effectiveSecurityContext, imageUserOf, runAsRootProblem } from '../../translate/security-context.ts'
import type { LoggedContainer } from '../../logs/container-log-directories.ts'
import { awaitedPathOf } from '../../volumes/open-inside.ts'
import type { PresentImage } from '../images/image-request.ts'
import { recursiveReadOnly, tell, warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { fetchImages } from './images.ts'
import { retryLater, checkSeen, errorRetryMs, isAbandoned, makeRetry } from './pass.ts'
import type { Pass, StartAction } from './pass.ts'
import type { SandboxInUse } from './sandbox.ts'
import type { PodState } from './state.ts'
import { stopWithinGrace } from './stop.ts'

/** How long a container that could not be run is shown so: what made it end at its start has its own backoff. */
const showErrorMs = 1000

const containerTypes = {
  init: 'init_container',
  main: 'container',
  ephemeral: 'ephemeral_container',
} as const

/**
 * Image, CreateContainer, StartContainer, log link, postStart: in the kubelet's order and with its
 * events (`pkg/kubelet/kuberuntime/kuberuntime_container.go` startContainer, Kubernetes 1.36).
 * It is tried again after a failure; the other containers go on.
 */
export async function startContainer(
  env: PodEnv,
  pass: Pass,
  action: StartAction,
  sandbox: SandboxInUse,
): Promise<void> {
  const { state } = pass
  const { spec } = action
  const type = containerTypes[action.role]
  env.counters.noteStart(type)
  const { image, failure: noImage, used } = await fetchImages(env, pass, action, sandbox.config)
  if (noImage !== undefined) env.counters.noteFailedStart(type, noImage)
  if (image !== undefined) {
    checkSeen(env, state)
    // Unless the pass did so for all its restarts at once.
    state.memory.charge(action)
    await state.memory.save('required')
    const failure = await createAndStart(env, pass, action, { sandbox, image })
    // A container that waits for a path of the host was not started: its backoff doesn't grow.
    if (failure?.awaitedPath !== undefined) state.memory.refund(spec.name)
    if (failure !== undefined) {
      env.counters.noteFailedStart(type, failure.waiting.reason)
      retryLater(env, pass, containerRetry(spec.name), failure)
    }
  }
  state.useImages(used)
}

interface ContainerNeeds {
  readonly sandbox: SandboxInUse
  readonly image: PresentImage
}

/** CreateContainer, StartContainer, log link, postStart. Gives when it is tried again where that failed. */
async function createAndStart(
  env: PodEnv,
  pass: Pass,
  action: StartAction,
  needs: ContainerNeeds,
): Promise<Retry | undefined> {
  const { state, ref, signals } = pass
  const { spec } = action
  const made = await createContainer(env, pass, action, needs)
  if ('untilMs' in made) return made
  const { id } = made
  if (isPostStartHeld(env, spec)) await state.memory.notePostStart(id, state.observed)
  if (spec.lifecycle?.postStart !== undefined) state.beginPostStart(id)
  try {
    // Nothing starts once the pod is to end.
    signals.pass.throwIfAborted()
    checkSeen(env, state)
    try {
      await env.calls.startContainer({ containerId: id }, { signal: signals.manifest })
    } catch (error) {
      if (isAbandoned(pass, error)) throw error
      const afterMs = (await hasEnded(env, id)) ? showErrorMs : errorRetryMs
      return fail(env, pass, spec, 'RunContainerError', errorMessage(error), { afterMs })
    }
    const message = `Started container ${spec.name}`
    tell(env, ref, 'Started', message, spec.name)
    await linkLog(env, state, { name: spec.name, ...made })
    await runPostStart(env, pass, needs.sandbox, { spec, id })
    return undefined
  } finally {
    state.endPostStart(id)
  }
}

/** Whether a start that failed has ended the container; where it hasn't, nothing but the wait keeps it from being tried again. */
async function hasEnded(env: PodEnv, id: ContainerId): Promise<boolean> {
  try {
    const { status } = await env.calls.containerStatus({ containerId: id })
    return status?.state === 'CONTAINER_EXITED'
  } catch {
    // It isn't known: the next pass looks at the container again.
    return false
  }
}

/** Records why a container was not started. Gives when it is tried again. */
function fail(
  env: PodEnv,
  pass: Pass,
  { name }: ContainerSpec,
  reason: string,
  message: string,
  until: Parameters<typeof makeRetry>[2],
): Retry {
  warn(env, pass.ref, 'Failed', `Error: ${message}`, name)
  return makeRetry(env, { reason, message }, until)
}

interface MadeContainer {
  readonly id: ContainerId
  readonly restartCount: number
}

async function createContainer(
  env: PodEnv,
  pass: Pass,
  action: StartAction,
  { sandbox, image }: ContainerNeeds,
): Promise<MadeContainer | Retry> {
  const { spec } = action
  try {
    const files = await prepareContainerFiles(env, pass, action)
    const config = await buildContainerConfig(env, pass, { spec, sandbox, image, files })
    const { restartCount } = files
    const { containerId } = await env.calls.createContainer(
      { podSandboxId: sandbox.id, config, sandboxConfig: sandbox.config },
      { signal: pass.signals.manifest },
    )
    pass.made.add(spec.name)
    const message = `Created container: ${spec.name}`
    tell(env, pass.ref, 'Created', message, spec.name)
    return { id: containerId, restartCount }
  } catch (error) {
    if (isAbandoned(pass, error)) throw error
    const awaitedPath = awaitedPathOf(error)
    if (errorCode(error) === 'VOLUME_SETUP' && awaitedPath !== undefined)
      return failMount(env, pass, errorMessage(error), awaitedPath)
    const ours = error instanceof PoddError && !error.code.startsWith('RUNTIME_')
    const reason = ours ? 'CreateContainerConfigError' : 'CreateContainerError'
    return fail(env, pass, spec, reason, errorMessage(error), { awaitedPath })
  }
}

/** A path of the host that a volume needs is not there any more (`pkg/kubelet/kubelet.go` SyncPod, WaitForAttachAndMount, 1.36). */
function failMount(env: PodEnv, pass: Pass, message: string, awaitedPath: string): Retry {
  warn(env, pass.ref, 'FailedMount', message)
  return makeRetry(env, { reason: 'ContainerCreating', message }, { awaitedPath })
}

/** A container's files on the host that don't depend on the pod's addresses. */
interface ContainerFiles {
  /** Which start of the container this is. */
  readonly restartCount: number
  readonly volumes: ReadonlyMap<string, HostVolume>
  readonly resolvConfPath: string
  readonly terminationLogPath: string
}

/** Makes what a container has on the host. */
async function prepareContainerFiles(
  env: PodEnv,
  pass: Pass,
  { spec, restartCount: knownCount }: StartAction,
): Promise<ContainerFiles> {
  const { pod, ref } = pass
  const restartCount = await prepareLog(env, pass, spec, knownCount)
  const [volumes, resolvConfPath, terminationLogPath] = await Promise.all([
    env.volumes.prepare({ uid: ref.uid, pod, source: pass.record.source }),
    env.readResolver().then((conf) => env.volumes.writeResolvConf(ref.uid, podResolvConf(pod, conf))),
    env.volumes.makeTerminationLog(ref.uid, spec.name, restartCount),
  ])
  return { restartCount, volumes, resolvConfPath, terminationLogPath }
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

async function buildContainerConfig(
  env: PodEnv,
  pass: Pass,
  needs: ContainerNeeds & { readonly spec: ContainerSpec; readonly files: ContainerFiles },
) {
  const { spec, sandbox, image } = needs
  const { restartCount, volumes, resolvConfPath, terminationLogPath } = needs.files
  const { pod, ref } = pass
  const { source } = pass.record
  const imageUser = imageUserOf(image.image)
  const security = effectiveSecurityContext(pod.spec.securityContext, spec.securityContext)
  const rootProblem = runAsRootProblem(security, imageUser)
  if (rootProblem !== undefined) throw new PoddError('RUN_AS_NON_ROOT', rootProblem)
  const etcHostsPath = await writeHostsFile(env, pass, sandbox)
  const resolved = { pod, source, uid: ref.uid, container: spec, podIps: sandbox.ips, volumes }
  const services = await env.serviceVariables(pod, source)
  if (services.size > 0) pass.state.memory.noteServices()
  const environment = await gatherEnvironment(env, resolved, services)
  const subPaths = await bindSubPaths(env, resolved, environment)
  const userRange = pod.spec.hostUsers === false ? env.volumes.userRange(ref.uid) : undefined
  const mounts = containerMounts({
    container: spec,
    volumes,
    subPaths,
    recursiveReadOnly: recursiveReadOnly(env, pass.record),
    etcHostsPath,
    resolvConfPath,
    terminationLogPath,
    selinux: env.selinux,
    userRange,
  })
  for (const { hostPath = '', propagation = 'PROPAGATION_PRIVATE' } of mounts) {
    if (propagation !== 'PROPAGATION_PRIVATE')
      await env.volumes.checkMountSharing(hostPath, propagation === 'PROPAGATION_BIDIRECTIONAL')
  }
  for (const nested of selectNestedMounts(spec, volumes, mounts))
    await env.volumes.makeMountPoint(nested, isMountedBeside(pass, spec, volumes, nested.directory))
  return toContainerConfig({
    pod,
    uid: ref.uid,
    container: spec,
    restartCount,
    instance: env.instance,
    specHash: computeSpecHash({ host: env, pod, source, container: spec, running: undefined }),
    imageRef: image.ref,
    imageUser,
    environment,
    command: expandCommand(spec, environment, env.execLimits),
    mounts,
    resources: env.resources,
    security: env.security,
    userRange,
    targetContainerId: findTarget(pass, spec.targetContainerName),
  })
}

/** Whether another container of the pod runs that mounts this directory of a volume. */
function isMountedBeside(
  { pod, observed, made }: Pass,
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
function findTarget({ observed }: Pass, name: string | undefined): ContainerId | undefined {
  if (name === undefined || name === '') return undefined
  const target = observed.containers.find((found) => found.name === name && found.state === 'running')
  if (target !== undefined) return target.id
  throw new PoddError('REFERENCE_MISSING', `unable to find target container ${name}: it does not run`)
}

async function writeHostsFile(env: PodEnv, pass: Pass, sandbox: SandboxInUse): Promise<string> {
  const { pod, ref, record } = pass
  const services = await env.serviceNames(pod, record.source)
  // Until it is known which Services there are, it keeps what an earlier podd has written.
  const kept = services ?? servicesSectionOf((await env.volumes.lastHostsFile(ref.uid)) ?? '')
  const text = await composeHostsFile(env, pod, sandbox.ips, kept)
  const path = await env.volumes.writeHostsFile(ref.uid, text)
  env.noteHostsFile(ref.uid)
  return path
}

/** @param services see servicesSection */
export async function composeHostsFile(
  { readHostsFile }: Pick<PodEnv, 'readHostsFile'>,
  pod: Pod,
  ips: readonly string[],
  services: string,
): Promise<string> {
  const { hostNetwork, hostAliases: aliases } = pod.spec
  if (hostNetwork) return hostNetworkHostsFile({ hostFile: await readHostsFile(), aliases, services })
  return podHostsFile({ ips, hostname: podHostname(pod), aliases, services })
}

interface ResolvedFor {
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
async function gatherEnvironment(
  env: PodEnv,
  input: ResolvedFor,
  services: ReadonlyMap<string, string>,
): Promise<Environment> {
  const { pod, source, uid, container, podIps } = input
  const files = await readFiles(env, input)
  return resolveEnvironment({
    container,
    fields: { pod, uid, nodeName: env.hostName, hostIps: env.hostIps(), podIps },
    capacity: env.capacity,
    objects: env.objects.seenBy(source),
    limits: env.execLimits,
    services,
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
  env: PodEnv,
  { container, volumes }: ResolvedFor,
): Promise<ReadonlyMap<string, EnvFile | undefined>> {
  const references = container.env.flatMap(({ valueFrom }) => valueFrom?.fileKeyRef ?? [])
  const files = new Map<string, EnvFile | undefined>()
  // Each file once, and one after the other: many keys may stand in it, and it may be large.
  for (const { volumeName, path } of references) {
    const key = fileKey(volumeName, path)
    if (files.has(key)) continue
    const volume = volumes.get(volumeName)
    const text = volume === undefined ? undefined : await env.volumes.readFile(volume.hostPath, path)
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
  env: PodEnv,
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
      bound.set(index, await env.volumes.bindSubPath({ ...place, whenMissing }))
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
function isPostStartHeld({ hooks }: PodEnv, { lifecycle }: ContainerSpec): boolean {
  const handler = lifecycle?.postStart
  return handler !== undefined && hooks.isHeld(handler)
}

/** Runs the container's postStart hook; one that fails ends the container. Throws what the pass is aborted with. */
async function runPostStart(
  env: PodEnv,
  pass: Pass,
  sandbox: SandboxInUse,
  { spec, id }: StartedContainer,
): Promise<void> {
  const handler = spec.lifecycle?.postStart
  if (handler === undefined) return
  pass.loop.lookSoon()
  const run = (): Promise<void> =>
    env.hooks.run({
      pod: pass.ref,
      handler,
      hook: 'postStart',
      containerId: id,
      podIp: sandbox.ips[0],
      ports: spec.ports,
      // It takes as long as it takes, as in Kubernetes.
      timeoutMs: undefined,
      signal: pass.signals.pass,
    })
  try {
    await repeatWhileAway(env, pass, run)
    await pass.state.memory.forgetPostStart(id)
  } catch (error) {
    if (pass.signals.pass.aborted) throw pass.signals.pass.reason
    // The hook's output may hold secrets: the event says only that it failed.
    env.logger.warn(
      { pod: pass.ref.name, uid: pass.ref.uid, container: spec.name, err: error },
      'postStart hook failed',
    )
    warn(env, pass.ref, 'FailedPostStartHook', 'PostStartHook failed', spec.name)
    await stopWithinGrace(env, pass, {
      id,
      name: spec.name,
      graceSeconds: pass.pod.spec.terminationGracePeriodSeconds,
      message: `Container ${spec.name} failed post-start hook`,
      preStop: spec.lifecycle?.preStop,
      ports: spec.ports,
    })
    await pass.state.memory.forgetPostStart(id)
  }
}

/** The same for a container that an earlier podd started. */
export async function finishPostStart(
  env: PodEnv,
  pass: Pass,
  { container: { id }, spec }: Extract<PodAction, { kind: 'finish-post-start' }>,
  sandbox: SandboxInUse,
): Promise<void> {
  try {
    // It was another manifest's, or another runtime's: it counts as done.
    if (!isPostStartHeld(env, spec)) return await pass.state.memory.forgetPostStart(id)
    await runPostStart(env, pass, sandbox, { spec, id })
  } finally {
    pass.state.endPostStart(id)
  }
}

/** A hook is called at least once: a runtime that went away in the middle says nothing of the container. */
async function repeatWhileAway(env: PodEnv, pass: Pass, run: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await run()
    } catch (error) {
      if (!isCriError(error, 'RUNTIME_UNAVAILABLE')) throw error
      await env.clock.sleep(hookRetryMs, pass.signals.pass)
    }
  }
}

/**
 * Links the logs of all containers that have been started: a podd that was killed may not have come to it. One that
 * fails is tried again with the next call.
 */
export async function linkLogs(env: PodEnv, state: PodState): Promise<void> {
  for (const container of state.observed.containers)
    if (container.state !== 'created') await linkLog(env, state, container)
  state.forgetLogs()
}

/** Removes links to logs of containers that are gone: a podd that was killed may have removed the container alone. */
export async function unlinkGone({ logs, logger }: PodEnv, { ref, observed }: PodState): Promise<void> {
  try {
    await logs.retainLinks(ref, observed.containers)
  } catch (error) {
    logger.warn(
      { pod: ref.name, uid: ref.uid, err: error },
      'cannot remove the log links of removed containers',
    )
  }
}

/** A missing link costs a log shipper its file, never the pod its container: a failure is only logged, once. */
async function linkLog(
  { logs, logger }: PodEnv,
  state: PodState,
  { id, name, restartCount }: LoggedContainer,
): Promise<void> {
  const { ref, linkedLogs } = state
  if (linkedLogs.get(id) === 'linked') return
  try {
    // One that isn't there yet is looked for again.
    if (await logs.link(ref, { id, name, restartCount })) state.noteLog(id, 'linked')
  } catch (error) {
    if (!linkedLogs.has(id))
      logger.warn({ pod: ref.name, uid: ref.uid, container: name, err: error }, 'cannot link a log')
    state.noteLog(id, 'failed')
  }
}
