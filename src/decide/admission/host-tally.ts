import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { HostLimits, HostPort, HostShares, RoomLack, SharesTotal } from './host-shares.ts'
import { findRoomLack, hostShares, portsClash, smallerShares } from './host-shares.ts'

/** A pod that has something of the host; see `Neighbour`. */
interface TalliedPod {
  readonly pod: Pod
  readonly hasEnded?: boolean
  readonly isEnding?: boolean
  readonly isPromised?: boolean
  readonly next?: Pod | undefined
}

/** A sum of shares that grows. */
class Sum implements SharesTotal {
  pods = 0
  readonly requests = new Map<string, bigint>()

  add({ requests }: HostShares): void {
    this.pods += 1
    for (const [name, amount] of requests) this.requests.set(name, (this.requests.get(name) ?? 0n) + amount)
  }
}

/**
 * What pods have of the host together. Pods that are admitted one after another are added to it, so that each costs the
 * same however many there are.
 */
export class HostTally {
  /** By port and protocol. */
  readonly #ports = new Map<string, HostPort[]>()
  readonly #lasting = new Sum()
  readonly #present = new Sum()

  constructor(neighbours: Iterable<TalliedPod>) {
    for (const neighbour of neighbours) this.add(neighbour)
  }

  add({ pod, hasEnded, isEnding, isPromised, next }: TalliedPod): void {
    const shares = hostShares(pod)
    for (const port of shares.ports) {
      const key = portKey(port)
      const held = this.#ports.get(key)
      if (held === undefined) this.#ports.set(key, [port])
      else held.push(port)
    }
    if (hasEnded === true) return
    if (isEnding !== true)
      this.#lasting.add(next === undefined ? shares : smallerShares(shares, hostShares(next)))
    if (isPromised !== true) this.#present.add(shares)
  }

  /** Whether a port that a pod requests is held. */
  holdsPortOf({ ports }: HostShares): boolean {
    return ports.some(
      (port) => this.#ports.get(portKey(port))?.some((held) => portsClash(port, held)) === true,
    )
  }

  /** What the host lacks for a pod even when those that are ending are gone. */
  findLastingLack(wanted: HostShares, limits: HostLimits): RoomLack | undefined {
    return findRoomLack(wanted, this.#lasting, limits)
  }

  /** What the host lacks for a pod as things are. */
  findPresentLack(wanted: HostShares, limits: HostLimits): RoomLack | undefined {
    return findRoomLack(wanted, this.#present, limits)
  }
}

function portKey({ port, protocol }: HostPort): string {
  return `${port}/${protocol}`
}
