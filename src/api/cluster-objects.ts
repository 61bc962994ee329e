import type { JsonObject } from '../base/json.ts'
import type { OwnerReference, ResourceObject } from './resource.ts'

/** Objects about the host as a whole, which podd creates by itself. */

type ClusterMeta = Omit<ResourceObject['metadata'], 'namespace'>

export interface NamespaceObject {
  readonly apiVersion: 'v1'
  readonly kind: 'Namespace'
  readonly metadata: ClusterMeta & { readonly deletionTimestamp?: string }
  readonly spec: { readonly finalizers: readonly string[] }
  readonly status: { readonly phase: 'Active' | 'Terminating' }
}

/** Pods refer to one by name; there are no tokens. As a client wrote it, or the one that each namespace has. */
export interface ServiceAccountObject extends ResourceObject {
  readonly kind: 'ServiceAccount'
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

/** The metadata common to all objects that pods refer to. */
export interface LocalObjectMeta extends ClusterMeta {
  readonly namespace: string
  /** Follows from the kind, the name and the source: the same after a restart of podd. */
  readonly uid: string
  /** Of an object without a record: when podd first showed it since it started. */
  readonly creationTimestamp?: string
  /** The manifest's, and `podd.dev/source`, `podd.dev/path`. */
  readonly annotations?: Readonly<Record<string, string>>
  /** Of a Job that a CronJob has started. */
  readonly ownerReferences?: readonly OwnerReference[]
}

/**
 * A ConfigMap or Secret. In podd's own form of a Secret (below /podd/v1) each value is only how long it is (`<7 bytes>`).
 */
export interface ConfigObject {
  readonly apiVersion: 'v1'
  readonly kind: 'ConfigMap' | 'Secret'
  readonly metadata: LocalObjectMeta
  /** Of Secrets. */
  readonly type?: string
  readonly immutable?: boolean
  /** Text in a ConfigMap, base64 in a Secret; absent where there is none. */
  readonly data?: Readonly<Record<string, string>>
  /** Of ConfigMaps: base64. */
  readonly binaryData?: Readonly<Record<string, string>>
}

/** A claim: given by a document, or known only by its remaining directory. */
export interface ClaimObject {
  readonly apiVersion: 'v1'
  readonly kind: 'PersistentVolumeClaim'
  readonly metadata: LocalObjectMeta
  readonly spec?: {
    readonly accessModes: readonly string[]
    readonly resources: { readonly requests: Readonly<Record<string, string>> }
    readonly storageClassName: 'podd-local'
    readonly volumeMode?: 'Filesystem'
    /** Once it is bound. */
    readonly volumeName?: string
  }
  readonly status: {
    /** Pending: no pod has needed it yet. Released: it has data, and no document any more. */
    readonly phase: 'Pending' | 'Bound' | 'Released'
    readonly accessModes?: readonly string[]
    readonly capacity?: { readonly storage: string }
    /** podd's own: the directory, and the size of its content. */
    readonly path: string
    /** As of the last request for claims. */
    readonly usedBytes?: number
  }
}

/** apps/v1 and batch/v1: what pods are made from. The spec is the manifest's, with defaults. */
export interface WorkloadObject {
  readonly apiVersion: 'apps/v1' | 'batch/v1'
  readonly kind: 'Deployment' | 'StatefulSet' | 'DaemonSet' | 'Job' | 'CronJob'
  readonly metadata: LocalObjectMeta & { readonly generation: number }
  readonly spec: JsonObject
  readonly status: JsonObject
}

/** apps/v1: stands for a template of a Deployment (ReplicaSet) or of a StatefulSet or DaemonSet (ControllerRevision). */
export type WorkloadRevisionObject = {
  readonly apiVersion: 'apps/v1'
  readonly metadata: LocalObjectMeta & { readonly ownerReferences: readonly OwnerReference[] }
} & (
  | { readonly kind: 'ReplicaSet'; readonly spec: JsonObject; readonly status: JsonObject }
  | { readonly kind: 'ControllerRevision'; readonly revision: number; readonly data: JsonObject }
)

/** core/v1 Service: a name for pods; it has no address of its own. */
export interface ServiceObject {
  readonly apiVersion: 'v1'
  readonly kind: 'Service'
  readonly metadata: LocalObjectMeta
  readonly spec: {
    readonly type: string
    /** `None`, where the manifest says so. */
    readonly clusterIP?: string
    readonly clusterIPs?: readonly string[]
    readonly ports?: readonly {
      readonly name?: string
      readonly port: number
      readonly targetPort: number | string
      readonly protocol: string
    }[]
    readonly selector: Readonly<Record<string, string>>
    readonly publishNotReadyAddresses?: true
    readonly sessionAffinity: 'None'
    readonly internalTrafficPolicy: 'Cluster'
  }
  readonly status: { readonly loadBalancer: JsonObject }
}

/** discovery.k8s.io/v1 EndpointSlice: follows from a Service and its pods. */
export interface EndpointSliceObject {
  readonly apiVersion: 'discovery.k8s.io/v1'
  readonly kind: 'EndpointSlice'
  readonly metadata: ClusterMeta & {
    readonly namespace: string
    readonly ownerReferences: readonly object[]
  }
  readonly addressType: 'IPv4' | 'IPv6'
  readonly ports: readonly { readonly name: string; readonly protocol: string; readonly port: number }[]
  readonly endpoints: readonly {
    readonly addresses: readonly string[]
    readonly conditions: { readonly ready: boolean; readonly serving: boolean; readonly terminating: boolean }
    readonly hostname?: string
    readonly nodeName: string
    readonly targetRef: {
      readonly kind: 'Pod'
      readonly namespace: string
      readonly name: string
      readonly uid: string
    }
  }[]
}

/** coordination.k8s.io/v1 Lease: as a client wrote it, or the node's, which says that podd is alive. */
export interface LeaseObject extends ResourceObject {
  readonly kind: 'Lease'
  readonly spec?: JsonObject
}

/** What has no effect on one host: as a client wrote it. */
export interface IdleObject extends ResourceObject {
  readonly kind:
    | 'Role'
    | 'RoleBinding'
    | 'ClusterRole'
    | 'ClusterRoleBinding'
    | 'PodDisruptionBudget'
    | 'StorageClass'
    | 'IngressClass'
    | 'CustomResourceDefinition'
}

/** core/v1 PodTemplate: as a client wrote it; podd makes no pod of it. */
export interface PodTemplateObject extends ResourceObject {
  readonly kind: 'PodTemplate'
  readonly template?: JsonObject
}
