/**
 * npm run bench [SECTION …]: speed, memory and idle cost on a containerd of its own, always beside the
 * bare CRI calls on the same containerd. Needs root and a build. PAIRS=N sets the pairs of each comparison (30).
 * Sections: start restart replace memory probes.
 */
import { systemClock } from '../src/base/clock.ts'
import { CriClient } from '../src/cri/cri-client.ts'
import { PoddUnderTest } from './podd-under-test.ts'
import { benchMemory } from './memory.ts'
import { withExecPlace } from './probes-exec.ts'
import { benchProbes } from './probes.ts'
import { benchReplace } from './replace.ts'
import { benchRestart } from './restart.ts'
import { benchStart } from './start.ts'

const pairs = Number(process.env['PAIRS'] ?? 30)

const sections: Readonly<Record<string, (podd: PoddUnderTest, client: CriClient) => Promise<void>>> = {
  start: (podd, client) => benchStart(podd, client, pairs),
  restart: (podd, client) => benchRestart(podd, client, pairs),
  replace: (podd, client) => benchReplace(podd, client, pairs),
  memory: (podd) => benchMemory(podd, Number(process.env['IDLE_SECONDS'] ?? 60)),
  probes: (podd, client) => {
    const { containerdEndpoint: endpoint, directory } = podd
    return withExecPlace(client, { endpoint, directory, containers: 10 }, (place) =>
      benchProbes({ podd, place }),
    )
  },
}

const chosen = process.argv.slice(2)
const podd = new PoddUnderTest()
const client = new CriClient({ endpoint: podd.containerdEndpoint, clock: systemClock })
try {
  await podd.start()
  podd.importImage()
  for (const [name, section] of Object.entries(sections)) {
    if (chosen.length === 0 || chosen.includes(name)) await section(podd, client)
  }
} finally {
  client.close()
  await podd.down()
}
