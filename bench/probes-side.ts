/** One side of bench/probes.ts in a process of its own: `probes-side.ts prober|bare PORTS-AS-JSON EXEC-PLACE-AS-JSON`. */
import { execSyncAt } from './probes-exec.ts'
import type { ExecPlace } from './probes-exec.ts'
import { startBareLoop, startProber } from './probes-load.ts'
import type { Ports, Rates } from './probes-load.ts'

export interface SideReport {
  readonly cpuSeconds: number
  readonly seconds: number
  readonly probes: number
  readonly failed: number
  readonly latenessMs: readonly number[]
  readonly rssMiB: number
}

const rates: Rates = { http: 200, tcp: 200, grpc: 50 }
const warmUpMs = 2_500
const measuredMs = 5_000

const [side = '', portsText = '', placeText = 'null'] = process.argv.slice(2)
const ports = JSON.parse(portsText) as Ports
const place = JSON.parse(placeText) as ExecPlace | null
const exec = place === null ? undefined : { ...place, execSync: execSyncAt(place.endpoint) }
const load = (side === 'prober' ? startProber : startBareLoop)(ports, rates, exec)

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

await wait(warmUpMs)
const warmUps = load.latenessMs.length
const probesBefore = load.succeeded()
const cpuBefore = process.cpuUsage()
const startMs = performance.now()
await wait(measuredMs)
const cpu = process.cpuUsage(cpuBefore)
const report: SideReport = {
  cpuSeconds: (cpu.user + cpu.system) / 1e6,
  seconds: (performance.now() - startMs) / 1_000,
  probes: load.succeeded() - probesBefore,
  failed: load.failed(),
  latenessMs: load.latenessMs.slice(warmUps),
  rssMiB: process.memoryUsage.rss() / 2 ** 20,
}
load.stop()
process.send?.(report, () => process.exit())
