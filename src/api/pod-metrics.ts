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
