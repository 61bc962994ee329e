import type { PodKey } from '../../pod/values/ids.ts'
import type { Neighbour } from './admit-pod.ts'
import { findRoomLack, totalShares, withoutShares } from './host-shares.ts'
import type { HostLimits, HostShares, RoomLack } from './host-shares.ts'

/** A pod that holds resources. */
export interface Holder extends Neighbour {
  readonly shares: HostShares
}

/** A new version of one of them. */
export interface Version {
  readonly key: PodKey
  readonly shares: HostShares
  /** Other pods that hold a port or claim that it requests, with the message. */
  readonly heldBy: ReadonlyMap<Holder, string>
  /** Other versions that request the same port or claim. */
  readonly rivals: ReadonlyMap<PodKey, string>
}

/** The most sets of pods that are tried for summed resources, for all versions together. */
const maxTries = 60

/**
 * Searches for versions that fit once all their pods are gone. The result is exact for ports and claims, whose holder
 * must be terminated. For summed resources it tries up to `maxTries` sets of pods.
 */
export class ReplacementSearch {
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
    return held ?? this.#rivalOf(version) ?? this.#findLack([version])?.message
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
      const isHeld = rest.some(({ heldBy }) =>
        [...heldBy.keys()].some((holder) => replaces([version], holder)),
      )
      if (!isHeld && this.#findLack(rest) === undefined) small = rest
    }
    return small
  }

  #extend<Each extends Version>(
    search: { readonly byKey: ReadonlyMap<string, Each>; readonly tried: Set<string> },
    begun: readonly Each[],
  ): readonly Each[] | undefined {
    const group = this.#withHolders(begun, search.byKey)
    if (group === undefined) return undefined
    const lack = this.#findLack(group)
    if (lack === undefined) return group
    const id = group
      .map(({ key }) => key)
      .toSorted()
      .join(' ')
    if (search.tried.has(id)) return undefined
    search.tried.add(id)
    for (const helper of this.#selectHelpers(lack, group, search.byKey)) {
      this.#tries += 1
      if (this.#tries > maxTries) return undefined
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
      if (this.#rivalOf(version) !== undefined) return undefined
      for (const holder of version.heldBy.keys()) {
        const next = holder.isPromised === true ? undefined : byKey.get(holder.key)
        if (next === undefined) return undefined
        group.set(next.key, next)
      }
    }
    const members = [...group.values()]
    return members.some(({ rivals }) => [...rivals.keys()].some((key) => group.has(key)))
      ? undefined
      : members
  }

  /** The pod for which the version's request is reserved. */
  #rivalOf({ rivals }: Version): string | undefined {
    return [...rivals].find(([key]) => this.#promised.has(key))?.[1]
  }

  /** The pods that free missing resources, the largest first; none where all of them together don't free enough. */
  #selectHelpers<Each extends Version>(
    { resource, missing }: RoomLack,
    group: readonly Each[],
    byKey: ReadonlyMap<string, Each>,
  ): readonly Each[] {
    const amount = (shares: HostShares): bigint => shares.requests.get(resource) ?? 0n
    const held = new Map<string, bigint>()
    for (const { key, shares, hasEnded, isPromised } of this.#holders)
      if (hasEnded !== true && isPromised !== true) held.set(key, amount(shares))
    const helpers = [...byKey.values()]
      .filter((version) => !group.includes(version))
      .map((version) => ({ version, relief: (held.get(version.key) ?? 0n) - amount(version.shares) }))
      .filter(({ relief }) => relief > 0n)
      .toSorted((a, b) => (a.relief < b.relief ? 1 : -1))
    const total = helpers.reduce((sum, { relief }) => sum + relief, 0n)
    return total < missing ? [] : helpers.map(({ version }) => version)
  }

  /** What the host lacks for the versions of a group, while others terminate or once they are gone. */
  #findLack(group: readonly Version[]): RoomLack | undefined {
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
        const lack = findRoomLack(shares, withoutShares(total, shares), this.#limits)
        if (lack !== undefined) return lack
      }
    }
    return undefined
  }
}

/** Whether the holder is the pod of one of these versions. */
function replaces(group: readonly Version[], { key, isPromised }: Holder): boolean {
  return isPromised !== true && group.some((version) => version.key === key)
}
