/* Pods from the runtime's replies, and what it says of itself. */
import { isIP } from 'node:net'
import { isJsonObject, jsonAt, listOrEmpty, parseJson } from '../base/json.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import { cniHint } from '../pod/state/observed.ts'
import type {
  CniPlaces,
  HandlerFeatures,
  ObservedContainer,
  ObservedPod,
  ObservedSandbox,
  RuntimeFeatures,
} from '../pod/state/observed.ts'
import type { LinuxContainerUser } from '../pod/state/status.ts'
import type { PodRef, PodUid } from '../pod/values/ids.ts'
import { readContainerFacts, readPodRef } from './identity.ts'

/** The runtime's replies. An entry without a status in the map is observed from the list alone. */
export interface RuntimeListing {
  readonly sandboxes: readonly cri.PodSandbox[]
  readonly containers: readonly cri.Container[]
  /** By sandbox id: only the status has addresses and namespaces. */
  readonly sandboxStatuses: ReadonlyMap<string, cri.PodSandboxStatus>
  /** By container id: only the status has times, exit code and reason. */
  readonly containerStatuses: ReadonlyMap<string, cri.ContainerStatus>
  /** Whether a container's exit is taken from an event, and not reported by the runtime yet. */
  readonly isProvisional?: (status: cri.ContainerStatus) => boolean
}

/** CRI's states in podd's terms. */
export const containerStates: Readonly<Record<cri.ContainerState, ObservedContainer['state']>> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
  CONTAINER_UNKNOWN: 'unknown',
}

/** Everything the runtime holds that a kubelet's or podd's labels mark as a pod's, by the pod's UID. */
export function observePods(listing: RuntimeListing): ReadonlyMap<PodUid, ObservedPod> {
  const pods = new Map<
    PodUid,
    { ref: PodRef; sandboxes: ObservedSandbox[]; containers: ObservedContainer[] }
  >()
  const podOf = (labels: Readonly<Record<string, string>>) => {
    const ref = readPodRef(labels)
    if (ref === undefined) return undefined
    const known = pods.get(ref.uid)
    if (known !== undefined) return known
    const fresh = { ref, sandboxes: [], containers: [] }
    pods.set(ref.uid, fresh)
    return fresh
  }
  for (const sandbox of listing.sandboxes) {
    podOf(sandbox.labels)?.sandboxes.push(observeSandbox(sandbox, listing.sandboxStatuses.get(sandbox.id)))
  }
  for (const container of listing.containers) {
    const status = listing.containerStatuses.get(container.id)
    const observed = observeContainer(container, status)
    const isProvisional = status !== undefined && listing.isProvisional?.(status) === true
    podOf(container.labels)?.containers.push(isProvisional ? { ...observed, provisional: true } : observed)
  }
  return new Map(
    [...pods].map(([uid, { ref, sandboxes, containers }]) => [
      uid,
      { ...ref, sandboxes: sandboxes.sort(compareSandboxes), containers: newestFirst(containers) },
    ]),
  )
}

export function observeSandbox(
  listed: cri.PodSandbox,
  status: cri.PodSandboxStatus | undefined,
): ObservedSandbox {
  return {
    id: listed.id,
    attempt: listed.metadata?.attempt ?? 0,
    ready: (status ?? listed).state === 'SANDBOX_READY',
    createdAtMs: nsToMs(listed.createdAt) ?? 0,
    ips: readSandboxIps(status?.network),
    hostNetwork: status?.linux?.namespaces?.options?.network === 'NODE',
    annotations: listed.annotations,
  }
}

/**
 * A sandbox's addresses, the primary one first. One that is no address is as good as none, and an additional one makes all
 * unusable (`pkg/kubelet/kuberuntime/kuberuntime_sandbox.go` determinePodSandboxIPs, 1.36).
 */
export function readSandboxIps(network: cri.PodSandboxNetworkStatus | null | undefined): readonly string[] {
  if (network === null || network === undefined || network.ip === '') return []
  const ips = [network.ip, ...network.additionalIps.map(({ ip }) => ip)]
  return ips.every((ip) => isIP(ip) !== 0) ? ips : []
}

/** The process in the `info` of a verbose status of a container or sandbox: containerd and CRI-O alike tell it. */
export function readPid(info: string | undefined): number | undefined {
  // The form of `info` is the runtime's own: without JSON there is no process id in it.
  const pid = jsonAt(parseJson(info), 'pid')
  return typeof pid === 'number' && pid > 0 ? pid : undefined
}

export function observeContainer(
  listed: cri.Container,
  status: cri.ContainerStatus | undefined,
): ObservedContainer {
  const facts = readContainerFacts(listed.annotations)
  const state = containerStates[(status ?? listed).state]
  const ended = state === 'exited' && status !== undefined
  return {
    id: listed.id,
    sandboxId: listed.podSandboxId,
    name: listed.metadata?.name ?? '',
    restartCount: facts.restartCount ?? listed.metadata?.attempt ?? 0,
    state,
    createdAtMs: nsToMs(listed.createdAt) ?? 0,
    startedAtMs: nsToMs(status?.startedAt),
    finishedAtMs: ended ? nsToMs(status.finishedAt) : undefined,
    exitCode: ended ? status.exitCode : undefined,
    reason: status?.reason ?? '',
    message: status?.message ?? '',
    image: facts.image ?? status?.image?.image ?? listed.image?.image ?? '',
    imageId:
      [status?.imageRef, listed.imageRef, listed.imageId].find((ref) => ref !== undefined && ref !== '') ??
      '',
    specHash: facts.specHash,
    resources: facts.resources,
    user: observeUser(status?.user),
    stopSignal: readSignal(status?.stopSignal),
    podLimits: facts.podLimits,
    annotations: listed.annotations,
  }
}

