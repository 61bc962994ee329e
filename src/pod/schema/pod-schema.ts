import {
  any,
  bool,
  dateTime,
  defaulted,
  ignored,
  int32,
  int64,
  list,
  map,
  object,
  oneOf,
  oneOfOrNone,
  optional,
  refused,
  required,
  requiredOrZero,
  string,
} from './types.ts'
import type { Fields, Infer } from './types.ts'
import {
  appArmorNote,
  appArmorProfileSchema,
  containerSchema,
  ephemeralContainerSchema,
  resourceListSchema,
  resourceRequirementsSchema,
  seccompProfileSchema,
  seLinuxNote,
  seLinuxOptionsSchema,
  podResourceClaimSchema,
  readinessGateSchema,
  schedulingGateSchema,
  windowsNote,
  windowsOptionsSchema,
} from './container-schema.ts'
import {
  affinitySchema,
  schedulingGroupSchema,
  tolerationSchema,
  topologySpreadConstraintSchema,
} from './scheduling-schema.ts'
import { volumeSchema } from './volume-schema.ts'

const scheduler = 'there is one host and no scheduler'
const fromDump = 'written by a control plane; a dump of a live cluster carries it'

export const podSecurityContextSchema = object('PodSecurityContext', {
  seLinuxOptions: optional(seLinuxOptionsSchema, seLinuxNote),
  windowsOptions: ignored(windowsOptionsSchema, windowsNote),
  runAsUser: optional(int64),
  runAsGroup: optional(int64),
  runAsNonRoot: optional(bool),
  supplementalGroups: defaulted(list(int64), []),
  supplementalGroupsPolicy: optional(
    oneOfOrNone('Merge', 'Strict'),
    '`Strict` needs containerd 2.0: elsewhere the pod waits and says so',
  ),
  fsGroup: optional(int64),
  sysctls: defaulted(
    list(object('Sysctl', { name: required(string), value: requiredOrZero(string) })),
    [],
    'the safe ones, and those that `allowedUnsafeSysctls` names',
  ),
  fsGroupChangePolicy: optional(oneOfOrNone('Always', 'OnRootMismatch')),
  seccompProfile: optional(seccompProfileSchema),
  appArmorProfile: optional(appArmorProfileSchema, appArmorNote),
  seLinuxChangePolicy: ignored(
    oneOfOrNone('Recursive', 'MountOption'),
    'volumes are labelled by the runtime',
  ),
})

const hostAliasSchema = object('HostAlias', {
  ip: required(string),
  hostnames: defaulted(list(string), []),
})

const oneLineNote = 'no line breaks and other control characters'

const podDNSConfigSchema = object('PodDNSConfig', {
  nameservers: defaulted(list(string), []),
  searches: defaulted(list(string), []),
  options: defaulted(
    list(
      object('PodDNSConfigOption', {
        name: defaulted(string, '', oneLineNote),
        value: optional(string, oneLineNote),
      }),
    ),
    [],
  ),
})

