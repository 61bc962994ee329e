/**
 * GET /podd/v1/usage, where the status page is on: what was used, oldest first. Each list has a figure for each of
 * `times`; null where there was none.
 */
export interface UsageHistoryReply {
  /** From one measurement to the next. */
  readonly periodSeconds: number
  /** The longest history. */
  readonly spanSeconds: number
  /** Wall milliseconds. */
  readonly times: readonly number[]
  readonly node: UsageSeries
  readonly pods: readonly PodUsageSeries[]
}

export interface UsageSeries {
  /** Thousandths of a CPU. */
  readonly cpuMillis: readonly (number | null)[]
  /** The working set. */
  readonly memoryBytes: readonly (number | null)[]
}

export interface PodUsageSeries extends UsageSeries {
  readonly uid: string
}
