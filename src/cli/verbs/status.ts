import type { PressureStatus } from '../../api/routes.ts'
import { formatAge, formatAgeOf } from '../../api/served-kind.ts'
import { formatBytes } from '../../base/text.ts'
import { apiSocketPath } from '../../config/places.ts'
import { namedSocket } from '../arguments/socket-path.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import { gatherStatus } from '../local/gather-status.ts'
import type { HostSummary, PodCounts, ShownError, StatusReport } from '../local/gather-status.ts'
import { configFlags, loadConfig } from '../local/load-config.ts'
import type { PodTrouble } from '../local/pod-troubles.ts'
import { daemonNotes } from '../output/print.ts'
import { formatReport, readReportFormat, reportFlag } from '../output/report-format.ts'
import { counted, shorten, Table } from '../output/table.ts'

const placeFlags = ['config', 'root-dir', 'run-dir']

export const statusVerb: Verb = {
  usage: 'status [-o json|yaml] [FLAGS]',
  help: `Shows the host, the daemon, its container runtime, sources, pods, pressure, failed periodic jobs, the pods that are broken
and why, the newest error of each other cause, and problems of manifests. Where the daemon doesn't answer, it says so, and shows what the files in its state directory tell. The exit
code is 1 if the daemon or the container runtime doesn't work.`,
  flags: [reportFlag('lines of text'), ...configFlags.filter(({ name }) => placeFlags.includes(name))],
  examples: [
    ['status', ''],
    ['status -o json', 'for monitoring: with all periodic jobs'],
  ],
  async run(context) {
    const { args, client, clock, signal } = context
    args.refuseMore('status')
    const format = readReportFormat(args)
    const report = await gatherStatus(client, await placesOf(context), signal)
    return {
      kind: 'text',
      text: await formatReport(format, 'StatusReport', { ...report }, () =>
        formatStatus(report, clock.wallMs()),
      ),
      exitCode: report.running && report.runtime.healthy ? 0 : 1,
    }
  },
}

/** The places of the config, unless another socket is given. */
async function placesOf(context: VerbContext): Promise<Parameters<typeof gatherStatus>[1]> {
  const { args, client, env } = context
  const { rootDir, runDir } = (await loadConfig(context)).config
  const isNamed = namedSocket(args.value('socket'), env) !== undefined
  return isNamed && client.socketPath !== apiSocketPath(runDir) && args.value('root-dir') === undefined
    ? undefined
    : { rootDir, runDir }
}

/** `podd status` on one screen. */
function formatStatus(report: StatusReport, nowMs: number): string {
  const { crashes, lastErrors } = report
  const crash = crashes.at(-1)
  const notes = [
    ...(report.running
      ? daemonNotes(report)
      : report.unreadable.map((path) => `warning: ${path} was put aside`)),
    ...(crash === undefined
      ? []
      : [`warning: podd crashed ${formatAgeOf(crash.time, nowMs)} ago and restarted: ${crash.report}`]),
  ]
  const sections = [
    new Table().layOut([['Host:', formatHost(report.host)], ...describe(report, nowMs)]),
    formatSources(report, nowMs),
    ...(report.running ? [formatTroubles(report.troubles)] : []),
    formatErrors(lastErrors, nowMs),
    notes.map((note) => `${note}\n`).join(''),
  ]
  return sections.filter((section) => section !== '').join('\n')
}

function formatHost({ name, address, kernel, cpus, memoryBytes, upSeconds }: HostSummary): string {
  const size = `${cpus} CPUs, ${formatBytes(memoryBytes)}`
  return `${name} (${address}), Linux ${kernel}, ${size}, up ${formatAge(upSeconds * 1000)}`
}

