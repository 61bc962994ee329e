/* What becomes of a document of a kind that podd doesn't run: it is taken without effect, or refused with what to do. */
import { nearestName } from '../../base/text.ts'
import { idleGroupOf, isKeptKind, isObjectKind, objectKindNames } from '../objects/object-kinds.ts'

export type KindVerdict =
  /** It has no effect on one host, and nothing is open or broken without it. */
  { readonly kind: 'idle' } | ({ readonly kind: 'refused' } & KindRefusal)

interface KindRefusal {
  readonly message: string
  readonly hint?: string
  /** Whether the document is certainly of another kind, rather than a pod with a typo in its kind. */
  readonly isOtherKind: boolean
}

const workloads: readonly string[] = ['ReplicaSet', 'ReplicationController']

const traffic = 'run a reverse proxy as a pod of its own, and open its port with hostPort'
const limits = 'write requests and limits into the pods themselves'
const admission = "the pods of each source are judged by podSecurity in podd's configuration"
const volumes = 'remove it: a PersistentVolumeClaim alone is enough, and gets a directory on this host'

/** Kubernetes' other kinds, each with what to do instead where that can be said. */
const otherKinds: ReadonlyMap<string, string | undefined> = new Map([
  ...namesWith(traffic, 'Gateway HTTPRoute Ingress'),
  ...namesWith(limits, 'LimitRange ResourceQuota'),
  ...namesWith(
    admission,
    'MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ' +
      'ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration',
  ),
  ...namesWith(volumes, 'PersistentVolume VolumeAttachment VolumeAttributesClass'),
  ...namesWith('remove it, and write how many pods shall run', 'HorizontalPodAutoscaler'),
  ...namesWith('remove it: podd makes the endpoints of a Service from its pods', 'EndpointSlice Endpoints'),
  ...namesWith(
    undefined,
    'APIService Binding CSIDriver CSINode CSIStorageCapacity CertificateSigningRequest ClusterTrustBundle ' +
      'ControllerRevision DeviceClass Event FlowSchema IPAddress LeaseCandidate Node PodGroup ' +
      'PriorityLevelConfiguration ResourceClaim ResourceClaimTemplate ResourceSlice Service ServiceCIDR Workload',
  ),
])

function namesWith(
  hint: string | undefined,
  names: string,
): readonly (readonly [string, string | undefined])[] {
  return names.split(' ').map((name) => [name, hint] as const)
}

/** Why a kind can't be one of `ignoreKinds`: podd runs it, or refuses it for a reason. Undefined where it can. */
export function whyNotIgnored(kind: string): string | undefined {
  if (!/^[A-Z][A-Za-z0-9]*$/u.test(kind)) return 'must be a kind as documents have it, such as ServiceMonitor'
  const isOwn = kind === 'Pod' || kind === 'NetworkPolicy' || isObjectKind(kind) || isKeptKind(kind)
  return isOwn || workloads.includes(kind) || otherKinds.has(kind)
    ? "is a kind of Kubernetes' own: only kinds of custom objects can be ignored"
    : undefined
}

/**
 * Judges a document whose kind podd doesn't run, or a List inside another one.
 * @param apiVersion as written
 * @param ignored kinds of custom objects that the config says to take without effect
 */
export function judgeKind(kind: string, apiVersion: unknown, ignored: readonly string[] = []): KindVerdict {
  const group = groupOf(apiVersion)
  if (ignored.includes(kind) || (group !== undefined && idleGroupOf(kind) === group)) return { kind: 'idle' }
  return { kind: 'refused', ...refuseKind(kind, group) }
}

/** Empty for the core group; undefined where it can't be read. */
function groupOf(apiVersion: unknown): string | undefined {
  if (typeof apiVersion !== 'string') return undefined
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? '' : apiVersion.slice(0, slash)
}

function refuseKind(kind: string, group: string | undefined): KindRefusal {
  const item = kind.endsWith('List') ? kind.slice(0, -'List'.length) : undefined
  if (item === '' || item === 'Pod' || isObjectKind(item)) {
    const hint = 'put its items into the outer one'
    return { message: `not supported: a ${kind} inside another list`, hint, isOtherKind: false }
  }
  if (workloads.includes(kind)) {
    return {
      message: `not supported: podd makes no pods from a ${kind}`,
      hint: 'write a Deployment',
      isOtherKind: true,
    }
  }
  if (kind === 'Kustomization') {
    return {
      message: 'not supported: a kustomization is built in a directory alone',
      hint: 'name it kustomization.yaml in a manifest directory, or run `podd apply -k DIRECTORY`: both need kubectl or kustomize',
      isOtherKind: true,
    }
  }
  if (kind === 'NetworkPolicy') {
    return {
      message:
        'not supported: podd enforces no NetworkPolicy, and takes none without effect, as the pods that it protects would be open',
      hint: 'bound the network by the firewall of the host, or remove the document where its pods may be open to all pods of this host',
      isOtherKind: true,
    }
  }
  const wanted = idleGroupOf(kind)
  if (isKeptKind(kind) && wanted === undefined) {
    return { message: `not supported: podd keeps a ${kind} only for clients of its API`, isOtherKind: true }
  }
  if (isCustom(group)) {
    return {
      message: `not supported: a ${JSON.stringify(kind)} of ${group} is a custom object, for which there is nobody on this host`,
      hint: `where its pods do without it, have it taken without effect: ignoreKinds: [${kind}] in podd's configuration`,
      isOtherKind: true,
    }
  }
  if (wanted !== undefined) {
    const message = `not supported: a ${kind} of another group than ${wanted === '' ? "Kubernetes' core" : wanted}`
    return { message, hint: 'write its apiVersion as Kubernetes has it', isOtherKind: true }
  }
  if (otherKinds.has(kind)) {
    const hint = otherKinds.get(kind)
    const message = `not supported: ${kind} needs a control plane`
    return { message, ...(hint !== undefined && { hint }), isOtherKind: true }
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

/** Kubernetes' own groups have no dot, or end as the others here. */
function isCustom(group: string | undefined): group is string {
  return group !== undefined && group.includes('.') && !group.endsWith('.k8s.io')
}
