import { apiSocketPath } from '../../../config/places.ts'
import { namedSocket } from '../../arguments/socket-path.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb, VerbContext } from '../../arguments/verb.ts'
import { configFlags, loadConfig } from '../../local/load-config.ts'
import { formatReport, readReportFormat, reportFlag } from '../../output/report-format.ts'
import { formatStatus } from '../../output/status-screen.ts'
import { gatherStatus } from '../../support/gather-status.ts'

const placeFlags = ['config', 'root-dir', 'run-dir']

export const statusVerb: Verb = {
  usage: 'status [-o json|yaml] [FLAGS]',
  help: `Shows the host, the daemon, its container runtime, sources, pods, pressure, failed periodic jobs, last errors and
problems. Where the daemon doesn't answer, it says so, and shows what the files in its state directory tell. The exit
code is 1 if the daemon or the container runtime doesn't work.`,
  flags: [reportFlag('lines of text'), ...configFlags.filter(({ name }) => placeFlags.includes(name))],
  examples: [
    ['status', ''],
    ['status -o json', 'for monitoring: with all periodic jobs'],
  ],
  async run(context) {
    const { args, client, clock, signal } = context
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`status takes no argument ${JSON.stringify(extra)}`)
    const format = readReportFormat(args)
    const report = await gatherStatus(client, await placesOf(context), signal)
    return {
      kind: 'text',
      text:
        format === undefined
          ? formatStatus(report, clock.wallMs())
          : await formatReport(format, 'StatusReport', { ...report }),
      exitCode: report.running && report.runtime.healthy ? 0 : 1,
    }
  },
}

/** The places of the config, unless another socket is given. */
async function placesOf({
  args,
  client,
  env,
}: VerbContext): Promise<{ readonly rootDir: string; readonly runDir: string } | undefined> {
  const { config } = await loadConfig(args)
  const { rootDir, runDir } = config
  const isNamed = namedSocket(args.value('socket'), env) !== undefined
  return isNamed && client.socketPath !== apiSocketPath(runDir) && args.value('root-dir') === undefined
    ? undefined
    : { rootDir, runDir }
}
