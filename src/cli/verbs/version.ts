import { poddVersion } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { errorCode } from '../../base/errors.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import { withQuery } from '../arguments/pod-argument.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import { formatError, formatReport, readReportFormat, reportFlag } from '../output/report-format.ts'

export const versionVerb: Verb = {
  usage: 'version [--client] [-o json|yaml]',
  help: 'Prints the version of this command and, if a daemon runs, those of the daemon and of its runtime.',
  flags: [{ name: 'client', doc: "Don't ask the daemon." }, reportFlag('lines of text')],
  examples: [
    ['version', ''],
    ['version -o json', 'for programs'],
  ],
  async run(context) {
    context.args.refuseMore('version')
    const format = readReportFormat(context.args)
    const answer = context.args.has('client') ? undefined : await askDaemon(context)
    const client = { version: poddVersion, node: process.versions.node }
    const text = await formatReport(format, 'VersionReport', { client, ...answer?.daemon }, () =>
      formatLines(client, answer?.daemon),
    )
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
    const { version, pid, runtime } = await client.status(signal)
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

export const kubeconfigVerb: Verb = {
  usage: 'kubeconfig [--user NAME] [--role admin|edit|view] [--days N] [--server URL]',
  help: `Prints a kubeconfig with which kubectl and other clients of Kubernetes reach this podd. It has the certificate of
podd's own authority and a client certificate, made for this call, that cannot be revoked before it ends: handle it like
a password. podd must listen beyond its socket (api.listen in the config file).

The role says what the user may do: admin everything; edit to change pods, ConfigMaps, Secrets and claims and to run
commands in containers, which makes it as good as root on this host; view to look at all but Secrets.`,
  flags: [
    { name: 'user', label: 'NAME', doc: 'The name that requests are made under; admin unless given.' },
    { name: 'role', label: 'ROLE', doc: 'admin, edit or view; admin unless given.' },
    { name: 'days', label: 'N', doc: 'How long the client certificate is valid; 365 days unless given.' },
    {
      name: 'server',
      label: 'URL',
      doc: 'Where clients reach podd, https://HOST:PORT, if not at the address of api.listen.',
    },
  ],
  examples: [
    ['kubeconfig > ~/.kube/config', 'let kubectl reach this podd'],
    ['kubeconfig --user ann --role view --days 30', 'for read-only access'],
  ],
  async run({ args, client, signal }) {
    args.refuseMore('kubeconfig')
    const role = args.value('role') ?? 'admin'
    if (!['admin', 'edit', 'view'].includes(role))
      throw new UsageError(`no role is called ${JSON.stringify(role)}`, 'There are admin, edit and view.')
    args.count('days', 1)
    const query = ['user', 'role', 'days', 'server'].flatMap((name) => {
      const value = args.value(name)
      return value === undefined ? [] : [[name, value]]
    })
    return { kind: 'chunks', chunks: client.stream(withQuery('/podd/v1/kubeconfig', query), signal, 'POST') }
  },
}
