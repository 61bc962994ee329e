/**
 * npm run bench [PART …]: speed, memory, idle cost and wear on a containerd of its own, beside the bare CRI calls on the
 * same containerd; docs/PERFORMANCE.md tells what each part does. Needs root and a build. Prints a table and the
 * same as JSON, with JSON=FILE to a file too. PAIRS=N sets the pairs of each comparison (30), IDLE_SECONDS=N how long CPU is measured
 * (60), FLOOD_PODS=N how many appear and go in `flood` (2,000), BURST=N how many pods start at once or are adopted (50; four times as many in `burst-200`, five times in `many`), MANY_PODS=N how many `many-fake` has (1,000). All takes
 * some 40 minutes; `probes`, `fleet` and `fleet-push` are run only where they are named; FLEET_HOSTS=N and
 * FLEET_SECONDS=N set how many hosts (1,000) ask how long (180). PODD_TEST_OCI_RUNTIME=crun has crun run the containers of both sides.
 */
import { writeFileSync } from 'node:fs'
import { systemClock } from '../src/base/clock.ts'
import { CriClient } from '../src/runtime/cri-client.ts'
import { benchAdopt } from './adopt.ts'
import { benchBurst } from './burst.ts'
import { benchCommandLine } from './command-line.ts'
import { formatFigures } from './figures.ts'
import type { Figure } from './figures.ts'
import { benchFlood } from './flood.ts'
import { benchFleet } from './fleet/fleet.ts'
import { benchIdle } from './idle.ts'
import { PoddUnderTest } from './podd-under-test.ts'
import { benchProbed } from './probed.ts'
import { withExecPlace } from './probes-exec.ts'
import { benchProbes } from './probes.ts'
import { benchPublish } from './publish.ts'
import { benchRemove } from './remove.ts'
import { benchReplace } from './replace.ts'
import { benchRestart } from './restart.ts'
import { benchFake, benchMany } from './scale.ts'
import { benchStart } from './start.ts'
import { benchSources } from './sources/sources.ts'
import { benchUnchanged } from './unchanged.ts'
import { benchWear } from './wear.ts'

const pairs = Number(process.env['PAIRS'] ?? 30)
const idleSeconds = Number(process.env['IDLE_SECONDS'] ?? 60)
const burst = Number(process.env['BURST'] ?? 50)
const manyPods = Number(process.env['MANY_PODS'] ?? 1000)
const floodPods = Number(process.env['FLOOD_PODS'] ?? 2000)
const fleetHosts = Number(process.env['FLEET_HOSTS'] ?? 1000)
const fleetSeconds = Number(process.env['FLEET_SECONDS'] ?? 180)

type Part = (podd: PoddUnderTest, client: CriClient) => Promise<readonly Figure[]>

/** Each has a podd of its own, for what came before shows in its memory. */
const parts: Readonly<Record<string, Part>> = {
  idle: (podd) => benchIdle(podd, idleSeconds),
  start: (podd, client) => benchStart(podd, client, pairs),
  publish: (podd) => benchPublish(podd, pairs),
  unchanged: (podd) => benchUnchanged(podd),
  replace: (podd, client) => benchReplace(podd, client, pairs),
  restart: (podd, client) => benchRestart(podd, client, pairs),
  remove: (podd, client) => benchRemove(podd, client, pairs),
  burst: (podd, client) =>
    benchBurst(podd, client, { count: burst, rounds: 3, atMost: 1, mostCpuMs: 10 * burst }),
  'burst-200': (podd, client) =>
    benchBurst(podd, client, { count: 4 * burst, rounds: 1, atMost: 1.05, mostCpuMs: 40 * burst }),
  adopt: (podd) => benchAdopt(podd, burst),
  many: (podd) => benchMany(podd, idleSeconds, 5 * burst),
  probed: (podd) => benchProbed(podd, idleSeconds),
  cli: (podd) => benchCommandLine(podd, pairs),
  wear: (podd) => benchWear(podd),
  probes: async (podd, client) => {
    const { containerdEndpoint: endpoint, directory } = podd
    await withExecPlace(client, { endpoint, directory, containers: 10 }, (place) =>
      benchProbes({ podd, place }),
    )
    return []
  },
}

/** They need no podd and no containerd, only pieces of podd. */
const partsAlone: Readonly<Record<string, () => Promise<readonly Figure[]>>> = {
  'many-fake': () => benchFake(idleSeconds, manyPods),
  flood: () => benchFlood(floodPods),
  sources: async () => benchSources(),
  fleet: () => benchFleet({ hosts: fleetHosts, seconds: fleetSeconds, pushes: false }),
  'fleet-push': () => benchFleet({ hosts: fleetHosts, seconds: fleetSeconds, pushes: true }),
}
const onlyNamed = ['probes', 'fleet', 'fleet-push']

async function run(part: Part): Promise<readonly Figure[]> {
  const podd = new PoddUnderTest()
  const client = new CriClient({ endpoint: podd.containerdEndpoint, clock: systemClock })
  try {
    await podd.start()
    podd.importImage()
    return await part(podd, client)
  } finally {
    client.close()
    await podd.down()
  }
}

const all: Readonly<Record<string, () => Promise<readonly Figure[]>>> = {
  ...Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, () => run(part)])),
  ...partsAlone,
}
const named = process.argv.slice(2)
const unknown = named.filter((name) => all[name] === undefined)
if (unknown.length > 0)
  throw new Error(`no such part: ${unknown.join(', ')}; there are ${Object.keys(all).join(', ')}`)
const chosen = Object.entries(all).filter(([name]) =>
  named.length === 0 ? !onlyNamed.includes(name) : named.includes(name),
)
const report: (Figure & { readonly part: string })[] = []
const failures: string[] = []
for (const [name, measure] of chosen) {
  console.error(`${name} ...`)
  try {
    for (const figure of await measure()) report.push({ part: name, ...figure })
  } catch (error) {
    // The other parts are worth their figures.
    failures.push(`${name} failed: ${error instanceof Error ? error.message : String(error)}`)
  }
}
console.log(formatFigures(report))
for (const failure of failures) console.log(failure)
const json = JSON.stringify(report, null, 2)
console.log(`\n${json}`)
const file = process.env['JSON']
if (file !== undefined) writeFileSync(file, `${json}\n`)
process.exitCode = failures.length === 0 ? 0 : 1
