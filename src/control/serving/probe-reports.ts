import type { ProbeReportObject } from '../../api/probe-reports.ts'
import { formatTime } from '../../base/clock.ts'
import type { ProbeReport } from '../probing/prober-worker.ts'

/** The reports on a pod's probes as the API tells them. */
export function toProbeReports(reports: readonly ProbeReport[]): readonly ProbeReportObject[] {
  return reports.map(({ container, probe, result, counts, lastFailure }) => ({
    container,
    probe,
    result,
    counts,
    ...(lastFailure === undefined
      ? {}
      : { lastFailure: { time: formatTime(lastFailure.atMs), message: lastFailure.message } }),
  }))
}
