/* The kinds of objects beside pods: schema, defaults and rules of each, in one table. */
import { isJsonObject, listOrEmpty, parseJson } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { resourceListSchema } from '../schema/container-schema.ts'
import { Issues } from '../schema/issues.ts'
import type { FieldProblem, NameRule } from '../schema/issues.ts'
import { systemPriorities } from '../schema/pod-resources.ts'
import { kindSchema, objectMetaSchema, podSchema } from '../schema/pod-schema.ts'
import { tolerationSchema } from '../schema/scheduling-schema.ts'
import {
  any,
  bool,
  dateTime,
  defaulted,
  ignored,
  int32,
  intOrString,
  list,
  map,
  object,
  oneOf,
  oneOfOrNone,
  optional,
  readAs,
  refused,
  required,
  requiredOrZero,
  string,
} from '../schema/types.ts'
import type { Fields, Infer, ObjectType } from '../schema/types.ts'
import { claimSpecSchema } from '../schema/volume-schema.ts'
import {
  configMapKey,
  dns1035Label,
  dnsLabel,
  ipAddress,
  pathSegment,
  portName,
  qualifiedName,
} from '../validation/name-rules.ts'
import { validateClusterMetadata, validateLabels, validateMetadata } from '../validation/validate-metadata.ts'
import { validateOverhead } from '../validation/validate-resources.ts'
import { validateTolerations } from '../validation/validate-scheduling.ts'
import { validateClaimSpec } from '../validation/validate-volumes.ts'
import {
  cronJobSchema,
  daemonSetSchema,
  deploymentSchema,
  jobSchema,
  statefulSetSchema,
  validateCronJob,
  validateDaemonSet,
  validateDeployment,
  validateJob,
  validateStatefulSet,
} from './workload-kinds.ts'

/** The entry of a kind of object that pods refer to. */
interface ObjectKindEntry<Schema extends ObjectType<Fields>> {
  /** Its fields, with their defaults. */
  readonly schema: Schema
  /** Cluster: it has no namespace, and applies to the pods of all namespaces. */
  readonly scope: 'Namespaced' | 'Cluster'
  /** Whether each source has its own objects; otherwise objects of one name compete across sources. */
  readonly isPerSource: boolean
  /** Whether its values are kept out of messages, and written to disk only where `persistSecrets` allows it. */
  readonly isSecret?: true
  /**
   * Kubernetes' validation beyond the schema; metadata is validated already. Fields without effect are only in
   * `manifest`.
   */
  readonly validate: (object: Infer<Schema>, issues: Issues, manifest: JsonObject) => void
}

/** Gives the entry of a kind its types. */
function objectKind<Schema extends ObjectType<Fields>>(
  entry: ObjectKindEntry<Schema>,
): ObjectKindEntry<Schema> {
  return entry
}

/** The most that the keys and values of a ConfigMap or Secret may take (MaxSecretSize). */
const maxDataBytes = 1024 * 1024

type Values = Readonly<Record<string, string>>

/** The data of a ConfigMap or Secret, by notation. */
export interface ConfigData {
  readonly base64: Values
  readonly text: Values
}

/** Key to content; text takes precedence over base64. */
export function dataOf({ base64, text }: ConfigData): ReadonlyMap<string, Buffer> {
  return new Map([
    ...Object.entries(base64).map(([key, value]) => [key, Buffer.from(value, 'base64')] as const),
    ...Object.entries(text).map(([key, value]) => [key, Buffer.from(value)] as const),
  ])
}

/** The API server names no field. */
function limitSize(data: ConfigData, issues: Issues): void {
  const bytes = [...dataOf(data).values()].reduce((sum, value) => sum + value.byteLength, 0)
  if (bytes > maxDataBytes) issues.of('[]').tooLong(maxDataBytes, issues.of('data'))
}

