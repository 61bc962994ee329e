/** node ask-once.ts URL STATE-DIRECTORY: prints what a source of that URL says first. */
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import { createHttpSource } from '../../../src/sources/http/http-source.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { summarize } from './source-rig.ts'

const [url = '', directory = ''] = process.argv.slice(2)
const stop = new AbortController()
const source = createHttpSource({
  name: 'http',
  url,
  headers: {},
  periodMs: 1000,
  clock: systemClock,
  logger: silentLogger,
  lastGood: createLastGoodStore(directory),
  decode: createDecodeSource(systemClock),
})
await source.run((snapshot) => {
  const { pods, problems } = summarize(snapshot)
  // The server is slow rather than silent where the host is.
  if (problems.includes('the server has not answered yet')) return
  console.log([...pods, ...problems].join('\n'))
  stop.abort()
}, stop.signal)
