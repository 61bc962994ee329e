import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { errorCode, ifThere } from '../../base/errors.ts'
import { parseJson, objectOrEmpty, objectsAt } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { mapBounded } from '../../base/waits.ts'

/** Where libcni caches the result of each network for each sandbox; containerd has no setting for it. */
const cniResultsDirectory = '/var/lib/cni/results'

/** libcni's cached result of one network of a sandbox. */
export interface CniResult {
  readonly path: string
  readonly sandboxId: string
  /** `cni-loopback` for the one that every sandbox has. */
  readonly networkName: string
  /** The names of the host's end of the pair, and of the bridge. */
  readonly hostInterfaces: readonly string[]
  /** The paths of the network namespaces. */
  readonly namespaces: readonly string[]
  /** The hardware addresses of the host's devices, by name. */
  readonly macs: ReadonlyMap<string, string>
  /** The sandbox's gateways, each with the prefix of its subnet: `10.86.0.1/24`. */
  readonly gateways: readonly string[]
  /** The sandbox's own addresses, each with the prefix of its subnet. */
  readonly addresses: readonly string[]
  readonly portMappings: readonly PortMapping[]
}

/** A port of the host that is forwarded to a sandbox. */
export interface PortMapping {
  readonly hostPort: number
  readonly containerPort: number
  /** `tcp`, `udp` or `sctp`. */
  readonly protocol: string
  /** Empty for all addresses of the host. */
  readonly hostIp: string
}

/** All whole results, also of other networks and runtimes. Throws the system's errors: they are unknown then. */
export async function readCniResults(directory = cniResultsDirectory): Promise<readonly CniResult[]> {
  const results = await mapBounded((await ifThere(readdir(directory))) ?? [], async (name) => {
    const path = join(directory, name)
    return readResult(path, await ifThere(readFile(path, 'utf8'), ['ENOENT', 'EISDIR']))
  })
  return results.flatMap((result) => result ?? [])
}

function readResult(path: string, text: string | undefined): CniResult | undefined {
  // One that a power cut has torn tells nothing of a sandbox, and `removeTornCniResults` removes it.
  const { containerId, networkName, result, capabilityArgs } = objectOrEmpty(parseJson(text))
  if (typeof containerId !== 'string' || typeof networkName !== 'string') return undefined
  const hostInterfaces: string[] = []
  const namespaces: string[] = []
  const macs = new Map<string, string>()
  for (const { name, sandbox, mac } of objectsAt(result, 'interfaces')) {
    if (typeof sandbox === 'string' && sandbox !== '') namespaces.push(sandbox)
    else if (typeof name === 'string') {
      hostInterfaces.push(name)
      if (typeof mac === 'string') macs.set(name, mac)
    }
  }
  const ips = objectsAt(result, 'ips')
  return {
    path,
    sandboxId: containerId,
    networkName,
    hostInterfaces,
    namespaces,
    macs,
    gateways: ips.flatMap((each) => gatewayOf(each)),
    addresses: ips.flatMap(({ address }) =>
      typeof address === 'string' && address.includes('/') ? [address] : [],
    ),
    portMappings: objectsAt(capabilityArgs, 'portMappings').flatMap((each) => portMappingOf(each)),
  }
}

function gatewayOf({ address, gateway }: JsonObject): readonly string[] {
  const prefix = typeof address === 'string' ? address.split('/')[1] : undefined
  return typeof gateway === 'string' && prefix !== undefined ? [`${gateway}/${prefix}`] : []
}

/** As containerd gives it to the plugins (go-cni's `PortMapping`, without names of its own in JSON). */
function portMappingOf(mapping: JsonObject): readonly PortMapping[] {
  const { HostPort: hostPort, ContainerPort: containerPort, Protocol: protocol, HostIP: hostIp } = mapping
  if (typeof hostPort !== 'number' || typeof containerPort !== 'number') return []
  const named = typeof protocol === 'string' && protocol !== '' ? protocol.toLowerCase() : 'tcp'
  return [{ hostPort, containerPort, protocol: named, hostIp: typeof hostIp === 'string' ? hostIp : '' }]
}

/** Deletes the results of a network of podd's own whose sandboxes are gone: all of them, or those with these ids. */
export async function removeCniResults(
  networkName: string,
  ids?: ReadonlySet<string>,
  directory = cniResultsDirectory,
): Promise<void> {
  const ours = ownResults(networkName)
  for (const name of await list(directory)) {
    const sandboxId = ours.exec(name)?.[1]
    if (sandboxId === undefined || ids?.has(sandboxId) === false) continue
    await rm(join(directory, name), { force: true })
    await rm(join(directory, `cni-loopback-${sandboxId}-lo`), { force: true })
  }
}

/**
 * Removes results that a power cut left empty or torn: libcni doesn't fsync them, and with such a file
 * a sandbox can never be stopped again (`cached result: unexpected end of JSON input`). Without one it can.
 */
