import type { PressureStatus } from '../../api/routes.ts'
import { formatAgeOf, formatAge } from '../../api/served-kind.ts'
import { formatBytes } from '../../base/text.ts'
import type { HostSummary } from '../support/host-summary.ts'
import type { ShownError } from '../support/shown-error.ts'
import type { PodCounts, StatusReport } from '../support/status-report.ts'
import { daemonNotes } from './daemon-notes.ts'
import { Table } from './table.ts'

/** `podd status` on one screen. */
export function formatStatus(report: StatusReport, nowMs: number): string {
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

const mostLetters = 160

function shorten(message: string): string {
  const line = message.trim().replaceAll(/\s+/gu, ' ')
  return line.length <= mostLetters ? line : `${line.slice(0, mostLetters)}…`
}
