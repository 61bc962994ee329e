import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import {
  claimsOf,
  exclusiveClaimProblem,
  findPortClash,
  findShortage,
  hostShares,
  portHeld,
  totalShares,
  withoutShares,
} from './admit-pod.ts'
import type { HostLimits, HostShares, Neighbour, Shortage } from './admit-pod.ts'

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
  /** Versions for which only their preparation is missing. */
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

/** A pod that holds resources. */
interface Holder extends Neighbour {
  readonly shares: HostShares
}

/** A new version of one of them. */
interface Version {
  readonly key: PodKey
  readonly shares: HostShares
  /** Other pods that hold a port or claim that it requests, with the message. */
  readonly heldBy: ReadonlyMap<Holder, string>
  /** Other versions that request the same port or claim. */
  readonly competitors: ReadonlyMap<PodKey, string>
}

type JudgedVersion = Version & WaitingVersion

type SizedVersion = WaitingVersion & Holder

function withClashes(
  versions: readonly WaitingVersion[],
  holders: readonly Holder[],
): readonly JudgedVersion[] {
  const all = versions.map((version) => ({ ...version, shares: hostShares(version.pod) }))
  // Most pods have neither ports nor claims that another could want: they are compared with none.
  const competing = all.filter((version) => mayClash(version))
  const holding = holders.filter((holder) => mayClash(holder))
  return all.map((version) =>
    mayClash(version) ? judge(version, competing, holding) : judge(version, [], []),
  )
}

function mayClash({ shares, pod }: Holder): boolean {
  return shares.ports.length > 0 || claimsOf(pod.spec).length > 0
}

function judge(
  version: SizedVersion,
  all: readonly SizedVersion[],
  holders: readonly Holder[],
): JudgedVersion {
  const others = holders.filter(({ key, isPromised }) => isPromised === true || key !== version.key)
  const competitors = findClashes(
    version,
    all.filter((other) => other !== version),
  )
  return {
    ...version,
    heldBy: findClashes(version, others),
    competitors: new Map([...competitors].map(([{ key }, message]) => [key, message])),
  }
}

/** The pods that hold or request a port or claim of the version. */
function findClashes<Other extends Holder>(
  version: SizedVersion,
  others: readonly Other[],
): ReadonlyMap<Other, string> {
  return new Map(
    others.flatMap((other) => {
      const message = clashMessage(version, other)
      return message === undefined ? [] : [[other, message] as const]
    }),
  )
}

function clashMessage({ shares, pod, exclusiveClaims }: SizedVersion, other: Holder): string | undefined {
  const port = findPortClash(shares, other.shares)
  if (port !== undefined) return portHeld(port, other.key)
  return exclusiveClaimProblem(pod, [other], (name) => exclusiveClaims.includes(name))?.message
}

/** The most sets of pods that are tried for summed resources, for all versions together. */
const maxTries = 60

/**
 * Searches for versions that fit once all their pods are gone. The result is exact for ports and claims, whose holder
 * must be terminated. For summed resources it tries up to `maxTries` sets of pods.
 */
class ReplacementSearch {
  readonly #holders: readonly Holder[]
  readonly #limits: HostLimits
  /** Pods that will be terminated, for whose versions resources are reserved. */
  readonly #promised = new Map<string, Version>()
  #tries = 0

  constructor(holders: readonly Holder[], limits: HostLimits) {
    this.#holders = holders
    this.#limits = limits
  }

  isPromised({ key }: Version): boolean {
    return this.#promised.has(key)
  }

  /** Reserves for these versions, whose pods will be terminated. */
  promise(group: readonly Version[]): void {
    for (const version of group) this.#promised.set(version.key, version)
  }

  /** Resets the count of tries. */
  renew(): void {
    this.#tries = 0
  }

  /** What keeps a version from replacing its pod alone. */
  findObstacle(version: Version): string | undefined {
    const [held] = version.heldBy.values()
    return held ?? this.#competitorOf(version) ?? this.#findShortage([version])?.message
  }

  /** A group with `start` and the versions it depends on; undefined where `versions` has none. */
  findGroup<Each extends Version>(start: Each, versions: readonly Each[]): readonly Each[] | undefined {
    const byKey = new Map(versions.map((version) => [version.key, version]))
    return this.#extend({ byKey, tried: new Set() }, [start])
  }