export async function removeTornCniResults(
  networkName: string,
  directory = cniResultsDirectory,
): Promise<void> {
  const ours = ownResults(networkName)
  for (const name of await list(directory)) {
    if (!ours.test(name) && !name.startsWith('cni-loopback-')) continue
    const path = join(directory, name)
    // One that is gone or can't be read isn't torn.
    const text = await readFile(path, 'utf8').catch(() => '{}')
    if (parseJson(text) === undefined) await rm(path, { force: true })
  }
}

function ownResults(networkName: string): RegExp {
  return new RegExp(`^${networkName}-([0-9a-f]{64})-`)
}

async function list(directory: string): Promise<readonly string[]> {
  // Where it can't be read, the next sandbox fails on it, and its error says so.
  return readdir(directory).catch(() => [])
}

/** For this long after its directory changed, a result may still be incomplete. */
const settleMs = 2000

/**
 * libcni's cached results of one network, read again only when their directory has changed: a result is written once,
 * when its file is created.
 */
export class RememberedCniResults {
  readonly #networkName: string
  readonly #clock: Clock
  readonly #directory: string
  /** The state of the directory, and when it was first found so (monotonic). */
  #seen: { readonly fingerprint: string; readonly sinceMs: number } | undefined
  #results: readonly CniResult[] | undefined

  constructor(networkName: string, clock: Clock, directory = cniResultsDirectory) {
    this.#networkName = networkName
    this.#clock = clock
    this.#directory = directory
  }

  /** Throws the system's errors. */
  async read(): Promise<readonly CniResult[]> {
    const fingerprint = await this.#look()
    const nowMs = this.#clock.monotonicMs()
    if (this.#seen?.fingerprint !== fingerprint) {
      this.#seen = fingerprint === undefined ? undefined : { fingerprint, sinceMs: nowMs }
      this.#results = undefined
    }
    if (this.#results !== undefined) return this.#results
    const all = await readCniResults(this.#directory)
    const results = all.filter(({ networkName }) => networkName === this.#networkName)
    if (this.#seen !== undefined && nowMs - this.#seen.sinceMs >= settleMs) this.#results = results
    return results
  }

  /** Changes when a result is created or removed; undefined where there is no directory. */
  async #look(): Promise<string | undefined> {
    const found = await ifThere(stat(this.#directory, { bigint: true }))
    return found && `${found.dev}:${found.ino}:${found.mtimeNs}`
  }
}

/** The name of a sandbox's own interface, which is CRI's choice. */
const interfaceName = 'eth0'

/** Where the plugin host-local keeps which addresses it has given: a file each, named after the address. */
export interface ReservationPlaces {
  readonly cniDataDir: string
  readonly networkName: string
}

/**
 * Reserves the addresses of running sandboxes again that host-local knows nothing of, and would give to the next one: they
 * lie in the run directory, which may be emptied while pods run. Gives those that it could reserve. Throws the system's error,
 * and what `listReady` throws.
 * @param results what libcni remembers
 * @param listReady the ids of the sandboxes that are ready. Called once an address was found to be missing: a sandbox that is
 * being stopped is ready no more when its addresses are given back
 */
export async function restoreReservations(
  places: ReservationPlaces,
  results: readonly CniResult[],
  listReady: () => Promise<ReadonlySet<string>>,
): Promise<readonly string[]> {
  const unreserved = findUnreserved(places, results)
  if (unreserved.length === 0) return []
  const ready = await listReady()
  return reserveAgain(
    places,
    unreserved.filter(({ sandboxId }) => ready.has(sandboxId)),
  )
}

interface Unreserved {
  readonly address: string
  readonly sandboxId: string
}

function findUnreserved(
  { cniDataDir, networkName }: ReservationPlaces,
  results: readonly CniResult[],
): readonly Unreserved[] {
  return results
    .filter((result) => result.networkName === networkName)
    .flatMap(({ addresses, sandboxId }) =>
      addresses.map((withPrefix) => ({ address: withPrefix.split('/')[0] ?? '', sandboxId })),
    )
    .filter(({ address }) => !existsSync(join(cniDataDir, networkName, address)))
}

/** One that somebody has meanwhile stays theirs (`plugins/ipam/host-local/backend/disk/backend.go`). */
async function reserveAgain(
  { cniDataDir, networkName }: ReservationPlaces,
  unreserved: readonly Unreserved[],
): Promise<readonly string[]> {
  const reserved: string[] = []
  if (unreserved.length === 0) return reserved
  const directory = join(cniDataDir, networkName)
  await mkdir(directory, { recursive: true, mode: 0o755 })
  for (const { address, sandboxId } of unreserved) {
    try {
      const text = `${sandboxId}\r\n${interfaceName}`
      await writeFile(join(directory, address), text, { flag: 'wx', mode: 0o644 })
      reserved.push(address)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
  }
  return reserved
}