export const podSpecSchema = object('PodSpec', {
  volumes: defaulted(list(volumeSchema), []),
  initContainers: defaulted(list(containerSchema), []),
  containers: required(list(containerSchema)),
  ephemeralContainers: defaulted(
    list(ephemeralContainerSchema),
    [],
    'one that is added starts in the running pod; one that is changed or taken away makes a new pod, where Kubernetes refuses it',
  ),
  restartPolicy: defaulted(oneOf('Always', 'OnFailure', 'Never'), 'Always'),
  terminationGracePeriodSeconds: defaulted(int64, 30, 'a negative one is read as 1, with a warning'),
  activeDeadlineSeconds: optional(int64),
  dnsPolicy: defaulted(
    oneOf('ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'),
    'ClusterFirst',
    'ClusterFirst and Default give the resolv.conf of the host: there is no cluster DNS',
  ),
  nodeSelector: ignored(map(string), scheduler),
  serviceAccountName: ignored(string, 'there is no API server to issue tokens'),
  serviceAccount: ignored(string, 'there is no API server to issue tokens'),
  automountServiceAccountToken: ignored(bool, 'there is no API server to issue tokens'),
  nodeName: ignored(string, scheduler),
  hostNetwork: defaulted(bool, false),
  hostPID: defaulted(bool, false),
  hostIPC: defaulted(bool, false),
  shareProcessNamespace: defaulted(bool, false),
  securityContext: optional(podSecurityContextSchema),
  imagePullSecrets: defaulted(list(object('LocalObjectReference', { name: defaulted(string, '') })), []),
  hostname: optional(string),
  subdomain: optional(string),
  affinity: ignored(affinitySchema, scheduler),
  schedulerName: ignored(string, scheduler),
  tolerations: optional(
    list(tolerationSchema),
    'no effect, as there is no scheduler; more of them are a change of the pod',
  ),
  hostAliases: defaulted(list(hostAliasSchema), []),
  priorityClassName: optional(
    string,
    'a PriorityClass document, `system-node-critical` or `system-cluster-critical`',
  ),
  priority: optional(int32),
  dnsConfig: optional(podDNSConfigSchema),
  readinessGates: refused(
    list(readinessGateSchema),
    'the condition of a pod that was not written over the API cannot be set',
  ),
  runtimeClassName: optional(string, 'a RuntimeClass document, or one of `runtimeClasses` in the config'),
  enableServiceLinks: defaulted(
    bool,
    true,
    'a Service has its name there in place of an address of its own; headless ones have none, as in Kubernetes',
  ),
  preemptionPolicy: optional(
    string,
    'has to be that of its PriorityClass; it has no effect, for no pod makes room for another',
  ),
  overhead: optional(
    resourceListSchema,
    'has to be that of the RuntimeClass, which is taken where it is left out',
  ),
  topologySpreadConstraints: ignored(list(topologySpreadConstraintSchema), scheduler),
  setHostnameAsFQDN: defaulted(bool, false),
  os: optional(object('PodOS', { name: requiredOrZero(string) })),
  hostUsers: optional(
    bool,
    '`false` needs containerd 2.0 with runc 1.2 or crun 1.9: elsewhere the pod waits and says so; volumes in memory need Linux 6.3',
  ),
  schedulingGates: refused(list(schedulingGateSchema), 'nothing on this host would ever lift the gate'),
  resourceClaims: refused(list(podResourceClaimSchema), 'dynamic resource allocation needs a control plane'),
  resources: optional(resourceRequirementsSchema),
  hostnameOverride: optional(string),
  schedulingGroup: ignored(schedulingGroupSchema, scheduler),
})

export const ownerReferenceSchema = object('OwnerReference', {
  apiVersion: defaulted(string, ''),
  kind: defaulted(string, ''),
  name: defaulted(string, ''),
  uid: defaulted(string, ''),
  controller: optional(bool),
  blockOwnerDeletion: optional(bool),
})

export const objectMetaSchema = object('ObjectMeta', {
  name: required(string),
  namespace: defaulted(string, 'default'),
  labels: defaulted(map(string), {}),
  annotations: defaulted(
    map(string),
    {},
    'those that ask for bandwidth (`kubernetes.io/ingress-bandwidth`), devices (`cdi.k8s.io/…`) or an AppArmor profile that no field names are refused',
  ),
  generateName: refused(string, 'give the pod a name: its identity is its namespace and name'),
  uid: ignored(string, fromDump),
  resourceVersion: ignored(string, fromDump),
  generation: ignored(int64, fromDump),
  creationTimestamp: ignored(dateTime, fromDump),
  deletionTimestamp: ignored(dateTime, fromDump),
  deletionGracePeriodSeconds: ignored(int64, fromDump),
  ownerReferences: ignored(list(ownerReferenceSchema), fromDump),
  finalizers: ignored(list(string), fromDump),
  managedFields: ignored(any, fromDump),
  selfLink: ignored(string, fromDump),
})

/** The schema of a kind: its type, its metadata, and the fields that are its own. */
export function kindSchema<const Version extends string, const Kind extends string, const Own extends Fields>(
  apiVersion: Version,
  name: Kind,
  own: Own,
) {
  return object(name, {
    apiVersion: required(oneOf(apiVersion)),
    kind: required(oneOf(name)),
    metadata: required(objectMetaSchema),
    ...own,
  })
}

export const podSchema = kindSchema('v1', 'Pod', {
  spec: required(podSpecSchema),
  status: ignored(map(any), fromDump),
})

/** A decoded Pod, with the API's defaults. */
export type Pod = Infer<typeof podSchema>
export type PodSpec = Infer<typeof podSpecSchema>
export type PodSecurityContext = Infer<typeof podSecurityContextSchema>
export type PodDnsConfig = Infer<typeof podDNSConfigSchema>
export type HostAlias = Infer<typeof hostAliasSchema>
export type ObjectMeta = Infer<typeof objectMetaSchema>

/** PodList and List, without their items: each of those is decoded on its own. */
export const podListSchema = object('PodList', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('PodList', 'List')),
  metadata: ignored(map(any), fromDump),
})
