/** The usage of a pod's containers (metrics.k8s.io/v1beta1). Times are RFC 3339 text. */
export interface PodMetrics {
  readonly apiVersion: 'metrics.k8s.io/v1beta1'
  readonly kind: 'PodMetrics'
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly creationTimestamp: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly timestamp: string
  /** Over how long the CPU usage was measured, as Go writes it: `1.002s`. */
  readonly window: string
  readonly containers: readonly ContainerMetrics[]
}

export interface ContainerMetrics {
  readonly name: string
  /** Quantities: `cpu` in nanocores (`1250000n`), `memory`, the working set, in bytes (`4096Ki`). */
  readonly usage: { readonly cpu: string; readonly memory: string }
}

export interface PodMetricsList {
  readonly apiVersion: 'metrics.k8s.io/v1beta1'
  readonly kind: 'PodMetricsList'
  readonly items: readonly PodMetrics[]
}

/** The usage of the host, in the same units. */
export interface NodeMetrics {
  readonly apiVersion: 'metrics.k8s.io/v1beta1'
  readonly kind: 'NodeMetrics'
  readonly metadata: {
    readonly name: string
    readonly creationTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly timestamp: string
  readonly window: string
  readonly usage: ContainerMetrics['usage']
}

export interface NodeMetricsList {
  readonly apiVersion: 'metrics.k8s.io/v1beta1'
  readonly kind: 'NodeMetricsList'
  readonly metadata: object
  readonly items: readonly NodeMetrics[]
}

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

/** One probe of one container, with its results since podd first saw the container. Times are RFC 3339 text. */
export interface ProbeReportObject {
  readonly container: string
  readonly probe: 'liveness' | 'readiness' | 'startup'
  /** The current verdict: a result that has reached its threshold. */
  readonly result: 'success' | 'failure' | 'unknown'
  /** How often each result occurred. `repeated`: podd itself was too busy or the runtime silent, and the probe was sent again. */
  readonly counts: {
    readonly success: number
    readonly failure: number
    readonly unknown: number
    readonly repeated: number
  }
  /** The newest failure, with its event's message; it may be of an earlier container. */
  readonly lastFailure?: { readonly time: string; readonly message: string }
}