function describe(report: StatusReport, nowMs: number): readonly (readonly string[])[] {
  if (!report.running) {
    const { message, rootDir, containerd, pods } = report
    return [
      ['Daemon:', `not running: ${message}`],
      [
        'Runtime:',
        containerd.pid === undefined
          ? 'no containerd of podd runs'
          : `containerd runs (pid ${containerd.pid})`,
      ],
      ['Pods:', `${pods.length} on record, ${containerd.pods} with processes`],
      ['State:', `read from ${rootDir}`],
    ]
  }
  const { version, pid, startedAt, runtime, pods } = report
  const runtimeName = [runtime.name, runtime.version].filter((part) => part !== undefined).join(' ')
  return [
    ['Daemon:', `podd ${version} (pid ${pid}), started ${formatAgeOf(startedAt, nowMs)} ago`],
    ['Runtime:', `${runtimeName} (${runtime.endpoint}), ${runtime.healthy ? 'healthy' : 'not healthy'}`],
    ['Pods:', formatPods(pods)],
    ['Pressure:', formatPressure(report.pressure)],
    ...(report.draining === true ? [['Drained:', 'no pod is admitted; `podd drain --undo` ends that']] : []),
    ...formatJobs(report.jobs, nowMs),
  ]
}

function formatPods({ total, ready, phases }: PodCounts): string {
  const parts = Object.entries(phases).map(([phase, count]) => `${count} ${phase}`)
  return total === 0 ? 'none' : `${total}: ${parts.join(', ')}; ${ready} ready`
}

/** The number of jobs, and a line for each whose last run failed. */
function formatJobs(
  jobs: Extract<StatusReport, { running: true }>['jobs'],
  nowMs: number,
): readonly (readonly string[])[] {
  const failed = jobs.filter(({ error }) => error !== undefined)
  if (failed.length === 0) return [['Node jobs:', jobs.length === 0 ? 'none' : `${jobs.length}, none failed`]]
  return failed.map(({ name, error, lastStartTime }, at) => [
    at === 0 ? 'Node jobs:' : '',
    `${name} failed ${formatAgeOf(lastStartTime, nowMs)} ago: ${error}`,
  ])
}

function formatPressure(pressure: PressureStatus | undefined): string {
  if (pressure === undefined) return 'not watched: no eviction threshold is set'
  return pressure.conditions.length === 0 ? 'none' : pressure.conditions.join(', ')
}

function formatSources(report: StatusReport, nowMs: number): string {
  if (!report.running)
    return new Table().layOut([
      ['SOURCE', 'LAST GOOD PODS', 'PLACE'],
      ...report.sources.map(({ source, pods, path }) => [source, String(pods), path]),
    ])
  return new Table().layOut([
    ['SOURCE', 'READY', 'PODS', 'PLACE'],
    ...report.sources.map(({ source, ready, pods, path, heldSince }) => [
      source,
      `${ready ? 'yes' : 'no'}${heldSince === undefined ? '' : `, held (${formatAgeOf(heldSince, nowMs)})`}`,
      String(pods),
      path,
    ]),
  ])
}

/** So many leave the rest of the status on a screen. */
const maxTroubles = 10

function formatTroubles(troubles: readonly PodTrouble[]): string {
  if (troubles.length === 0) return ''
  const rest = troubles.length - maxTroubles
  const table = new Table().layOut([
    ['BROKEN PODS', 'STATUS', 'WHY'],
    ...troubles.slice(0, maxTroubles).map(({ pod, status, why }) => [pod, status, shorten(why)]),
  ])
  return rest > 0 ? `${table}${counted(rest, 'more pod')} with problems: \`podd get pods -A\`\n` : table
}

function formatErrors(errors: readonly ShownError[], nowMs: number): string {
  if (errors.length === 0) return ''
  return new Table().layOut([
    ['LAST ERRORS', 'OBJECT', 'REASON', 'MESSAGE'],
    ...errors.map(({ time, object, reason, message, count }) => [
      `${formatAgeOf(time, nowMs)} ago${count > 1 ? ` (x${count})` : ''}`,
      object,
      reason,
      shorten(message),
    ]),
  ])
}