function validateBase64(values: Values, issues: Issues): void {
  for (const [key, value] of Object.entries(values)) {
    issues.of(key).name(key, configMapKey)
    if (!isBase64(value)) issues.of(key).invalid('…', 'must be base64')
  }
}

/** As Go's decoder reads it: padding is required; line breaks are allowed. */
function isBase64(value: string): boolean {
  const packed = value.replaceAll(/[\r\n]/g, '')
  return packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed)
}

const configMapSchema = kindSchema('v1', 'ConfigMap', {
  immutable: defaulted(bool, false),
  data: defaulted(map(string), {}),
  /** Values in base64 (`[]byte` in the API). */
  binaryData: defaulted(map(string), {}),
})

export type ConfigMap = Infer<typeof configMapSchema>

/** Source: ValidateConfigMap in pkg/apis/core/validation, 1.36. */
function validateConfigMap(config: ConfigMap, issues: Issues): void {
  for (const key of Object.keys(config.data)) {
    issues.of('data', key).name(key, configMapKey)
    if (Object.hasOwn(config.binaryData, key)) {
      issues.of('data', key).invalid(key, 'duplicate of key present in binaryData')
    }
  }
  validateBase64(config.binaryData, issues.of('binaryData'))
  limitSize({ base64: config.binaryData, text: config.data }, issues)
}

const secretSchema = kindSchema('v1', 'Secret', {
  immutable: defaulted(bool, false),
  /** Values in base64 (`[]byte` in the API). */
  data: defaulted(map(string), {}),
  stringData: defaulted(map(string), {}),
  type: defaulted(string, 'Opaque'),
})

export type Secret = Infer<typeof secretSchema>

/** The keys that each type of Secret requires. */
const secretKeys = new Map<string, NeededKeys>([
  ['kubernetes.io/dockercfg', { keys: ['.dockercfg'] }],
  ['kubernetes.io/dockerconfigjson', { keys: ['.dockerconfigjson'] }],
  ['kubernetes.io/basic-auth', { keys: ['username', 'password'], any: true }],
  ['kubernetes.io/ssh-auth', { keys: ['ssh-privatekey'], notEmpty: true }],
  ['kubernetes.io/tls', { keys: ['tls.crt', 'tls.key'] }],
])

interface NeededKeys {
  readonly keys: readonly string[]
  /** One of them is enough. */
  readonly any?: true
  readonly notEmpty?: true
}

/** Source: ValidateSecret in pkg/apis/core/validation, 1.36. */
function validateSecret(secret: Secret, issues: Issues): void {
  const given = { base64: secret.data, text: secret.stringData }
  validateBase64(secret.data, issues.of('data'))
  for (const key of Object.keys(secret.stringData)) {
    issues.of('data', key).name(key, configMapKey, issues.of('stringData', key))
  }
  limitSize(given, issues)
  if (secret.type === 'kubernetes.io/service-account-token') {
    issues.of('type').refused('there is no API server to issue tokens')
  }
  const needed = secretKeys.get(secret.type)
  if (needed === undefined) return
  const has = dataOf(given)
  const missing = needed.keys.filter(
    (key) => !has.has(key) || (needed.notEmpty && has.get(key)?.length === 0),
  )
  const isShort = needed.any === true ? missing.length === needed.keys.length : missing.length > 0
  if (isShort) for (const key of missing) issues.of('data', key).required()
  for (const key of ['.dockercfg', '.dockerconfigjson']) {
    const value = needed.keys.includes(key) ? has.get(key) : undefined
    // As Go reads a map.
    const json = parseJson(value?.toString('utf8'))
    if (value !== undefined && json !== null && !isJsonObject(json)) {
      issues.of('data', key).invalid('<secret contents redacted>', 'must be a JSON object')
    }
  }
}

const persistentVolumeClaimSchema = kindSchema('v1', 'PersistentVolumeClaim', {
  spec: required(claimSpecSchema),
  status: ignored(map(any), 'written by a control plane'),
})