/**
 * Runtimes from before CRI had it (containerd 1.x) report none: the value is then unknown, whatever the spec requests.
 */
function observeUser(user: cri.ContainerUser | null | undefined): LinuxContainerUser | undefined {
  const linux = user?.linux
  if (linux === null || linux === undefined) return undefined
  const { uid, gid, supplementalGroups } = linux
  return { uid, gid, ...(supplementalGroups.length > 0 && { supplementalGroups }) }
}

/** As Kubernetes names it (`SIGRTMIN+3`); undefined where the runtime does not report it. */
function readSignal(signal: cri.Signal | undefined): string | undefined {
  const [, name] = /^SIGNAL_(SIG\w+)$/u.exec(signal ?? '') ?? []
  return name?.replace('PLUS', '+').replace('MINUS', '-')
}

/** CRI's nanoseconds since the epoch in milliseconds; its zero times (0, or Go's year 1) are undefined. */
export function nsToMs(ns: number | undefined): number | undefined {
  return ns === undefined || ns <= 0 ? undefined : Math.floor(ns / 1e6)
}

/** Attempts increase whatever the wall clock does, so they are compared before creation times. */
function compareSandboxes(a: ObservedSandbox, b: ObservedSandbox): number {
  return b.attempt - a.attempt || b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1)
}

/**
 * Newest first by creation; among the containers of one name by restart count, which no step of the wall
 * clock (a board without a battery, before its first NTP answer) can turn around.
 */
function newestFirst(containers: readonly ObservedContainer[]): readonly ObservedContainer[] {
  const byTime = containers.toSorted((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  const byName = Map.groupBy(byTime, ({ name }) => name)
  const inOrder = new Map(
    [...byName].map(([name, group]) => [
      name,
      group.toSorted((a, b) => b.restartCount - a.restartCount || b.createdAtMs - a.createdAtMs).values(),
    ]),
  )
  return byTime.map((container) => inOrder.get(container.name)?.next().value ?? container)
}

/**
 * Reads a verbose Status reply. containerd 2.0 and later list their handlers with their features; from older ones only
 * the names are known, from their reported configuration, and they don't have the features that later ones report.
 */
export function readRuntimeFeatures(
  version: { readonly runtimeName: string; readonly runtimeVersion: string },
  status: Pick<cri.StatusResponse, 'runtimeHandlers' | 'features' | 'info'>,
): RuntimeFeatures {
  const isContainerd = version.runtimeName === 'containerd'
  const release = releaseNumber(version.runtimeVersion)
  return {
    runtime: `${version.runtimeName} ${version.runtimeVersion.replace(/^v/u, '').replace(/~.*$/u, '')}`,
    handlers:
      status.runtimeHandlers.length > 0
        ? new Map(status.runtimeHandlers.map(({ name, features }) => [name, features ?? oldHandler]))
        : configuredHandlers(status.info),
    supplementalGroupsPolicy: status.features?.supplementalGroupsPolicy ?? false,
    // No runtime reports these. Another one than containerd that has no images as volumes fails to mount them; one that
    // doesn't know the signal would ignore it.
    imageVolumes: !isContainerd || release >= 2001,
    imageSubPaths: !isContainerd || release >= 2002,
    stopSignals: isContainerd && release >= 2003,
  }
}

/** 2003 is 2.3. */
function releaseNumber(version: string): number {
  const [, major = '0', minor = '0'] = /^v?(\d+)\.(\d+)/u.exec(version) ?? []
  return Number(major) * 1000 + Number(minor)
}

const oldHandler: HandlerFeatures = { userNamespaces: false, recursiveReadOnlyMounts: false }

/** `info.config` of containerd 1.x: its CRI plugin's configuration as JSON. */
function configuredHandlers(
  info: Readonly<Record<string, string>>,
): ReadonlyMap<string, HandlerFeatures> | undefined {
  const runtimes = jsonAt(parseJson(info['config']), 'containerd', 'runtimes')
  if (!isJsonObject(runtimes)) return undefined
  return new Map(['', ...Object.keys(runtimes)].map((name) => [name, oldHandler]))
}

/** Why the runtime takes no pods at all, in the kubelet's words (`pkg/kubelet/kubelet.go` updateRuntimeUp, 1.36). */
export function readRuntimeProblem(status: cri.StatusResponse): string | undefined {
  const problem = conditionProblem(status, 'RuntimeReady')
  return problem === undefined ? undefined : `container runtime not ready: ${problem}`
}

/** Why the runtime takes none with a network of their own, and what to do about it. */
export function readNetworkProblem(status: cri.StatusResponse, isOwnRuntime: boolean): string | undefined {
  const problem = conditionProblem(status, 'NetworkReady')
  if (problem === undefined) return undefined
  const hint = isOwnRuntime
    ? 'podd checks the config of its own containerd every half a minute, and writes it again where it is gone.'
    : cniHint(readCniPlaces(status.info))
  return `container runtime network not ready: ${problem}. ${hint}`
}

function conditionProblem({ status }: cri.StatusResponse, wanted: string): string | undefined {
  const condition = status?.conditions.find(({ type }) => type === wanted)
  if (condition === undefined || condition.status) return undefined
  return `${wanted}=false reason:${condition.reason} message:${condition.message}`
}

/** From a verbose Status reply. */
export function readCniPlaces(info: cri.StatusResponse['info']): CniPlaces {
  const confDir = jsonAt(parseJson(info['config']), 'cni', 'confDir')
  const dirs = listOrEmpty(jsonAt(parseJson(info['cniconfig']), 'PluginDirs'))
  return {
    cniConfDir: typeof confDir === 'string' && confDir !== '' ? confDir : undefined,
    cniPluginDirs: dirs.filter((dir) => typeof dir === 'string'),
  }
}
