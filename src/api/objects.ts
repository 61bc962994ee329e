import type { JsonObject } from '../base/json.ts'
import type { PodStatus } from '../pod/state/status.ts'

/** A Pod as the API gives it: the applied manifest's spec, podd's metadata, the derived status. */
export interface PodObject {
  readonly apiVersion: 'v1'
  readonly kind: 'Pod'
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly resourceVersion?: string
    /** See decide/pod-generation.ts. */
    readonly generation: number
    readonly creationTimestamp: string
    readonly deletionTimestamp?: string
    readonly finalizers?: readonly string[]
    readonly deletionGracePeriodSeconds?: number
    readonly labels?: Readonly<Record<string, string>>
    /** The manifest's, and `podd.dev/source` (`file`, `http`), `podd.dev/path`. */
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: JsonObject
  readonly status: PodStatus
}

export interface PodListObject {
  readonly apiVersion: 'v1'
  readonly kind: 'PodList'
  readonly metadata: { readonly resourceVersion: string }
  readonly items: readonly PodObject[]
}

/** core/v1 Event. */
export interface EventObject {
  readonly apiVersion: 'v1'
  readonly kind: 'Event'
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly resourceVersion?: string
    readonly creationTimestamp: string
  }
  readonly involvedObject: {
    readonly apiVersion?: string
    readonly kind: string
    readonly namespace: string
    readonly name: string
    readonly uid: string
    /** `spec.containers{NAME}` where it is about a container. */
    readonly fieldPath?: string
  }
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  readonly source: { readonly component: 'kubelet'; readonly host: string }
  readonly reportingComponent: 'kubelet'
  readonly reportingInstance: string
  readonly firstTimestamp: string
  readonly lastTimestamp: string
  readonly count: number
}

export interface EventListObject {
  readonly apiVersion: 'v1'
  readonly kind: 'EventList'
  readonly items: readonly EventObject[]
}
