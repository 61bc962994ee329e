import type { DaemonStatus } from '../api/routes.ts'
import { poddVersion } from '../api/version.ts'
import { errorCode } from '../base/errors.ts'
import { UsageError } from './usage-error.ts'
import type { Verb, VerbContext } from './verb.ts'

export const versionVerb: Verb = {
  usage: 'version [--client]',
  help: 'Prints the version of this command and, where a daemon runs, that of the daemon and of its runtime.',
  flags: [{ name: 'client', doc: "Don't ask the daemon." }],
  examples: [['version', '']],
  async run(context) {
    const [extra] = context.args.positionals
    if (extra !== undefined) throw new UsageError(`version takes no argument ${JSON.stringify(extra)}`)
    const client = `podd ${poddVersion} (Node.js ${process.versions.node})\n`
    const text = context.args.has('client') ? client : client + (await daemonLines(context))
    return { kind: 'text', text }
  },
}

async function daemonLines({ client, signal }: VerbContext): Promise<string> {
  try {
    const { version, pid, runtime } = await client.get<DaemonStatus>('/podd/v1/status', signal)
    const name = [runtime.name ?? 'runtime', runtime.version].filter((part) => part !== undefined).join(' ')
    return `daemon ${version} (pid ${pid})\n${name} (${runtime.endpoint})\n`
  } catch (error) {
    if (signal.aborted) throw error
    return errorCode(error) === 'DAEMON_NOT_RUNNING'
      ? 'no daemon is running\n'
      : 'the daemon did not answer\n'
  }
}
