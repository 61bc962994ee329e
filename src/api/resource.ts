import packageFile from '../../package.json' with { type: 'json' }
import type { JsonObject } from '../base/json.ts'
import type { PodStatus } from '../pod/state/status.ts'

/** The fields common to all objects of the API: meta/v1 TypeMeta and ObjectMeta. */
export interface ResourceObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    /** Left out for kinds without namespaces. */
    readonly namespace?: string
    readonly uid: string
    /** Of the object's last change; given by the store that shows it. */
    readonly resourceVersion?: string
    readonly creationTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
}

/** The parts of an `apiVersion`; the group is empty for the core one. */
export function splitApiVersion(apiVersion: string): { readonly group: string; readonly version: string } {
  const [version = '', group = ''] = apiVersion.split('/').toReversed()
  return { group, version }
}

/** A resource with its group, as messages name it: `runtimeclasses.node.k8s.io`. */
export function qualifiedResource(kind: { readonly resource: string; readonly apiVersion: string }): string {
  const { group } = splitApiVersion(kind.apiVersion)
  return group === '' ? kind.resource : `${kind.resource}.${group}`
}

/** One line of a watch. */
export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: T
}

/** A change of one object, with a revision of its own, which is its `object`'s `resourceVersion`. */
export interface ResourceChange<T> extends WatchEvent<T> {
  readonly revision: number
  /** The object before the change; undefined for a new one. */
  readonly previous: T | undefined
}

export interface ResourceList<T extends ResourceObject = ResourceObject> {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    /** The revision from which a watch continues. */
    readonly resourceVersion: string
    /** The token for the rest of a limited list. */
    readonly continue?: string
    readonly remainingItemCount?: number
  }
  readonly items: readonly T[]
}

/** meta/v1 OwnerReference of a controller. */
export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller: true
  readonly blockOwnerDeletion: true
}

/** A Pod as the API gives it: the applied manifest's spec, podd's metadata, the derived status. */
export interface PodObject {
  readonly apiVersion: 'v1'
  readonly kind: 'Pod'
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly resourceVersion?: string
    /** See decide/status/derive-status.ts. */
    readonly generation: number
    readonly creationTimestamp: string
    readonly deletionTimestamp?: string
    readonly finalizers?: readonly string[]
    readonly deletionGracePeriodSeconds?: number
    readonly labels?: Readonly<Record<string, string>>
    /** The manifest's, and `podd.dev/source` (`file`, `http`), `podd.dev/path`. */
    readonly annotations?: Readonly<Record<string, string>>
    /** The workload that it is made by. */
    readonly ownerReferences?: readonly OwnerReference[]
  }
  readonly spec: JsonObject
  readonly status: PodStatus
}

export type PodListObject = ResourceList<PodObject>

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

export type EventListObject = ResourceList<EventObject>

/** Kubernetes' reasons of the API's errors, by HTTP status code. */
export const apiReasons = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  408: 'Timeout',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  431: 'RequestHeaderFieldsTooLarge',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
} as const

type ApiReason = (typeof apiReasons)[keyof typeof apiReasons]

/** Undefined for what no podd of this version answers. */
export function parseApiReason(text: string): ApiReason | undefined {
  if (text === 'AlreadyExists') return 'Conflict'
  return Object.values(apiReasons).find((reason) => reason === text)
}

/** podd's version. */
export const poddVersion: string = packageFile.version

/** The Kubernetes release whose behaviour podd matches. */
export const kubernetesVersion = '1.36'
