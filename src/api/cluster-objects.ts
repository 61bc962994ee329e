import type { JsonObject } from '../base/json.ts'

/** Objects about the host as a whole, which podd creates by itself. */

interface ClusterMeta {
  readonly name: string
  readonly uid: string
  readonly resourceVersion?: string
  readonly creationTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

export interface NamespaceObject {
  readonly apiVersion: 'v1'
  readonly kind: 'Namespace'
  readonly metadata: ClusterMeta & { readonly deletionTimestamp?: string }
  readonly spec: { readonly finalizers: readonly string[] }
  readonly status: { readonly phase: 'Active' | 'Terminating' }
}

/** Pods refer to one by name; there are no tokens. */
export interface ServiceAccountObject {
  readonly apiVersion: 'v1'
  readonly kind: 'ServiceAccount'
  readonly metadata: ClusterMeta & { readonly namespace: string }
}

export interface PriorityClassObject {
  readonly apiVersion: 'scheduling.k8s.io/v1'
  readonly kind: 'PriorityClass'
  readonly metadata: ClusterMeta & { readonly generation: number }
  readonly value: number
  readonly globalDefault?: boolean
  readonly description?: string
  readonly preemptionPolicy: 'PreemptLowerPriority' | 'Never'
}

export interface RuntimeClassObject {
  readonly apiVersion: 'node.k8s.io/v1'
  readonly kind: 'RuntimeClass'
  readonly metadata: ClusterMeta
  readonly handler: string
  readonly overhead?: { readonly podFixed: Readonly<Record<string, string>> }
  /** As it was written: `nodeSelector` and `tolerations`. */
  readonly scheduling?: JsonObject
}

/** core/v1 Node: this host. */
export interface NodeObject {
  readonly apiVersion: 'v1'
  readonly kind: 'Node'
  readonly metadata: ClusterMeta
  readonly spec: {
    readonly unschedulable?: true
    readonly podCIDR?: string
    readonly podCIDRs?: readonly string[]
  }
  readonly status: {
    readonly capacity: Readonly<Record<string, string>>
    readonly allocatable: Readonly<Record<string, string>>
    readonly conditions: readonly NodeCondition[]
    readonly addresses: readonly { readonly type: 'InternalIP' | 'Hostname'; readonly address: string }[]
    readonly daemonEndpoints: { readonly kubeletEndpoint: { readonly Port: number } }
    readonly nodeInfo: Readonly<Record<string, string>>
    readonly images: readonly { readonly names: readonly string[]; readonly sizeBytes: number }[]
  }
}

export interface NodeCondition {
  readonly type: 'Ready' | 'MemoryPressure' | 'DiskPressure' | 'PIDPressure'
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
  readonly lastHeartbeatTime: string
  readonly lastTransitionTime: string
}
