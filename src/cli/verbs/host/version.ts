import type { DaemonStatus } from '../../../api/routes.ts'
import { poddVersion } from '../../../api/resource.ts'
import { errorCode } from '../../../base/errors.ts'
import { formatError } from '../../output/format-error.ts'
import { formatReport, readReportFormat, reportFlag } from '../../output/report-format.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb, VerbContext } from '../../arguments/verb.ts'

export const versionVerb: Verb = {
  usage: 'version [--client] [-o json|yaml]',
  help: 'Prints the version of this command and, if a daemon runs, those of the daemon and of its runtime.',
  flags: [{ name: 'client', doc: "Don't ask the daemon." }, reportFlag('lines of text')],
  examples: [
    ['version', ''],
    ['version -o json', 'for programs'],
  ],
  async run(context) {
    const [extra] = context.args.positionals
    if (extra !== undefined) throw new UsageError(`version takes no argument ${JSON.stringify(extra)}`)
    const format = readReportFormat(context.args)
    const answer = context.args.has('client') ? undefined : await askDaemon(context)
    const client = { version: poddVersion, node: process.versions.node }
    const text =
      format === undefined
        ? formatLines(client, answer?.daemon)
        : await formatReport(format, 'VersionReport', { client, ...answer?.daemon })
    if (answer?.error === undefined) return { kind: 'text', text }
    return { kind: 'text', text, notes: [formatError(answer.error)], exitCode: 1 }
  },
}

/** The daemon's version, or why it is unknown. */
type DaemonAnswer =
  | { readonly daemon: Pick<DaemonStatus, 'version' | 'pid'>; readonly runtime: RuntimeVersion }
  | { readonly problem: string }

interface RuntimeVersion {
  readonly name: string | undefined
  readonly version: string | undefined
  readonly endpoint: string
}

/** No running daemon is a valid result; one that runs and doesn't answer is an error. */
async function askDaemon({
  client,
  signal,
}: VerbContext): Promise<{ readonly daemon: DaemonAnswer; readonly error?: unknown }> {
  try {
    const { version, pid, runtime } = await client.get<DaemonStatus>('/podd/v1/status', signal)
    const { name, version: runtimeVersion, endpoint } = runtime
    return { daemon: { daemon: { version, pid }, runtime: { name, version: runtimeVersion, endpoint } } }
  } catch (error) {
    if (signal.aborted) throw error
    if (errorCode(error) === 'DAEMON_NOT_RUNNING') return { daemon: { problem: 'no daemon is running' } }
    return { daemon: { problem: 'the daemon did not answer' }, error }
  }
}

function formatLines(
  client: { readonly version: string; readonly node: string },
  answer: DaemonAnswer | undefined,
): string {
  const first = `podd ${client.version} (Node.js ${client.node})\n`
  if (answer === undefined) return first
  if ('problem' in answer) return `${first}${answer.problem}\n`
  const { daemon, runtime } = answer
  const name = [runtime.name ?? 'runtime', runtime.version].filter((part) => part !== undefined).join(' ')
  return `${first}daemon ${daemon.version} (pid ${daemon.pid})\n${name} (${runtime.endpoint})\n`
}