  /** Drops versions that the others don't need. */
  shrink<Each extends Version>(group: readonly Each[]): readonly Each[] {
    let small = group
    for (const version of group) {
      const rest = small.filter((member) => member !== version)
      if (rest.length === 0) return small
      // The holders are pods of the group's versions: see `#withHolders`.
      const isHeld = rest.some(({ heldBy }) => [...heldBy.keys()].some(({ key }) => key === version.key))
      if (!isHeld && this.#findShortage(rest) === undefined) small = rest
    }
    return small
  }

  #extend<Each extends Version>(
    search: { readonly byKey: ReadonlyMap<string, Each>; readonly tried: Set<string> },
    begun: readonly Each[],
  ): readonly Each[] | undefined {
    const group = this.#withHolders(begun, search.byKey)
    if (group === undefined) return undefined
    const shortage = this.#findShortage(group)
    if (shortage === undefined) return group
    const id = group
      .map(({ key }) => key)
      .toSorted()
      .join(' ')
    if (search.tried.has(id)) return undefined
    search.tried.add(id)
    for (const helper of this.#selectHelpers(shortage, group, search.byKey)) {
      if (this.#tries === maxTries) return undefined
      this.#tries += 1
      const found = this.#extend(search, [...group, helper])
      if (found !== undefined) return found
    }
    return undefined
  }

  /**
   * Adds all holders of ports and claims that the group requests; undefined where a holder stays, or two versions
   * request the same.
   */
  #withHolders<Each extends Version>(
    begun: readonly Each[],
    byKey: ReadonlyMap<string, Each>,
  ): readonly Each[] | undefined {
    const group = new Map<PodKey, Each>(begun.map((version) => [version.key, version]))
    // It grows while it is walked.
    for (const [, version] of group) {
      if (this.#competitorOf(version) !== undefined) return undefined
      for (const holder of version.heldBy.keys()) {
        const next = holder.isPromised === true ? undefined : byKey.get(holder.key)
        if (next === undefined) return undefined
        group.set(next.key, next)
      }
    }
    const members = [...group.values()]
    return members.some(({ competitors }) => [...competitors.keys()].some((key) => group.has(key)))
      ? undefined
      : members
  }

  /** The pod for which the version's request is reserved. */
  #competitorOf({ competitors }: Version): string | undefined {
    return [...competitors].find(([key]) => this.#promised.has(key))?.[1]
  }

  /** The pods that free missing resources, the largest first, of equal ones the one that came first; none where all of them together don't free enough. */
  #selectHelpers<Each extends Version>(
    { resource, missing }: Shortage,
    group: readonly Each[],
    byKey: ReadonlyMap<string, Each>,
  ): readonly Each[] {
    const amount = (shares: HostShares): bigint => shares.requests.get(resource) ?? 0n
    const held = new Map<string, bigint>()
    for (const { key, shares, isPromised } of this.#holders)
      if (isPromised !== true) held.set(key, amount(shares))
    const helpers = [...byKey.values()]
      .filter((version) => !group.includes(version))
      .map((version) => ({ version, relief: (held.get(version.key) ?? 0n) - amount(version.shares) }))
      .filter(({ relief }) => relief > 0n)
      .toSorted((a, b) => Number(b.relief - a.relief))
    const total = helpers.reduce((sum, { relief }) => sum + relief, 0n)
    return total < missing ? [] : helpers.map(({ version }) => version)
  }

  /** What is short on the host for the versions of a group, while others terminate or once they are gone. */
  #findShortage(group: readonly Version[]): Shortage | undefined {
    const keys = new Set<string>(group.map(({ key }) => key))
    const others = this.#holders.filter(
      ({ key, hasEnded, isPromised }) => hasEnded !== true && (isPromised === true || !keys.has(key)),
    )
    const stays = ({ key, isEnding, isPromised }: Holder): boolean =>
      isPromised === true || (isEnding !== true && !this.#promised.has(key))
    const lasting = [...others.filter((holder) => stays(holder)), ...this.#promised.values()]
    const present = others.filter(({ isPromised }) => isPromised !== true)
    for (const beside of [lasting, present]) {
      const total = totalShares([...beside, ...group].map(({ shares }) => shares))
      for (const { shares } of group) {
        const shortage = findShortage(shares, withoutShares(total, shares), this.#limits)
        if (shortage !== undefined) return shortage
      }
    }
    return undefined
  }
}
