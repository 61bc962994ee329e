import { nearestName } from '../values/nearest-name.ts'
import { isObjectKind, objectKindNames } from '../kinds/object-kinds.ts'

const workloads = [
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'ReplicaSet',
  'ReplicationController',
  'Job',
  'CronJob',
]

const others = [
  'APIService',
  'Binding',
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'EndpointSlice',
  'Endpoints',
  'Event',
  'Gateway',
  'HTTPRoute',
  'HorizontalPodAutoscaler',
  'Ingress',
  'IngressClass',
  'Lease',
  'LimitRange',
  'MutatingWebhookConfiguration',
  'Namespace',
  'NetworkPolicy',
  'Node',
  'PersistentVolume',
  'PodDisruptionBudget',
  'PodTemplate',
  'ResourceQuota',
  'Role',
  'RoleBinding',
  'Service',
  'ServiceAccount',
  'StorageClass',
  'ValidatingWebhookConfiguration',
]

export interface KindRefusal {
  readonly message: string
  readonly hint?: string
  /** Whether the document is certainly of another kind, so that it can't be a pod of its name with a typo. */
  readonly isOtherKind: boolean
}

/** Why a document of a kind that podd doesn't know isn't taken, or a List inside another one. */
export function refuseKind(kind: string): KindRefusal {
  if (kind === 'List' || kind === 'PodList') {
    const hint = 'put its items into the outer one'
    return { message: `a ${kind} inside another list is not supported`, hint, isOtherKind: false }
  }
  const item = kind.replace(/List$/, '')
  if (item !== kind && isObjectKind(item)) {
    const hint = `write a List, or each ${item} as a document of its own`
    return { message: `kind ${kind} is not supported`, hint, isOtherKind: false }
  }
  if (workloads.includes(kind)) {
    return {
      message: `kind ${kind} is not supported: podd runs Pods`,
      hint: 'write its pod template as a Pod',
      isOtherKind: true,
    }
  }
  if (others.includes(kind)) {
    return { message: `kind ${kind} is not supported: there is no control plane here`, isOtherKind: true }
  }
  const nearest = nearestName(kind, ['Pod', 'PodList', 'List', ...objectKindNames, ...workloads, ...others])
  const guess = nearest === undefined ? '' : `; did you mean ${JSON.stringify(nearest)}?`
  return { message: `unknown kind ${JSON.stringify(kind)}${guess}`, isOtherKind: false }
}