export type PersistentVolumeClaim = Infer<typeof persistentVolumeClaimSchema>

const servicePortSchema = object('ServicePort', {
  name: defaulted(string, ''),
  port: required(int32),
  targetPort: optional(
    intOrString,
    'pods are reached at this port: podd has no proxy that maps `port` to it',
  ),
  protocol: defaulted(oneOf('TCP', 'UDP', 'SCTP'), 'TCP'),
  appProtocol: optional(string),
  nodePort: refused(
    int32,
    'podd opens no port of the host for a Service: write `hostPort` into the pod',
    [0],
  ),
})

const noProxy = 'podd has no proxy: a name leads to the pods themselves'
const ownFamilies = 'a name has the addresses that its pods have'

const serviceSpecSchema = object('ServiceSpec', {
  type: defaulted(
    oneOf('ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'),
    'ClusterIP',
    '`ClusterIP` alone; others are refused',
  ),
  clusterIP: optional(
    string,
    '`None`; podd gives no Service an address of its own, so others have no effect',
  ),
  clusterIPs: ignored(list(string), 'podd gives no Service an address of its own'),
  ports: defaulted(list(servicePortSchema), []),
  selector: defaulted(map(string), {}),
  publishNotReadyAddresses: defaulted(bool, false),
  externalIPs: refused(list(string), 'podd takes no addresses for a Service: write `hostPort` into the pod'),
  externalName: refused(
    string,
    'podd serves no aliases: write the name itself, or `hostAliases` into the pods',
    [''],
  ),
  loadBalancerIP: refused(string, 'podd has no load balancer: write `hostPort` into the pod', ['']),
  loadBalancerSourceRanges: refused(
    list(string),
    "podd has no load balancer: write `hostPort` into the pod, and bound who reaches it by the host's firewall",
  ),
  loadBalancerClass: refused(string, 'podd has no load balancer: write `hostPort` into the pod', ['']),
  allocateLoadBalancerNodePorts: ignored(bool, 'podd has no load balancer'),
  externalTrafficPolicy: ignored(string, noProxy),
  internalTrafficPolicy: ignored(string, noProxy),
  trafficDistribution: ignored(string, noProxy),
  healthCheckNodePort: refused(int32, 'podd has no load balancer: remove it', [0]),
  sessionAffinity: ignored(oneOf('None', 'ClientIP'), noProxy),
  sessionAffinityConfig: ignored(any, noProxy),
  ipFamilies: ignored(list(string), ownFamilies),
  ipFamilyPolicy: ignored(string, ownFamilies),
})

const serviceSchema = kindSchema('v1', 'Service', {
  spec: required(serviceSpecSchema),
  status: ignored(map(any), 'written by a control plane'),
})

export type Service = Infer<typeof serviceSchema>

/** What to do where a Service is of another type than ClusterIP. */
const otherTypes: Readonly<Record<string, string>> = {
  NodePort:
    'podd opens no port of the host for a Service: write hostPort into the pod, and type ClusterIP here',
  LoadBalancer: 'podd has no load balancer: write hostPort into the pod, and type ClusterIP here',
  ExternalName: 'podd serves no aliases: write the name itself, or hostAliases into the pods',
}

/** Source: validateService in pkg/apis/core/validation, 1.36. */
function validateService({ metadata, spec }: Service, issues: Issues): void {
  issues.of('metadata', 'name').name(metadata.name, dns1035Label)
  const at = issues.of('spec')
  const refusal = otherTypes[spec.type]
  if (refusal !== undefined) return at.of('type').refused(refusal)
  const { clusterIP = '', ports, selector } = spec
  const isHeadless = clusterIP === 'None'
  if (!isHeadless && clusterIP !== '') {
    at.of('clusterIP').name(clusterIP, ipAddress)
    at.of('clusterIP').warn(
      'has no effect: podd gives no Service an address of its own, and the name leads to its pods',
    )
  }
  if (ports.length === 0 && !isHeadless) at.of('ports').required()
  validateLabels(selector, at.of('selector'))
  if (Object.keys(selector).length === 0)
    at.of('selector').refused(
      'podd knows what is behind a Service by its selector alone: write one, or `hostAliases` into the pods that look for it',
    )
  at.of('ports').unique(
    ports,
    ({ name }) => name,
    (index) => at.of('ports', index, 'name'),
  )
  at.of('ports').unique(
    ports,
    ({ protocol, port }) => `${protocol} ${port}`,
    (index) => at.of('ports', index),
  )
  for (const [index, port] of ports.entries())
    validateServicePort(port, ports.length > 1, at.of('ports', index))
}

