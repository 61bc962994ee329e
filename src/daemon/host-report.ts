import { createHash } from 'node:crypto'
import type { HostReport, ReportedContainer, ReportedError, ReportedPod } from '../api/host-report.ts'
import { kubernetesVersion } from '../api/resource.ts'
import type { EventObject, PodObject } from '../api/resource.ts'
import type { DaemonStatus } from '../api/routes.ts'
import type { SourceObject, UnitObject } from '../api/sources.ts'
import { formatTime } from '../base/clock.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { PoddError } from '../base/errors.ts'
import { parseSourceUrl } from '../base/http.ts'
import type { ReportSetting } from '../config/source-options.ts'
import type { NodeJob } from '../control/node/node-jobs.ts'
import type { ShownResources } from '../control/serving/resource-store.ts'
import type { SourceSight } from '../decide/updates/judge-source.ts'
import type { HostInfo } from '../host/facts/host-info.ts'
import type { ContainerStatus } from '../pod/state/status.ts'
import { postOnce, readHeaders } from '../sources/http/http-get.ts'
import { HttpRoutes } from '../sources/http/http-routes.ts'
import type { Environment } from '../sources/http/http-routes.ts'

/** How long a change waits for others. */
const gatherMs = 2000
const firstRetryMs = 15_000
const deadlineMs = 30_000
/** The greatest report, before it is compressed. */
const maxReportBytes = 256 * 1024
const maxErrors = 40
const maxTextLength = 500

/** What containers write may stand in the messages of these events. */
const quotingReasons: readonly string[] = [
  'Unhealthy',
  'ProbeWarning',
  'FailedPostStartHook',
  'FailedPreStopHook',
]

export interface ReportEnv {
  readonly hostName: string
  readonly hostInfo: Pick<HostInfo, 'bootId' | 'kernel'>
  readonly shown: Pick<ShownResources, 'pods' | 'events'>
  readonly status: () => DaemonStatus
  readonly sources: () => readonly SourceObject[]
  readonly units: () => readonly UnitObject[]
  readonly sight: (source: SourceObject) => SourceSight
  /** Has the job run. */
  readonly wake: () => void
  readonly clock: Clock
  /** With the proxy settings. */
  readonly env: Environment
}

/**
 * Sends what this host is and runs to a server, by a period and after each change; changes that come shortly after one another
 * go together. While the server can't be reached nothing is kept: what is sent next is the newest. The report is a POST of
 * JSON, compressed; any answer of 2xx takes it.
 */
export class HostReporter {
  readonly #setting: ReportSetting
  readonly #env: ReportEnv
  readonly #routes: HttpRoutes
  readonly #url: URL
  /** Of the last report that arrived. */
  #sent: string | undefined
  #isFailing = false
  #timer: Timer | undefined
  #retryMs = firstRetryMs

  constructor(setting: ReportSetting, env: ReportEnv) {
    const { url, socketPath } = parseSourceUrl(setting.url)
    this.#setting = setting
    this.#env = env
    this.#url = url
    const { caFile, certFile, keyFile } = setting
    this.#routes = new HttpRoutes(env.env, socketPath, { caFile, certFile, keyFile })
  }

  job(): NodeJob {
    return {
      name: 'send-report',
      periodMs: this.#setting.periodMs,
      runsAtStart: true,
      deadlineMs,
      run: (signal) => this.#send(signal),
    }
  }

  /** Follows what changes until the signal is aborted. */
  follow(signal: AbortSignal): void {
    const { shown } = this.#env
    const stops = [shown.pods.subscribe(() => this.note()), shown.events.subscribe(() => this.note())]
    signal.addEventListener('abort', () => {
      for (const stop of stops) stop()
      this.#timer?.cancel()
      void this.#routes.destroy()
    })
  }

  /** Something may have changed. */
  note(): void {
    this.#timer ??= this.#wakeIn(gatherMs)
  }

  #wakeIn(delayMs: number): Timer {
    const { clock, wake } = this.#env
    return clock.startTimer(delayMs, () => {
      this.#timer = undefined
      if (this.#isFailing || digestOf(this.#report()) !== this.#sent) wake()
    })
  }

  async #send(signal: AbortSignal): Promise<void> {
    const report = this.#report()
    const { headers, headerFiles, periodMs } = this.#setting
    const { gzipSync } = await import('node:zlib')
    const body = gzipSync(JSON.stringify(report))
    const given = await readHeaders(headers, headerFiles)
    const failure = await postOnce(this.#routes, { url: this.#url, headers: given, body }, signal)
    this.#isFailing = failure !== undefined
    if (failure === undefined) {
      this.#sent = digestOf(report)
      this.#retryMs = firstRetryMs
      return
    }
    this.#timer?.cancel()
    this.#timer = this.#wakeIn(this.#retryMs)
    this.#retryMs = Math.min(2 * this.#retryMs, periodMs)
    const { message, hint } = failure
    throw new PoddError(
      'REPORT_FAILED',
      `the report cannot be sent: ${message}`,
      hint === undefined ? {} : { hint },
    )
  }

