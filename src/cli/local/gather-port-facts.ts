import { listenJobs } from '../../api/listen-jobs.ts'
import type { PortOption } from '../../api/listen-jobs.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { formatAddress } from '../../config/api-options.ts'
import type { ListenAddress } from '../../config/api-options.ts'
import type { PoddConfig } from '../../config/options.ts'
import type { PortFacts } from '../../decide/doctor/host-facts.ts'
import { listenProblem } from '../../host/network/listen-problem.ts'

/** What is known of the daemon: its status, that it doesn't run, or nothing. */
export type DaemonKnowledge = Pick<DaemonStatus, 'jobs'> | 'none' | 'unknown'

/** The ports that the config has podd listen at: as podd says where it runs, else by trying. */
export async function gatherPortFacts(
  config: Pick<PoddConfig, 'apiListen' | 'readOnlyPort' | 'address'>,
  askDaemon: () => Promise<DaemonKnowledge>,
): Promise<readonly PortFacts[]> {
  const ports = configuredPorts(config)
  if (ports.length === 0) return []
  const daemon = await askDaemon()
  return Promise.all(ports.map((port) => examinePort(port, daemon)))
}

async function examinePort(
  { option, address }: { readonly option: PortOption; readonly address: ListenAddress },
  daemon: DaemonKnowledge,
): Promise<PortFacts> {
  const facts = { option, address: formatAddress(address) }
  if (daemon === 'unknown') return { ...facts, state: { kind: 'unknown' } }
  const job = daemon === 'none' ? undefined : daemon.jobs.find(({ name }) => name === listenJobs[option])
  // A podd that began with other settings has no such job.
  if (job !== undefined)
    return {
      ...facts,
      state: job.error === undefined ? { kind: 'open' } : { kind: 'fails', message: job.error },
    }
  const problem = await listenProblem(address)
  if (problem === undefined) return { ...facts, state: { kind: 'free' } }
  return { ...facts, state: { kind: 'fails', message: `cannot listen at ${facts.address}: ${problem}` } }
}

function configuredPorts({
  apiListen,
  readOnlyPort,
  address,
}: Pick<PoddConfig, 'apiListen' | 'readOnlyPort' | 'address'>) {
  const ports: { readonly option: PortOption; readonly address: ListenAddress }[] = []
  if (apiListen !== undefined) ports.push({ option: 'api.listen', address: apiListen })
  if (readOnlyPort !== 0)
    ports.push({ option: 'readOnlyPort', address: { host: address, port: readOnlyPort } })
  return ports
}
