import { readFileSync } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { readState } from '../../base/state-file.ts'
import type { Migration } from '../../base/state-file.ts'
import { findExecutable } from '../../host/find-executable.ts'
import { runCommand } from '../../host/run-command.ts'
import { putAside, readIfExists, writeFileAtomic } from '../../base/atomic-file.ts'
import { claimSubnet } from './claim-subnet.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'
import { EmbeddedContainerdError } from '../process/embedded-containerd-error.ts'
import { parseIpv4Cidr, parseRoutes, selectPodSubnets } from './pod-subnet.ts'
import type { HostRoute, Ipv4Network } from './pod-subnet.ts'

/** What choosing and changing a subnet needs of the host's network. */
export interface HostNetwork {
  readonly routes: readonly HostRoute[]
  readonly addresses: readonly Ipv4Network[]
  /** MTU of a network device, or undefined when it can't be read. */
  mtu(device: string): number | undefined
  /** Claims a subnet among the podds of this host. Returns false where another one has it. */
  claim(subnet: string): Promise<boolean>
  /** Removes a bridge that has no ports. Returns whether it is gone. */
  removeIdleBridge(bridge: string): Promise<boolean>
}

export interface PodNetwork {
  /** In force. */
  readonly subnets: readonly string[]
  /** The configured ones, where they have to wait for the end of pods on the old ones. */
  readonly awaited: readonly string[] | undefined
}

/** One step for each version of the record before the current one, oldest first. */
const migrations: readonly Migration[] = []

/** The newest version that both the oldest plugins in use (0.9, Ubuntu 22.04) and the newest runtimes support. */
const cniVersion = '0.4.0'

/**
 * Writes the CNI network of the pods and gives its subnets. The subnet is chosen once and recorded, so that it stays
 * the same over restarts and reboots, unless the options name one.
 *
 * The bridge plugin gives up on a bridge whose address is not of the network, so a bridge of other subnets has to go
 * before. While pods are attached to it the old subnets stay, and the next call checks again.
 */
export async function preparePodNetwork(
  places: ContainerdPlaces,
  podCidrs: readonly string[],
  host: HostNetwork = readHostNetwork(),
): Promise<PodNetwork> {
  const wanted = podCidrs.length === 0 ? [await chooseSubnet(places, host)] : podCidrs
  await mkdir(places.cniConfDir, { recursive: true, mode: 0o755 })
  const written = await readIfExists(places.conflistPath)
  const before = parseSubnets(written)
  // The plugin adds the address of another family to a bridge by itself.
  const isFree =
    before.every((subnet) => wanted.includes(subnet)) || (await host.removeIdleBridge(places.bridgeName))
  const subnets = isFree ? wanted : before
  const conflist = formatConflist(places, subnets, uplinkMtu(host))
  if (written !== conflist) await writeFileAtomic(places.conflistPath, conflist, { mode: 0o644 })
  return { subnets, awaited: isFree ? undefined : wanted }
}

/**
 * The network's definition: bridge with host-local addresses, then host ports. podd masquerades by itself
 * (`masquerade-rules.ts`): the plugin would run nine programs for each new sandbox, and six for each removed one.
 */
