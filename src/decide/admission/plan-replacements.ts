import type { PodKey } from '../../pod/values/ids.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { portHeld } from './admit-pod.ts'
import type { Neighbour } from './admit-pod.ts'
import { exclusiveClaimProblem } from './exclusive-claims.ts'
import { findPortClash, hostShares } from './host-shares.ts'
import type { HostLimits } from './host-shares.ts'
import { ReplacementSearch } from './search-replacements.ts'
import type { Holder, Version } from './search-replacements.ts'

/** The preparation of a new version beside resources: its images and host checks. */
export type Readiness =
  | { readonly kind: 'unprepared' | 'preparing' | 'ready' }
  /** It can't start, or couldn't at the last attempt. */
  | { readonly kind: 'failed'; readonly message: string }

/** A new version of a running pod. */
export interface WaitingVersion {
  readonly key: PodKey
  /** With what its classes add. */
  readonly pod: Pod
  /** The names of its ReadWriteOncePod claims. */
  readonly exclusiveClaims: readonly string[]
  readonly readiness: Readiness
}

export interface ReplacementFacts {
  /** All pods that hold resources, including those to be replaced. */
  readonly pods: readonly Neighbour[]
  /** In the order of their arrival. */
  readonly versions: readonly WaitingVersion[]
  readonly limits: HostLimits
}

export interface ReplacementPlan {
  /** Groups of pods to be terminated together: their replacements fit once all of a group are gone. */
  readonly release: readonly (readonly PodKey[])[]
  /** Versions that only lack their preparation. */
  readonly prepare: readonly PodKey[]
  /** Why each of the others waits. */
  readonly waiting: ReadonlyMap<PodKey, string>
}

/**
 * Which pods may be ended for their new versions. A single version suffices where what it requests is free; versions
 * that wait for each other's resources are replaced together. No pod is terminated before each version of its group is
 * ready and fits. Of versions that request the same, the first one that can get it does; one that can't be prepared
 * delays no other.
 */
export function planReplacements({ pods, versions, limits }: ReplacementFacts): ReplacementPlan {
  const holders = pods.map((pod) => ({ ...pod, shares: hostShares(pod.pod) }))
  const all = withClashes(versions, holders)
  const search = new ReplacementSearch(holders, limits)
  const released = selectGroups(
    search,
    all.filter(({ readiness }) => readiness.kind === 'ready'),
  )
  const left = all.filter((version) => !search.isPromised(version))
  const prepared = selectGroups(
    search,
    left.filter(({ readiness }) => readiness.kind !== 'failed'),
  ).flat()
  const others = left.filter((version) => !search.isPromised(version))
  search.renew()
  return {
    release: released.map((group) => group.map(({ key }) => key)),
    prepare: prepared.flatMap(({ key, readiness }) => (readiness.kind === 'unprepared' ? [key] : [])),
    waiting: new Map(others.map((version) => [version.key, explainWait(search, version, others)])),
  }
}

type JudgedVersion = Version & WaitingVersion

/** Forms groups of these versions, each as small as possible; earlier groups take precedence. */
function selectGroups(
  search: ReplacementSearch,
  versions: readonly JudgedVersion[],
): readonly (readonly JudgedVersion[])[] {
  search.renew()
  const groups: (readonly JudgedVersion[])[] = []
  for (const start of versions) {
    if (search.isPromised(start)) continue
    const free = versions.filter((version) => !search.isPromised(version))
    const found = search.findGroup(start, free)
    if (found === undefined) continue
    const group = search.shrink(found)
    groups.push(group)
    search.promise(group)
  }
  return groups
}

type Asking = WaitingVersion & Holder

function withClashes(
  versions: readonly WaitingVersion[],
  holders: readonly Holder[],
): readonly JudgedVersion[] {
  const all = versions.map((version) => ({ ...version, shares: hostShares(version.pod) }))
  return all.map((version) => judge(version, all, holders))
}

function judge(version: Asking, all: readonly Asking[], holders: readonly Holder[]): JudgedVersion {
  const others = holders.filter(({ key, isPromised }) => isPromised === true || key !== version.key)
  const rivals = findClashes(
    version,
    all.filter((other) => other !== version),
  )
  return {
    ...version,
    heldBy: findClashes(version, others),
    rivals: new Map([...rivals].map(([{ key }, message]) => [key, message])),
  }
}

/** The pods that hold or request a port or claim of the version. */
function findClashes<Other extends Holder>(
  version: Asking,
  others: readonly Other[],
): ReadonlyMap<Other, string> {
  return new Map(
    others.flatMap((other) => {
      const message = clashMessage(version, other)
      return message === undefined ? [] : [[other, message] as const]
    }),
  )
}

function clashMessage({ shares, pod, exclusiveClaims }: Asking, other: Holder): string | undefined {
  const port = findPortClash(shares, other.shares)
  if (port !== undefined) return portHeld(port, other.key)
  return exclusiveClaimProblem(pod, [other], (name) => exclusiveClaims.includes(name))?.message
}

/** The message about what blocks a version, and which others of its group can't start. */
function explainWait(
  search: ReplacementSearch,
  version: JudgedVersion,
  versions: readonly JudgedVersion[],
): string {
  if (version.readiness.kind === 'failed') return version.readiness.message
  const message = search.findObstacle(version) ?? 'other pods are replaced first'
  const group = search.findGroup(version, versions) ?? []
  const others = group.filter(({ key }) => key !== version.key)
  const causes = others.flatMap(({ key, readiness }) =>
    readiness.kind === 'failed' ? [`that of ${key} cannot start: ${readiness.message}`] : [],
  )
  if (causes.length === 0) return message
  const together = others.map(({ key }) => key).join(', ')
  return `${message}; its new version and that of ${together} start together, and ${causes.join('; ')}`
}