function validateServicePort(
  { name, port, targetPort = 0, appProtocol }: Infer<typeof servicePortSchema>,
  needsName: boolean,
  issues: Issues,
): void {
  if (name === '' && needsName) issues.of('name').required()
  else issues.of('name').optionalName(name, dnsLabel)
  issues.of('port').range(port, 1, 65_535)
  if (appProtocol !== undefined) issues.of('appProtocol').name(appProtocol, qualifiedName)
  if (targetPort === 0 || targetPort === '') return
  if (typeof targetPort === 'string') issues.of('targetPort').name(targetPort, portName)
  else issues.of('targetPort').range(targetPort, 1, 65_535)
  if (typeof targetPort === 'string' || targetPort === port) return
  issues
    .of('targetPort')
    .warn(
      `podd has no proxy: the name leads to the pods themselves, which answer at ${targetPort}, and nothing at ${port}`,
    )
}

/** The port of the pods that a port of a Service stands for; a text is the name of a container's. */
export function targetPortOf({ port, targetPort = 0 }: Service['spec']['ports'][number]): number | string {
  return targetPort === 0 || targetPort === '' ? port : targetPort
}

/** ObjectMeta of kinds that belong to no namespace. */
export const clusterMetaSchema = object('ObjectMeta', {
  ...objectMetaSchema.fields,
  namespace: ignored(string, 'objects of this kind belong to no namespace'),
})

const priorityClassSchema = object('PriorityClass', {
  apiVersion: required(oneOf('scheduling.k8s.io/v1')),
  kind: required(oneOf('PriorityClass')),
  metadata: required(clusterMetaSchema),
  value: requiredOrZero(int32),
  globalDefault: defaulted(bool, false),
  description: defaulted(string, ''),
  preemptionPolicy: defaulted(
    oneOfOrNone('PreemptLowerPriority', 'Never'),
    'PreemptLowerPriority',
    'its pods may name no other one; it has no effect, for no pod makes room for another',
  ),
})

/** User-defined classes stop here; above are the system's. */
const highestUserPriority = 1_000_000_000

/** Source: ValidatePriorityClass in pkg/apis/scheduling/validation, 1.36. */
function validatePriorityClass(
  { metadata: { name }, value, globalDefault }: Infer<typeof priorityClassSchema>,
  issues: Issues,
): void {
  if (name.startsWith('system-')) {
    // Dumps of a cluster have its own ones; here they are known without a document.
    const problem = systemClassProblem(name, value, globalDefault)
    if (problem === undefined) return
    const detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
    issues.of('metadata', 'name').forbidden(`${detail}${problem}`)
  } else if (value > highestUserPriority) {
    issues.of('value').forbidden(`maximum allowed value of a user defined priority is ${highestUserPriority}`)
  }
}

/** Source: IsKnownSystemPriorityClass in pkg/apis/scheduling/v1, 1.36. */
function systemClassProblem(name: string, value: number, globalDefault: boolean): string | undefined {
  const known = systemPriorities.get(name)
  if (known === undefined) return `${name} is not a known system priority class`
  if (known.value !== value) return `value of ${name} PriorityClass must be ${known.value}`
  return globalDefault ? `globalDefault of ${name} PriorityClass must be false` : undefined
}