export function formatConflist(
  places: ContainerdPlaces,
  subnets: readonly string[],
  mtu: number | undefined,
): string {
  const conflist = {
    cniVersion,
    name: places.networkName,
    plugins: [
      {
        type: 'bridge',
        bridge: places.bridgeName,
        isGateway: true,
        // A pod reaches itself through its own host port.
        hairpinMode: true,
        ...(mtu === undefined ? {} : { mtu }),
        ipam: {
          type: 'host-local',
          dataDir: places.cniDataDir,
          ranges: subnets.map((subnet) => [{ subnet }]),
          routes: subnets.map((subnet) => ({ dst: subnet.includes(':') ? '::/0' : '0.0.0.0/0' })),
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  }
  return `${JSON.stringify(conflist, undefined, 2)}\n`
}

/** The subnets of a conflist that podd wrote; none where it can't be read. */
function parseSubnets(conflist: string | undefined): readonly string[] {
  return [...(conflist ?? '').matchAll(/"subnet": "([^"]+)"/g)].flatMap(([, subnet]) => subnet ?? [])
}

/** The host's routes and addresses as they are now. */
export function readHostNetwork(): HostNetwork {
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .flatMap((address) => (address.cidr === null ? [] : [parseIpv4Cidr(address.cidr)]))
    .filter((network) => network !== undefined)
  const routes = parseRoutes(readOr('/proc/net/route', ''))
  return { routes, addresses, mtu: readMtu, claim: claimSubnet, removeIdleBridge }
}

async function chooseSubnet(places: ContainerdPlaces, host: HostNetwork): Promise<string> {
  const recorded = await readRecordedSubnet(places)
  if (recorded !== undefined) {
    // The configured subnet is used, whoever else has it.
    await host.claim(recorded)
    return recorded
  }
  const subnet = await claimOne(findFreeSubnets(places, host), host)
  if (subnet === undefined) {
    throw new EmbeddedContainerdError("the host's routes leave no subnet free for pods", {
      hint: 'Choose one with --pod-cidr.',
    })
  }
  // A newer podd may have written it, and takes it back.
  if ((await readIfExists(places.networkRecordPath)) !== undefined) await putAside(places.networkRecordPath)
  await writeFileAtomic(
    places.networkRecordPath,
    `${JSON.stringify({ version: migrations.length + 1, subnet })}\n`,
    { mode: 0o644 },
  )
  return subnet
}

/** The recorded subnet, if there is one. */
export async function readRecordedSubnet(places: ContainerdPlaces): Promise<string | undefined> {
  return parseRecord(await readIfExists(places.networkRecordPath))
}

/** The subnets that meet none of the host's routes and addresses, the best one first. */
export function findFreeSubnets(places: ContainerdPlaces, host: HostNetwork): readonly string[] {
  const routed = host.routes.map((route) => route.network).filter((network) => network.prefix > 0)
  return selectPodSubnets([...routed, ...host.addresses], startIndex(places.networkName))
}

/** The first one that no other podd has claimed; the very first where all are claimed. */
async function claimOne(subnets: readonly string[], host: HostNetwork): Promise<string | undefined> {
  for (const subnet of subnets) if (await host.claim(subnet)) return subnet
  return subnets[0]
}

/** The recorded subnet; a record that can't be read counts as none, and is replaced by the next one. */
function parseRecord(text: string | undefined): string | undefined {
  const reading = readState(text ?? '', migrations)
  const subnet = reading.kind === 'current' ? reading.content['subnet'] : undefined
  return typeof subnet === 'string' && parseIpv4Cidr(subnet) !== undefined ? subnet : undefined
}

/** The default instance begins at the first candidate, any other one at an index from the hash in its name. */
function startIndex(networkName: string): number {
  const tag = /-([0-9a-f]{8})$/.exec(networkName)?.[1]
  return tag === undefined ? 0 : Number.parseInt(tag.slice(0, 2), 16)
}

/** The MTU of the default route where it is below Ethernet's, so that packets of pods need no fragmentation. */
function uplinkMtu(host: HostNetwork): number | undefined {
  const uplink = host.routes.find((route) => route.network.prefix === 0)
  const mtu = uplink === undefined ? undefined : host.mtu(uplink.device)
  return mtu !== undefined && mtu < 1500 ? mtu : undefined
}

async function removeIdleBridge(bridge: string): Promise<boolean> {
  // It is missing where the bridge is.
  const ports = await readdir(`/sys/class/net/${bridge}/brif`).catch(() => undefined)
  if (ports === undefined) return true
  const ip = findExecutable('ip')
  if (ports.length > 0 || ip === undefined) return false
  return (await runCommand(ip, ['link', 'delete', bridge])).exitCode === 0
}

function readMtu(device: string): number | undefined {
  const mtu = Number(readOr(`/sys/class/net/${device}/mtu`, ''))
  return mtu > 0 ? mtu : undefined
}

function readOr(path: string, fallback: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The kernel has no such file for this device.
    return fallback
  }
}
