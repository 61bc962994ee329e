/** The wanted state of the pods' bridge and of the host's ends of their network pairs, from the plugins' results. */
export interface BridgeWish {
  /** The bridge's hardware address, which pods have cached; undefined where no plugin reported it. */
  readonly mac: string | undefined
  /** The bridge's addresses with their prefix: `10.86.0.1/24`. */
  readonly gateways: readonly string[]
  /** The host's ends, by name. */
  readonly ports: readonly string[]
  /**
   * Whether a pod has host ports: the host reaches them over its loopback too (the portmap plugin's `route_localnet`).
   */
  readonly hasHostPorts: boolean
}

/** The actual state. */
export interface BridgeState {
  /** Undefined where there is no bridge. */
  readonly bridge:
    | {
        readonly isUp: boolean
        /** Without a prefix; undefined where they can't be read. */
        readonly addresses: readonly string[] | undefined
        readonly routesLocalnet: boolean
      }
    | undefined
  /** The name of the bridge that each existing end is attached to, empty for none. */
  readonly masters: ReadonlyMap<string, string>
  /** The families whose packets the kernel forwards. */
  readonly forwards: { readonly ipv4: boolean; readonly ipv6: boolean }
}

export type BridgeRepair =
  | { readonly kind: 'make-bridge'; readonly mac: string | undefined }
  | { readonly kind: 'raise-bridge' }
  | { readonly kind: 'add-address'; readonly address: string }
  | { readonly kind: 'attach'; readonly port: string }
  | { readonly kind: 'route-localnet' }
  | { readonly kind: 'forward'; readonly family: 'ipv4' | 'ipv6' }

/**
 * The steps that repair the bridge with no more than a gap for the pods, to the state that the plugins bridge and
 * portmap make (`plugins/main/bridge/bridge.go` setupBridge, `plugins/meta/portmap/portmap.go`,
 * containernetworking/plugins 1.x). In the order in which they must be done; none where no pod is on the network. A
 * missing end belongs to a terminating pod, or can only be recreated with its pod's sandbox.
 */
export function planBridgeRepair(
  bridgeName: string,
  wish: BridgeWish,
  state: BridgeState,
): readonly BridgeRepair[] {
  const ports = wish.ports.filter((port) => state.masters.has(port))
  if (ports.length === 0) return []
  const { bridge } = state
  const repairs: BridgeRepair[] = []
  if (bridge === undefined) repairs.push({ kind: 'make-bridge', mac: wish.mac })
  if (bridge?.isUp !== true) repairs.push({ kind: 'raise-bridge' })
  const isAdrift = (port: string): boolean => bridge === undefined || state.masters.get(port) !== bridgeName
  const adrift = ports.filter((port) => isAdrift(port))
  repairs.push(...adrift.map((port) => ({ kind: 'attach', port }) as const))
  // A bridge without carrier hides its addresses: they can be read once a port is attached.
  const known = bridge?.isUp === true ? bridge.addresses : []
  for (const address of wish.gateways)
    if (known?.includes(address.split('/')[0] ?? '') === false) repairs.push({ kind: 'add-address', address })
  if (wish.hasHostPorts && bridge?.routesLocalnet !== true) repairs.push({ kind: 'route-localnet' })
  const isIpv6 = (address: string): boolean => address.includes(':')
  if (!state.forwards.ipv4 && !wish.gateways.every(isIpv6)) repairs.push({ kind: 'forward', family: 'ipv4' })
  if (!state.forwards.ipv6 && wish.gateways.some(isIpv6)) repairs.push({ kind: 'forward', family: 'ipv6' })
  return repairs
}

/** A message about what was wrong: `bridge podd0 was missing; 2 pods were not attached to it`. */
export function describeRepairs(bridgeName: string, repairs: readonly BridgeRepair[]): string {
  const attached = repairs.filter(({ kind }) => kind === 'attach').length
  const isMade = repairs.some(({ kind }) => kind === 'make-bridge')
  const parts = repairs.flatMap((repair): readonly string[] => {
    switch (repair.kind) {
      case 'make-bridge':
        return [`bridge ${bridgeName} is missing`]
      case 'raise-bridge':
        return isMade ? [] : [`bridge ${bridgeName} is down`]
      case 'add-address':
        return isMade ? [] : [`bridge ${bridgeName} lacks its address ${repair.address}`]
      case 'attach':
        return []
      case 'route-localnet':
        return isMade
          ? []
          : [`host ports are not reachable over 127.0.0.1 (route_localnet of ${bridgeName} is 0)`]
      case 'forward':
        return [`the host does not forward ${repair.family === 'ipv4' ? 'IPv4' : 'IPv6'} packets`]
    }
  })
  const pods = attached === 1 ? '1 pod is' : `${attached} pods are`
  return [...parts, ...(attached === 0 ? [] : [`${pods} not attached to ${bridgeName}`])].join('; ')
}