const runtimeSchedulingSchema = object('Scheduling', {
  nodeSelector: defaulted(map(string), {}),
  tolerations: defaulted(list(tolerationSchema), []),
})

const runtimeClassSchema = object('RuntimeClass', {
  apiVersion: required(oneOf('node.k8s.io/v1')),
  kind: required(oneOf('RuntimeClass')),
  metadata: required(clusterMetaSchema),
  handler: requiredOrZero(string),
  overhead: optional(object('Overhead', { podFixed: defaulted(resourceListSchema, {}) })),
  scheduling: optional(
    runtimeSchedulingSchema,
    'pods that are written over the API get it; there is no scheduler that goes by it',
  ),
})

export type RuntimeClass = Infer<typeof runtimeClassSchema>

/** Source: ValidateRuntimeClass in pkg/apis/node/validation, 1.36. */
function validateRuntimeClass(
  { handler, overhead }: RuntimeClass,
  issues: Issues,
  manifest: JsonObject,
): void {
  issues.of('handler').requiredName(handler, dnsLabel)
  validateOverhead(overhead?.podFixed, issues.of('overhead'), issues.of('overhead', 'podFixed'))
  validateRuntimeScheduling(manifest['scheduling'], issues.of('scheduling'))
}

/** Source: pkg/apis/node/validation (validateScheduling, validateTolerations), 1.36. */
function validateRuntimeScheduling(given: Json | undefined, issues: Issues): void {
  const scheduling = readAs(runtimeSchedulingSchema, given)
  if (scheduling === undefined) return
  validateLabels(scheduling.nodeSelector, issues.of('nodeSelector'))
  const { tolerations } = scheduling
  validateTolerations(tolerations, issues.of('tolerations'))
  const seen = new Set<string>()
  for (const [index, toleration] of tolerations.entries()) {
    const { key, operator, value, effect } = toleration
    const own = JSON.stringify([key, operator, value, effect])
    if (seen.has(own)) issues.of('tolerations', index).duplicate(toleration)
    seen.add(own)
  }
}

/** What all workloads have in common: their pods' names compete across sources, and so do theirs. */
const workload = { scope: 'Namespaced', isPerSource: false } as const

/**
 * The kinds of objects that pods refer to or are made from: each is a document of its own beside the pods. Decoding, the sources, the
 * last good copies and what is shown go by this table, so that a kind is added by its entry and the file of its name.
 */
export const objectKinds = {
  ConfigMap: objectKind({
    schema: configMapSchema,
    scope: 'Namespaced',
    isPerSource: true,
    validate: validateConfigMap,
  }),
  Secret: objectKind({
    schema: secretSchema,
    scope: 'Namespaced',
    isPerSource: true,
    isSecret: true,
    validate: validateSecret,
  }),
  PersistentVolumeClaim: objectKind({
    schema: persistentVolumeClaimSchema,
    scope: 'Namespaced',
    isPerSource: false,
    validate: ({ spec }, issues) => validateClaimSpec(spec, issues.of('spec')),
  }),
  Service: objectKind({
    schema: serviceSchema,
    scope: 'Namespaced',
    isPerSource: true,
    validate: validateService,
  }),
  RuntimeClass: objectKind({
    schema: runtimeClassSchema,
    scope: 'Cluster',
    isPerSource: false,
    validate: validateRuntimeClass,
  }),
  PriorityClass: objectKind({
    schema: priorityClassSchema,
    scope: 'Cluster',
    isPerSource: false,
    validate: validatePriorityClass,
  }),
  Deployment: objectKind({
    ...workload,
    schema: deploymentSchema,
    validate: validateDeployment,
  }),
  StatefulSet: objectKind({
    ...workload,
    schema: statefulSetSchema,
    validate: validateStatefulSet,
  }),
  DaemonSet: objectKind({
    ...workload,
    schema: daemonSetSchema,
    validate: validateDaemonSet,
  }),
  Job: objectKind({
    ...workload,
    schema: jobSchema,
    validate: validateJob,
  }),
  CronJob: objectKind({
    ...workload,
    schema: cronJobSchema,
    validate: validateCronJob,
  }),
} as const

