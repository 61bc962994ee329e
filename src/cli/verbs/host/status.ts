import type { DaemonStatus, PressureStatus } from '../../../api/routes.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb } from '../../arguments/verb.ts'
import { formatAgeOf } from '../../../api/kinds/age.ts'
import { formatReport, readReportFormat, reportFlag } from '../../output/report-format.ts'
import { Table } from '../../output/table.ts'
import { daemonNotes } from '../../output/daemon-notes.ts'

export const statusVerb: Verb = {
  usage: 'status [-o json|yaml]',
  help: `Shows the daemon's state: its container runtime, its sources, its periodic jobs, and its problems.
The exit code is 1 if the container runtime doesn't work.`,
  flags: [reportFlag('lines of text')],
  examples: [
    ['status', ''],
    ['status -o json', 'for monitoring'],
  ],
  async run({ args, client, clock, signal }) {
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`status takes no argument ${JSON.stringify(extra)}`)
    const format = readReportFormat(args)
    const status = await client.get<DaemonStatus>('/podd/v1/status', signal)
    return {
      kind: 'text',
      text:
        format === undefined
          ? formatStatus(status, clock.wallMs())
          : await formatReport(format, 'StatusReport', { ...status }),
      exitCode: status.runtime.healthy ? 0 : 1,
    }
  },
}

function formatStatus(status: DaemonStatus, nowMs: number): string {
  const { version, pid, startedAt, runtime, sources, jobs } = status
  const runtimeName = [runtime.name, runtime.version].filter((part) => part !== undefined).join(' ')
  const sections = [
    new Table().layOut([
      ['Daemon:', `podd ${version} (pid ${pid}), started ${formatAgeOf(startedAt, nowMs)} ago`],
      ['Runtime:', `${runtimeName} (${runtime.endpoint}), ${runtime.healthy ? 'healthy' : 'not healthy'}`],
      ['Pressure:', formatPressure(status.pressure)],
      ...(status.draining === true
        ? [['Drained:', 'no pod is admitted; `podd drain --undo` ends that']]
        : []),
    ]),
    new Table().layOut([
      ['SOURCE', 'READY', 'PODS', 'PLACE'],
      ...sources.map(({ source, ready, pods, path }) => [source, ready ? 'yes' : 'no', String(pods), path]),
    ]),
    new Table().layOut([
      ['NODE JOB', 'PERIOD', 'RUNS', 'LAST', 'TOOK', 'ERROR'],
      ...jobs.map(({ name, periodSeconds, running, runs, lastStartTime, lastDurationMs, error }) => [
        name,
        `${periodSeconds}s`,
        String(runs),
        running
          ? 'running'
          : lastStartTime === undefined
            ? '<none>'
            : `${formatAgeOf(lastStartTime, nowMs)} ago`,
        lastDurationMs === undefined ? '<none>' : `${lastDurationMs}ms`,
        error ?? '',
      ]),
    ]),
  ]
  const crash = status.crashes.at(-1)
  const crashNote = `warning: podd crashed ${formatAgeOf(crash?.time, nowMs)} ago and restarted: ${crash?.report}`
  const notes = [...daemonNotes(status), ...(crash === undefined ? [] : [crashNote])].map(
    (note) => `${note}\n`,
  )
  return [...sections, ...(notes.length === 0 ? [] : [notes.join('')])].join('\n')
}

function formatPressure(pressure: PressureStatus | undefined): string {
  if (pressure === undefined) return 'not watched: no eviction threshold is set'
  return pressure.conditions.length === 0 ? 'none' : pressure.conditions.join(', ')
}
