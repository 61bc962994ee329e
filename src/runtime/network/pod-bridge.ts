import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { basename } from 'node:path'
import { errorCode } from '../../base/errors.ts'
import { readTextIfThere } from '../../base/read-bounded.ts'
import { commandOutput } from '../../host/run-command.ts'
import { readCniResults } from './cni-results.ts'
import type { CniResult } from './cni-results.ts'

export interface BridgePlaces {
  readonly bridgeName: string
  readonly networkName: string
}

const devices = '/sys/class/net'
const settings = '/proc/sys/net'
/** IFF_UP of `net_device.flags`. */
const isUpFlag = 1

/** The wanted state for these sandboxes; by default for all of libcni's cached results. */
export function bridgeWish(
  { bridgeName, networkName }: BridgePlaces,
  results: readonly CniResult[],
  sandboxes?: ReadonlySet<string>,
): BridgeWish {
  const own = results.filter(
    (result) => result.networkName === networkName && sandboxes?.has(result.sandboxId) !== false,
  )
  const macs = own.flatMap(({ macs: found }) => found.get(bridgeName) ?? [])
  return {
    mac: macs[0],
    gateways: [...new Set(own.flatMap(({ gateways }) => gateways))],
    ports: own.flatMap(({ hostInterfaces }) => hostInterfaces.filter((name) => name !== bridgeName)),
    hasHostPorts: own.some(({ portMappings }) => portMappings.length > 0),
  }
}

/**
 * The actual state of the bridge and of these ends. Takes a few small reads of the kernel's files, and two for each end
 * that isn't attached.
 */
export function readBridgeState(bridgeName: string, ports: readonly string[]): BridgeState {
  const attached = attachedTo(bridgeName)
  const masters = new Map<string, string>()
  for (const port of ports) {
    if (attached.has(port)) masters.set(port, bridgeName)
    else if (read(`${devices}/${port}/ifindex`) !== '') masters.set(port, masterOf(port))
  }
  const flags = Number(read(`${devices}/${bridgeName}/flags`))
  const isThere = read(`${devices}/${bridgeName}/bridge/bridge_id`) !== ''
  return {
    bridge: isThere
      ? {
          isUp: (flags & isUpFlag) !== 0,
          addresses: networkInterfaces()[bridgeName]?.map(({ address }) => address),
          routesLocalnet: read(`${settings}/ipv4/conf/${bridgeName}/route_localnet`) === '1',
        }
      : undefined,
    masters,
    forwards: {
      ipv4: read(`${settings}/ipv4/ip_forward`) === '1',
      ipv6: read(`${settings}/ipv6/conf/all/forwarding`) === '1',
    },
  }
}

/** The repairs that `PodBridge` would make for the sandboxes in libcni's cached results. */
export async function findBridgeFaults(places: BridgePlaces): Promise<readonly BridgeRepair[]> {
  const wish = bridgeWish(places, await readCniResults())
  return planBridgeRepair(places.bridgeName, wish, readBridgeState(places.bridgeName, wish.ports))
}

/**
 * Repairs the bridge of the pods' network for these sandboxes, as other programs may remove it, take it down or strip it of
 * its addresses. Returns the repairs.
 * @param results what libcni remembers
 * @throws HostCommandError, the system's error
 */
export async function repairBridge(
  places: BridgePlaces,
  ready: ReadonlySet<string>,
  results: readonly CniResult[],
): Promise<readonly BridgeRepair[]> {
  const { bridgeName } = places
  const wish = bridgeWish(places, results, ready)
  const repairs = planBridgeRepair(bridgeName, wish, readBridgeState(bridgeName, wish.ports))
  for (const repair of repairs) await applyRepair(bridgeName, repair)
  return repairs
}

async function applyRepair(bridgeName: string, repair: BridgeRepair): Promise<void> {
  switch (repair.kind) {
    case 'make-bridge': {
      const address = repair.mac === undefined ? [] : ['address', repair.mac]
      await commandOutput('ip', ['link', 'add', 'name', bridgeName, ...address, 'type', 'bridge'])
      write(`${settings}/ipv6/conf/${bridgeName}/accept_ra`, '0')
      return
    }
    case 'raise-bridge':
      return void (await commandOutput('ip', ['link', 'set', 'dev', bridgeName, 'up']))
    case 'add-address': {
      const how = repair.address.includes(':') ? ['nodad'] : ['broadcast', '+']
      await commandOutput('ip', ['address', 'replace', repair.address, 'dev', bridgeName, ...how])
      return
    }
    case 'attach':
      await commandOutput('ip', ['link', 'set', 'dev', repair.port, 'up', 'master', bridgeName])
      // A pod reaches itself through its own host port.
      write(`${devices}/${repair.port}/brport/hairpin_mode`, '1')
      return
    case 'route-localnet':
      return write(`${settings}/ipv4/conf/${bridgeName}/route_localnet`, '1')
    case 'forward': {
      const setting = repair.family === 'ipv4' ? 'ipv4/ip_forward' : 'ipv6/conf/all/forwarding'
      return write(`${settings}/${setting}`, '1')
    }
  }
}

/** None where there is no such bridge. */
function attachedTo(bridgeName: string): ReadonlySet<string> {
  try {
    return new Set(readdirSync(`${devices}/${bridgeName}/brif`))
  } catch {
    // There is no such bridge: its absence is what the caller repairs.
    return new Set()
  }
}

/** Empty where the device is gone or not attached. */
function masterOf(port: string): string {
  try {
    return basename(readlinkSync(`${devices}/${port}/master`))
  } catch {
    // A device that is gone needs no bridge; one that isn't attached has no such link.
    return ''
  }
}

/** Empty where the kernel has no such file. */
function read(path: string): string {
  // A kernel without IPv6 has none of its settings; they count as off.
  return readTextIfThere(path)?.trim() ?? ''
}

/** A kernel without IPv6, say, has no such file. */
function write(path: string, value: string): void {
  try {
    writeFileSync(path, value)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

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

type BridgeRepair =
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