export type ObjectKind = keyof typeof objectKinds

type ObjectTypes = { readonly [Kind in ObjectKind]: Infer<(typeof objectKinds)[Kind]['schema']> }
/** An object that pods refer to, decoded, with the API's defaults. */
export type LocalObject = ObjectTypes[ObjectKind]
export type ObjectOf<Kind extends ObjectKind> = Extract<LocalObject, { readonly kind: Kind }>

/** In the order of the table. */
export const objectKindNames: readonly ObjectKind[] = Object.keys(objectKinds).filter((kind) =>
  isObjectKind(kind),
)

export function isObjectKind(kind: unknown): kind is ObjectKind {
  return typeof kind === 'string' && Object.hasOwn(objectKinds, kind)
}

/**
 * Validates an object that pods refer to, as Kubernetes does. Problems never contain a Secret's values. Fields without
 * effect are only in `manifest`.
 */
export function validateObject(object: LocalObject, manifest: JsonObject = {}): readonly FieldProblem[] {
  const issues = new Issues()
  validateClusterMetadata(object.kind, manifest['metadata'], issues.of('metadata'))
  validateMetadata({ namespace: 'default', ...object.metadata }, issues.of('metadata'))
  validateAs(object.kind, object, issues, manifest)
  return issues.problems
}

type Entries = {
  readonly [Kind in ObjectKind]: Pick<ObjectKindEntry<(typeof objectKinds)[Kind]['schema']>, 'validate'>
}

function validateAs<Kind extends ObjectKind>(
  kind: Kind,
  object: ObjectTypes[Kind],
  issues: Issues,
  manifest: JsonObject,
): void {
  const entries: Entries = objectKinds
  entries[kind].validate(object, issues, manifest)
}

const leaseSpecSchema = object('LeaseSpec', {
  holderIdentity: optional(string),
  leaseDurationSeconds: optional(int32),
  acquireTime: optional(dateTime),
  renewTime: optional(dateTime),
  leaseTransitions: optional(int32),
  strategy: optional(oneOf('OldestEmulationVersion')),
  preferredHolder: optional(string),
})

const leaseSchema = kindSchema('coordination.k8s.io/v1', 'Lease', {
  spec: optional(leaseSpecSchema),
})

/** Source: ValidateLeaseSpec in pkg/apis/coordination/validation, 1.36. */
function validateLease({ spec }: JsonObject, issues: Issues): void {
  const lease = readAs(leaseSpecSchema, spec) ?? {}
  const { leaseDurationSeconds = 1, leaseTransitions = 0, strategy, preferredHolder = '' } = lease
  if (leaseDurationSeconds <= 0)
    issues.of('spec', 'leaseDurationSeconds').invalid(leaseDurationSeconds, 'must be greater than 0')
  if (leaseTransitions < 0)
    issues.of('spec', 'leaseTransitions').invalid(leaseTransitions, 'must be greater than or equal to 0')
  if (preferredHolder !== '' && strategy === undefined)
    issues.of('spec', 'preferredHolder').forbidden('may only be specified if `strategy` is defined')
}

const podTemplateSchema = kindSchema('v1', 'PodTemplate', {
  template: optional(
    object('PodTemplateSpec', { metadata: optional(objectMetaSchema), spec: podSchema.fields.spec }),
  ),
})

/** Objects by which only a control plane goes: not checked inside, as nothing comes of them. */
const idleReason = 'nothing on one host goes by it'

const rbac = 'rbac.authorization.k8s.io'
const anyList = ignored(list(any), idleReason)
const anyMap = ignored(map(any), idleReason)
const bindingFields: Fields = { roleRef: anyMap, subjects: anyList }

