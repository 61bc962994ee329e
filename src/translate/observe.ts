import { isIP } from 'node:net'
import { isJsonObject } from '../base/json.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import type { PodRef, PodUid } from '../pod/values/ids.ts'
import type { ObservedContainer, ObservedPod, ObservedSandbox } from '../pod/state/observed.ts'
import type { LinuxContainerUser } from '../pod/state/status.ts'
import { readContainerFacts, readPodRef } from './identity/labels.ts'
import { readCriSignal } from './spec/stop-signals.ts'

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
  try {
    const parsed: unknown = JSON.parse(info ?? '')
    const pid = isJsonObject(parsed) ? parsed['pid'] : undefined
    return typeof pid === 'number' && pid > 0 ? pid : undefined
  } catch {
    // The form of `info` is the runtime's own: without JSON there is no process id in it.
    return undefined
  }
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
    stopSignal: readCriSignal(status?.stopSignal),
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
  return { uid, gid, ...(supplementalGroups.length === 0 ? {} : { supplementalGroups }) }
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
