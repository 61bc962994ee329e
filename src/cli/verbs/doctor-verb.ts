import type { DaemonPlaces } from '../../api/routes.ts'
import { apiSocketPath } from '../../config/places.ts'
import type { DoctorFinding } from '../../decide/doctor/doctor-finding.ts'
import { namedSocket } from '../arguments/socket-path.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import { atPlaces } from '../local/down-target.ts'
import { loadConfig, placeConfigFlags } from '../local/load-config.ts'
import { formatError, formatReport, readReportFormat, reportFlag } from '../output/report-format.ts'
import { Table, counted } from '../output/table.ts'

export const doctorVerb: Verb = {
  usage: 'doctor [-o json|yaml] [FLAGS]',
  help: `Checks whether this host meets podd's requirements, and says how to fix what doesn't; works with and without a
running daemon. The exit code is 1 if a requirement of pods is not met. Takes the flags of \`podd run\`; with --socket or
PODD_SOCKET it checks the directories, the pod network, the runtime and the ports of the podd that listens there.`,
  flags: [reportFlag('a table'), ...placeConfigFlags],
  examples: [
    ['doctor', 'with the settings of the config file'],
    [
      'doctor --container-runtime-endpoint unix:///run/containerd/containerd.sock',
      "the host's own containerd",
    ],
    ['doctor -o json', 'for a program that watches over hosts'],
  ],
  async run(context) {
    const { args, client, daemon, signal } = context
    args.refuseMore('doctor')
    const format = readReportFormat(args)
    const { config } = await loadConfig(context)
    const places = await placesOfNamed(context)
    const findings =
      places === undefined
        ? await daemon.doctor(config, signal)
        : await daemon.doctor(atPlaces(config, places), signal, {
            isOther: client.socketPath !== apiSocketPath(config.runDir),
          })
    return {
      kind: 'text',
      text: await formatReport(format, 'DoctorReport', { items: findings }, () => formatFindings(findings)),
      exitCode: findings.some(({ status }) => status === 'error') ? 1 : 0,
    }
  },
}

/** The status of the podd at the given socket, if it answers: doctor's checks find out why it doesn't. */
async function placesOfNamed(context: VerbContext): Promise<DaemonPlaces | undefined> {
  const { args, client, env, signal, notify } = context
  if (namedSocket(args.value('socket'), env) === undefined) return undefined
  try {
    return (await client.status(signal)).places
  } catch (error) {
    signal.throwIfAborted()
    notify(formatError(error))
    return undefined
  }
}

function formatFindings(findings: readonly DoctorFinding[]): string {
  const rows = findings.flatMap(({ status, name, message, hint }) => [
    [status, name, message],
    ...(hint === undefined || status === 'ok'
      ? []
      : hint.split('\n').map((line) => ['', '', `fix: ${line}`])),
  ])
  const errors = findings.filter(({ status }) => status === 'error').length
  const warnings = findings.filter(({ status }) => status === 'warning').length
  const summary =
    errors + warnings === 0 ? 'All is well.' : `${counted(errors, 'error')}, ${counted(warnings, 'warning')}`
  return `${new Table().layOut(rows)}${summary}\n`
}
