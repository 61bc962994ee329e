import { join } from 'node:path'
import { keepCompiledCode } from './cli/local/compile-cache.ts'

// Before anything else is loaded. The daemon loads its code once, and compiled code would stay in its memory.
const isBuilt = import.meta.filename.endsWith('/dist/main.js')
if (isBuilt && process.argv[2] !== 'run') keepCompiledCode(join(import.meta.dirname, 'cache'))
const { usualPlaces } = await import('./config/places.ts')
const { systemClock } = await import('./base/clock.ts')
const { setPoddUmask } = await import('./base/umask.ts')
const { runCli } = await import('./cli/run-cli.ts')

setPoddUmask()

let hasDaemonFailed = false
const exitCode = await runCli(
  process.argv.slice(2),
  {
    async startDaemon(request) {
      const { startDaemon } = await import('./daemon/run-daemon.ts')
      try {
        // Calls to the runtime may be in flight still, such as one that stops a container within its grace: nobody
        // waits for them, the next podd looks what became of them.
        process.exit(await startDaemon(request))
      } catch (error) {
        hasDaemonFailed = true
        throw error
      }
    },
    down: async (request) => (await import('./cli/local/down-host.ts')).downHost(request),
    doctor: async (config, signal, options) =>
      (await import('./cli/local/doctor.ts')).runDoctor(config, signal, options),
  },
  {
    stdout: process.stdout,
    get stderr() {
      return process.stderr
    },
    get stdin() {
      return process.stdin
    },
    env: process.env,
    clock: systemClock,
    usual: usualPlaces,
    onInterrupt() {
      const interrupt = new AbortController()
      process.once('SIGINT', () => interrupt.abort())
      return interrupt.signal
    },
  },
)
// What a failed daemon left in flight must not keep a process alive that holds its locks and runs nothing.
if (hasDaemonFailed) process.exit(exitCode)
process.exitCode = exitCode
