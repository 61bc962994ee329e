import { runCli } from './cli/run-cli.ts'

process.exitCode = await runCli(
  process.argv.slice(2),
  {
    // Calls to the runtime may be under way still, such as one that stops a container within its grace: nobody waits
    // for them, the next podd looks what became of them.
    startDaemon: async (request) => process.exit(await (await import('./daemon.ts')).startDaemon(request)),
    down: async (request) => (await import('./cli/down-host.ts')).downHost(request),
    doctor: async (config, signal) => (await import('./cli/doctor.ts')).runDoctor(config, signal),
  },
  {
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    env: process.env,
    onInterrupt() {
      const interrupt = new AbortController()
      process.once('SIGINT', () => interrupt.abort())
      return interrupt.signal
    },
  },
)
