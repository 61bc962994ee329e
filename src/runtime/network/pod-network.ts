import { mkdir, readdir } from 'node:fs/promises'
import { createServer, isIPv4 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { putAside, readIfExists, writeFileAtomic } from '../../base/atomic-file.ts'
import { readTextIfThere } from '../../base/read-bounded.ts'
import { readState } from '../../base/state-file.ts'
import type { Migration } from '../../base/state-file.ts'
import { findExecutable, runCommand } from '../../host/run-command.ts'
import { EmbeddedContainerdError } from '../containerd/process.ts'
import type { ContainerdPlaces } from '../containerd/process.ts'

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
  const before = [...(written ?? '').matchAll(/"subnet": "([^"]+)"/g)].flatMap(([, subnet]) => subnet ?? [])
  // The plugin adds the address of another family to a bridge by itself.
  const isFree =
    before.every((subnet) => wanted.includes(subnet)) || (await host.removeIdleBridge(places.bridgeName))
  const subnets = isFree ? wanted : before
  const conflist = formatConflist(places, subnets, uplinkMtu(host))
  if (written !== conflist) await writeFileAtomic(places.conflistPath, conflist, 0o644)
  return { subnets, awaited: isFree ? undefined : wanted }
}

/** Writes the network of these subnets again where it, or its directory, was removed or changed, and returns which was. */
export async function restorePodNetwork(
  places: ContainerdPlaces,
  subnets: readonly string[],
  host: Pick<HostNetwork, 'routes' | 'mtu'> = readHostNetwork(),
): Promise<'file' | 'directory' | undefined> {
  const written = await readIfExists(places.conflistPath)
  const mtu = /"mtu": (\d+)/.exec(written ?? '')?.[1]
  // The host's may have changed since; pods keep one until containerd starts again.
  if (written === formatConflist(places, subnets, mtu === undefined ? undefined : Number(mtu)))
    return undefined
  const made = await mkdir(places.cniConfDir, { recursive: true, mode: 0o755 })
  const conflist = formatConflist(places, subnets, uplinkMtu(host))
  await writeFileAtomic(places.conflistPath, conflist, 0o644)
  return made === undefined ? 'file' : 'directory'
}

/**
 * The network's definition: bridge with host-local addresses, then host ports. podd masquerades by itself
 * (`forward-rules.ts`): the plugin would run nine programs for each new sandbox, and six for each removed one.
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

/** The host's routes and addresses as they are now. */
export function readHostNetwork(): HostNetwork {
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .flatMap((address) => (address.cidr === null ? [] : [parseIpv4Cidr(address.cidr)]))
    .filter((network) => network !== undefined)
  const routes = parseRoutes(readTextIfThere('/proc/net/route') ?? '')
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
  const record = `${JSON.stringify({ version: migrations.length + 1, subnet })}\n`
  await writeFileAtomic(places.networkRecordPath, record, 0o644)
  return subnet
}