  #report(): HostReport {
    const { hostName, hostInfo, shown, clock, ...env } = this.#env
    const status = env.status()
    const reported = env.sources().map((source): HostReport['sources'][number] => {
      const { state, etag, pods, errors, lastAnswerTime, failingSince, message } = source.status
      const { revision, health } = env.sight(source)
      return {
        name: source.metadata.name,
        place: source.spec.place,
        state,
        revision,
        health,
        etag,
        pods,
        errors,
        lastAnswerTime,
        failingSince,
        message: shorten(message),
      }
    })
    const healths = reported.map(({ health }) => health)
    const { name, version, healthy, message } = status.runtime
    return bounded({
      apiVersion: 'podd.dev/v1',
      kind: 'HostReport',
      version: 1,
      node: hostName,
      time: formatTime(clock.wallMs()),
      host: {
        bootId: hostInfo.bootId,
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        kernel: hostInfo.kernel,
        poddStarted: status.startedAt,
        podd: status.version,
        kubernetes: kubernetesVersion,
        runtime: { name, version },
      },
      health: (['failed', 'progressing'] as const).find((each) => healths.includes(each)) ?? 'healthy',
      runtime: { healthy, message: shorten(message) },
      draining: status.draining === true,
      sources: reported,
      units: env.units().map((unit) => reportUnit(unit)),
      pods: shown.pods.list().map((pod) => reportPod(pod)),
      pressure: status.pressure,
      errors: reportErrors(status, shown.events.list()),
    })
  }
}

/** Of all but what changes by itself. */
function digestOf(report: HostReport): string {
  const { time: _, pressure, ...rest } = report
  return createHash('sha256')
    .update(JSON.stringify([rest, pressure?.conditions]))
    .digest('base64')
}

/** Leaves out as many pods as it takes; those that are ready go first. */
function bounded(report: HostReport): HostReport {
  const sizeOf = (part: unknown): number => Buffer.byteLength(JSON.stringify(part))
  let spare = maxReportBytes - sizeOf({ ...report, pods: [] })
  const kept = new Set<ReportedPod>()
  for (const pod of [...report.pods].toSorted((a, b) => Number(a.ready) - Number(b.ready))) {
    spare -= sizeOf(pod) + 1
    if (spare < 0) break
    kept.add(pod)
  }
  if (kept.size === report.pods.length) return report
  const pods = report.pods.filter((pod) => kept.has(pod))
  return { ...report, pods, omittedPods: report.pods.length - pods.length }
}

function reportUnit({ metadata, spec, status }: UnitObject): HostReport['units'][number] {
  const { state, active, offered, revisions, message } = status
  const hash = revisions.find(({ number }) => number === active)?.hash
  return {
    name: metadata.name,
    source: spec.source,
    state,
    active,
    offered,
    hash,
    message: shorten(message),
  }
}

function reportPod({ metadata, status }: PodObject): ReportedPod {
  const { namespace, name, uid, annotations } = metadata
  const ready = status.conditions.find(({ type }) => type === 'Ready')
  const { initContainerStatuses = [], containerStatuses = [] } = status
  return {
    namespace,
    name,
    uid,
    source: annotations?.['podd.dev/source'],
    phase: status.phase,
    ready: ready?.status === 'True',
    reason: status.reason ?? (ready?.status === 'True' ? undefined : ready?.reason),
    startTime: status.startTime,
    containers: [
      ...initContainerStatuses.map((each) => reportContainer(each, true)),
      ...containerStatuses.map((each) => reportContainer(each)),
    ],
  }
}

/** Without messages: a container may write into them. */
function reportContainer(
  {
    name,
    image,
    ready,
    restartCount,
    state: { waiting, running, terminated },
    lastState: { terminated: last },
  }: ContainerStatus,
  init?: true,
): ReportedContainer {
  return {
    name,
    init,
    image,
    ready,
    restarts: restartCount,
    state: running !== undefined ? 'running' : terminated !== undefined ? 'terminated' : 'waiting',
    reason: waiting?.reason ?? terminated?.reason,
    exitCode: terminated?.exitCode,
    last: last && { reason: last.reason, exitCode: last.exitCode },
  }
}

function reportErrors(
  { problems, jobs }: DaemonStatus,
  events: readonly EventObject[],
): readonly ReportedError[] {
  const ofDocuments = problems
    .filter(({ severity }) => severity === 'error')
    .map(({ place, message }) => ({ about: place.path, reason: 'BadDocument', message }))
  // The report itself tells that it failed, where it arrives.
  const ofJobs = jobs.flatMap(({ name, error: message }) =>
    message === undefined || name === 'send-report' ? [] : [{ about: name, reason: 'JobFailed', message }],
  )
  const ofEvents = events
    .filter(({ type }) => type === 'Warning')
    .toSorted((a, b) => Date.parse(b.lastTimestamp) - Date.parse(a.lastTimestamp))
    .map(({ lastTimestamp: time, involvedObject, reason, message }) => {
      const { kind, namespace, name } = involvedObject
      const about = namespace === '' || kind === 'Node' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
      return { time, about, reason, message: quotingReasons.includes(reason) ? '' : message }
    })
  return [...ofDocuments.slice(0, maxErrors / 2), ...ofJobs, ...ofEvents]
    .slice(0, maxErrors)
    .map((error) => Object.assign(error, { message: shorten(error.message) ?? '' }))
}

function shorten(text: string | undefined): string | undefined {
  return text === undefined || text.length <= maxTextLength ? text : `${text.slice(0, maxTextLength)}…`
}
