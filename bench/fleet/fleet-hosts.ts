/**
 * The hosts of `npm run bench -- fleet`: node fleet-hosts.ts URL COUNT DIRECTORY. Each is podd's own HTTP source with its own
 * connections, with the default period. Asked over IPC, it sends the CPU that it has used, in milliseconds.
 */
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { silentLogger } from '../../src/base/logger.ts'
import { createDecodeSource } from '../../src/sources/decode-source.ts'
import { createHttpSource } from '../../src/sources/http/http-source.ts'
import { createLastGoodStore } from '../../src/store/last-good.ts'

const [url = '', count = '1000', directory = '.'] = process.argv.slice(2)
/** `httpCheckFrequency` where nothing is said. */
const periodMs = 20_000
const decode = createDecodeSource(systemClock)
const stop = new AbortController()
let ready = 0

for (let host = 0; host < Number(count); host += 1) {
  let wasReady = false
  const source = createHttpSource({
    name: `http:h${host}`,
    url,
    headers: {},
    periodMs,
    clock: systemClock,
    logger: silentLogger,
    lastGood: createLastGoodStore(join(directory, `${host}`)),
    decode,
    env: {},
  })
  void source.run((snapshot) => {
    if (!wasReady && snapshot.ready) ready += 1
    wasReady ||= snapshot.ready
  }, stop.signal)
}

export interface HostsReport {
  readonly cpuMs: number
  /** Hosts that have their first copy. */
  readonly ready: number
}

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  const report: HostsReport = { cpuMs: (user + system) / 1000, ready }
  process.send?.(report)
})
process.on('disconnect', () => process.exit())