/** The recorded subnet; a record that can't be read counts as none, and is replaced by the next one. */
export async function readRecordedSubnet(places: ContainerdPlaces): Promise<string | undefined> {
  const reading = readState((await readIfExists(places.networkRecordPath)) ?? '', migrations)
  const subnet = reading.kind === 'current' ? reading.content['subnet'] : undefined
  return typeof subnet === 'string' && parseIpv4Cidr(subnet) !== undefined ? subnet : undefined
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

/** The default instance begins at the first candidate, any other one at an index from the hash in its name. */
function startIndex(networkName: string): number {
  const tag = /-([0-9a-f]{8})$/.exec(networkName)?.[1]
  return tag === undefined ? 0 : Number.parseInt(tag.slice(0, 2), 16)
}

/** The MTU of the default route where it is below Ethernet's, so that packets of pods need no fragmentation. */
function uplinkMtu(host: Pick<HostNetwork, 'routes' | 'mtu'>): number | undefined {
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
  const mtu = Number(readTextIfThere(`/sys/class/net/${device}/mtu`))
  return mtu > 0 ? mtu : undefined
}

/** An IPv4 network as numbers: `base` has its host bits cleared. */
export interface Ipv4Network {
  readonly base: number
  readonly prefix: number
}

/**
 * The candidates for subnets of pods, 256 of 254 addresses each: 10.86.0.0/16 first, for neither Docker, podman, CRI-O,
 * k3s nor kubeadm uses it by default; then a corner of 172.16.0.0/12 for hosts whose own network covers all of
 * 10.0.0.0/8.
 */
const prefixes: readonly string[] = ['10.86', '172.30']

/** The candidates that overlap none of `used`, the best first, from the index `start` on. */
export function selectPodSubnets(used: readonly Ipv4Network[], start: number): readonly string[] {
  const candidates = prefixes.flatMap((prefix) =>
    Array.from({ length: 256 }, (_, index) => `${prefix}.${(start + index) % 256}.0/24`),
  )
  return candidates.filter((cidr) => {
    const candidate = parseIpv4Cidr(cidr)
    return candidate !== undefined && used.every((network) => !networksOverlap(candidate, network))
  })
}

/** `10.86.0.0/24` to numbers; undefined for anything else. */
export function parseIpv4Cidr(text: string): Ipv4Network | undefined {
  const [address, prefixText = '', ...rest] = text.split('/')
  if (address === undefined || !isIPv4(address) || !/^\d{1,2}$/.test(prefixText) || rest.length > 0)
    return undefined
  const prefix = Number(prefixText)
  if (prefix > 32) return undefined
  const value = address.split('.').reduce((total, part) => total * 256 + Number(part), 0)
  return { base: clearHostBits(value, prefix), prefix }
}

export function networksOverlap(a: Ipv4Network, b: Ipv4Network): boolean {
  const prefix = Math.min(a.prefix, b.prefix)
  return clearHostBits(a.base, prefix) === clearHostBits(b.base, prefix)
}

/** A line of /proc/net/route. */
export interface HostRoute {
  readonly device: string
  readonly network: Ipv4Network
}

/** Reads /proc/net/route: the main table's IPv4 routes. Source: net/ipv4/fib_trie.c, `fib_route_seq_show`. */
export function parseRoutes(text: string): readonly HostRoute[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [device, destination, , , , , , mask] = line.trim().split(/\s+/)
      if (device === undefined || destination === undefined || mask === undefined) return []
      const prefix = swapBytes(mask).toString(2).replaceAll('0', '').length
      return [{ device, network: { base: swapBytes(destination), prefix } }]
    })
}

function clearHostBits(value: number, prefix: number): number {
  const size = 2 ** (32 - prefix)
  return Math.floor(value / size) * size
}

/** The kernel prints addresses as numbers in its own byte order; all that Node runs on here is little-endian. */
function swapBytes(hex: string): number {
  return Buffer.from(hex.padStart(8, '0'), 'hex').readUInt32LE(0)
}

const own = new Set<string>()

/**
 * Claims a subnet for this process until it ends. Returns false where another process has claimed it. The bridge, which
 * shows others that a subnet is taken, exists only from the first pod on. An abstract socket leaves nothing behind and
 * belongs to a network namespace, as subnets do.
 */
export function claimSubnet(subnet: string): Promise<boolean> {
  if (own.has(subnet)) return Promise.resolve(true)
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy())
    server.unref()
    server.once('error', () => resolve(false))
    server.listen(`\0podd/subnet/${subnet}`, () => {
      own.add(subnet)
      resolve(true)
    })
  })
}

/** The CNI plugins that podd's pod network needs. */
export const neededCniPlugins: readonly string[] = ['bridge', 'host-local', 'loopback', 'portmap']

/** Where distributions put CNI plugins: Debian, upstream's own place, Fedora. */
export const knownCniBinDirs: readonly string[] = ['/usr/lib/cni', '/opt/cni/bin', '/usr/libexec/cni']

/** The directories that hold every needed plugin, in order of preference. */
export function findCniBinDirs(directories = knownCniBinDirs): readonly string[] {
  return directories.filter((directory) => missingCniPlugins(directory).length === 0)
}

/** Which of the needed plugins a directory lacks. */
export function missingCniPlugins(directory: string): readonly string[] {
  return neededCniPlugins.filter((plugin) => findExecutable(plugin, [directory]) === undefined)
}
