import type { PortOption, PortStatus } from '../../api/routes.ts'
import { formatAddress } from '../../config/api-options.ts'
import type { ListenAddress } from '../../config/api-options.ts'
import type { PoddConfig } from '../../config/options.ts'
import type { PortFacts } from '../../decide/doctor/host-facts.ts'
import { listenProblem } from '../../host/addresses.ts'

/** What is known of the daemon's ports. */
export type DaemonPorts =
  /** It runs, and reports them. */
  | { readonly kind: 'known'; readonly ports: readonly PortStatus[] }
  /** No daemon runs. */
  | { readonly kind: 'none' }
  /** @property reason why it can't be told, after `cannot tell whether podd listens at …: ` */
  | { readonly kind: 'unknown'; readonly reason: string }

type PortConfig = Pick<PoddConfig, 'apiListen' | 'readOnlyPort' | 'address'>

/**
 * The ports that the config has podd listen at: as podd says where it runs, by trying where no podd does.
 *
 * @param config undefined where the podd that answers has another one, which is not known: all ports that it reports
 */
export async function gatherPortFacts(
  config: PortConfig | undefined,
  askDaemon: () => Promise<DaemonPorts>,
): Promise<readonly PortFacts[]> {
  if (config === undefined) {
    const daemon = await askDaemon()
    if (daemon.kind !== 'known') return []
    return daemon.ports.map((port) => ({
      option: port.option,
      address: port.address,
      state: stateOf(port),
    }))
  }
  const ports = configuredPorts(config)
  if (ports.length === 0) return []
  const daemon = await askDaemon()
  return Promise.all(
    ports.map(async ({ option, address }) => ({
      option,
      address: formatAddress(address),
      state: await examinePort({ option, address }, daemon),
    })),
  )
}

interface ConfiguredPort {
  readonly option: PortOption
  readonly address: ListenAddress
}

async function examinePort(
  { option, address }: ConfiguredPort,
  daemon: DaemonPorts,
): Promise<PortFacts['state']> {
  const text = formatAddress(address)
  switch (daemon.kind) {
    case 'unknown':
      return daemon
    case 'known': {
      const served = daemon.ports.find((port) => port.option === option)
      return served?.address === text ? stateOf(served) : { kind: 'changed', served: served?.address }
    }
    case 'none': {
      const problem = await listenProblem(address)
      if (problem === undefined) return { kind: 'free' }
      return { kind: 'fails', message: `cannot listen at ${text}: ${problem}` }
    }
  }
}

function stateOf({ error }: PortStatus): PortFacts['state'] {
  return error === undefined ? { kind: 'open' } : { kind: 'fails', message: error }
}

function configuredPorts({ apiListen, readOnlyPort, address }: PortConfig): readonly ConfiguredPort[] {
  const ports: ConfiguredPort[] = []
  if (apiListen !== undefined) ports.push({ option: 'api.listen', address: apiListen })
  if (readOnlyPort !== 0)
    ports.push({ option: 'readOnlyPort', address: { host: address, port: readOnlyPort } })
  return ports
}
