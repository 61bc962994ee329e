import { nearestName } from '../../base/text.ts'
import { isKeptKind } from '../kinds/kept-kinds.ts'
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
  'CSIDriver',
  'CSINode',
  'CSIStorageCapacity',
  'CertificateSigningRequest',
  'ClusterTrustBundle',
  'ControllerRevision',
  'DeviceClass',
  'FlowSchema',
  'IPAddress',
  'LeaseCandidate',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'PodGroup',
  'PriorityLevelConfiguration',
  'ResourceClaim',
  'ResourceClaimTemplate',
  'ResourceSlice',
  'ServiceCIDR',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'VolumeAttachment',
  'VolumeAttributesClass',
  'Workload',
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
  'LimitRange',
  'MutatingWebhookConfiguration',
  'NetworkPolicy',
  'Node',
  'PersistentVolume',
  'PodDisruptionBudget',
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
  /** Whether the document is certainly of another kind, rather than a pod with a typo in its kind. */
  readonly isOtherKind: boolean
}

/** Why a document of an unsupported kind, or a List inside another one, is refused. */
export function refuseKind(kind: string): KindRefusal {
  if (kind === 'List' || kind === 'PodList') {
    const hint = 'put its items into the outer one'
    return { message: `not supported: a ${kind} inside another list`, hint, isOtherKind: false }
  }
  const item = kind.replace(/List$/, '')
  if (item !== kind && isObjectKind(item)) {
    const hint = `write a List, or each ${item} as a document of its own`
    return { message: `not supported: ${kind}`, hint, isOtherKind: false }
  }
  if (workloads.includes(kind)) {
    return {
      message: `not supported: podd runs Pods, and no ${kind}`,
      hint: 'write its pod template as a Pod',
      isOtherKind: true,
    }
  }
  if (isKeptKind(kind)) {
    return { message: `not supported: podd keeps a ${kind} only for clients of its API`, isOtherKind: true }
  }
  if (others.includes(kind)) {
    return { message: `not supported: ${kind} needs a control plane`, isOtherKind: true }
  }
  const taken = ['Pod', 'PodList', 'List', ...objectKindNames]
  const nearest = nearestName(kind, taken)
  // A kind that the API has elsewhere is not a typo of one that podd takes.
  if (nearest !== undefined) {
    const message = `not supported: ${JSON.stringify(kind)}; did you mean ${JSON.stringify(nearest)}?`
    return { message, isOtherKind: false }
  }
  return {
    message: `not supported: ${JSON.stringify(kind)}; podd takes ${taken.join(', ')}`,
    isOtherKind: false,
  }
}