function rbacKind(name: string, fields: Fields): KeptKindEntry {
  return {
    schema: kindSchema(`${rbac}/v1`, name, fields),
    idleGroup: rbac,
    nameRule: pathSegment,
  }
}

/** The entry of a kind that podd keeps for clients. */
interface KeptKindEntry {
  readonly schema: ObjectType<Fields>
  /** Its group, where files may have it too: it has no effect on one host, and nothing is open or broken without it. */
  readonly idleGroup?: string
  /** By default that of most objects. */
  readonly nameRule?: NameRule
  /** Kubernetes' validation beyond the schema; metadata is validated already. */
  readonly validate?: (manifest: JsonObject, issues: Issues) => void
}

/**
 * The kinds that the API keeps for its clients as they write them: no pod refers to them, and no source but the API has
 * them. A PodTemplate's template is validated as the pod that it describes (`keptProblems`).
 */
export const keptKinds = {
  Lease: { schema: leaseSchema, validate: validateLease },
  PodTemplate: { schema: podTemplateSchema },
  ServiceAccount: {
    schema: kindSchema('v1', 'ServiceAccount', {
      secrets: anyList,
      imagePullSecrets: anyList,
      automountServiceAccountToken: ignored(bool, idleReason),
    }),
    idleGroup: '',
    validate: validateServiceAccount,
  },
  Role: rbacKind('Role', { rules: anyList }),
  RoleBinding: rbacKind('RoleBinding', bindingFields),
  ClusterRole: rbacKind('ClusterRole', { rules: anyList, aggregationRule: anyMap }),
  ClusterRoleBinding: rbacKind('ClusterRoleBinding', bindingFields),
  PodDisruptionBudget: {
    schema: kindSchema('policy/v1', 'PodDisruptionBudget', { spec: anyMap, status: anyMap }),
    idleGroup: 'policy',
  },
  // What uses them is refused or left out, by its own kind.
  StorageClass: {
    schema: kindSchema('storage.k8s.io/v1', 'StorageClass', {
      provisioner: ignored(string, idleReason),
      parameters: anyMap,
      reclaimPolicy: ignored(string, idleReason),
      mountOptions: anyList,
      allowVolumeExpansion: ignored(bool, idleReason),
      volumeBindingMode: ignored(string, idleReason),
      allowedTopologies: anyList,
    }),
    idleGroup: 'storage.k8s.io',
  },
  IngressClass: {
    schema: kindSchema('networking.k8s.io/v1', 'IngressClass', { spec: anyMap }),
    idleGroup: 'networking.k8s.io',
  },
  CustomResourceDefinition: {
    schema: kindSchema('apiextensions.k8s.io/v1', 'CustomResourceDefinition', {
      spec: anyMap,
      status: anyMap,
    }),
    idleGroup: 'apiextensions.k8s.io',
  },
} as const satisfies Record<string, KeptKindEntry>

/** What is said of a CustomResourceDefinition: who waits for it to be served waits in vain. */
export const noCustomObjects = 'podd serves no custom objects: the definition never becomes Established'

function validateServiceAccount({ imagePullSecrets }: JsonObject, issues: Issues): void {
  if (listOrEmpty(imagePullSecrets).length > 0)
    issues
      .of('imagePullSecrets')
      .warn(
        'has no effect: podd takes none from a ServiceAccount',
        'write imagePullSecrets into the pods themselves',
      )
}

export type KeptKind = keyof typeof keptKinds

export function isKeptKind(kind: unknown): kind is KeptKind {
  return typeof kind === 'string' && Object.hasOwn(keptKinds, kind)
}

/** The group of a kind that has no effect on one host and harms nothing; undefined for any other kind. */
export function idleGroupOf(kind: string): string | undefined {
  return isKeptKind(kind) ? keptEntry(kind).idleGroup : undefined
}

export function keptEntry(kind: KeptKind): KeptKindEntry {
  return keptKinds[kind]
}
