import { asJson, entriesOf, jsonAt, objectAt, objectOrEmpty, objectsAt, textAt } from '../base/json.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type {
  ClaimObject,
  ConfigObject,
  EndpointSliceObject,
  IdleObject,
  LeaseObject,
  NamespaceObject,
  NodeObject,
  PodTemplateObject,
  PriorityClassObject,
  RuntimeClassObject,
  ServiceAccountObject,
  ServiceObject,
  WorkloadObject,
  WorkloadRevisionObject,
} from './cluster-objects.ts'
import { summarizePod } from './pod-summary.ts'
import type { EventObject, PodObject } from './resource.ts'
import {
  ageColumn,
  column,
  formatAge,
  formatAgeOf,
  nameColumn,
  readVerbs,
  servedKind,
  wideColumn,
  writeVerbs,
} from './served-kind.ts'
import type { KindColumn, RowCondition, ServedKind } from './served-kind.ts'

/**
 * Each kind with its columns, as the API server prints them (`pkg/printers/internalversion/printers.go`, 1.36). `podd get`
 * has those of them for which podd has something to show, and some of its own.
 */

/** Fields: `pkg/registry/core/pod/strategy.go`, ToSelectableFields, 1.36. */
const podKind = servedKind<PodObject>({
  resource: 'pods',
  verbs: writeVerbs,
  shortNames: ['po'],
  kind: 'Pod',
  categories: ['all'],
  subresources: [
    { name: 'log', verbs: ['get'] },
    { name: 'attach', verbs: ['create', 'get'], kind: 'PodAttachOptions' },
    { name: 'exec', verbs: ['create', 'get'], kind: 'PodExecOptions' },
    { name: 'portforward', verbs: ['create', 'get'], kind: 'PodPortForwardOptions' },
    { name: 'proxy', verbs: ['create', 'delete', 'get', 'patch', 'update'], kind: 'PodProxyOptions' },
    { name: 'status', verbs: ['get', 'patch', 'update'] },
    { name: 'ephemeralcontainers', verbs: ['get', 'patch', 'update'] },
    { name: 'resize', verbs: ['get', 'patch', 'update'] },
    { name: 'eviction', verbs: ['create'], kind: 'Eviction', apiVersion: 'policy/v1' },
  ],
  fields: {
    'spec.nodeName': ({ spec }) => textAt(spec, 'nodeName') ?? '',
    'spec.restartPolicy': ({ spec }) => textAt(spec, 'restartPolicy') || 'Always',
    'spec.schedulerName': ({ spec }) => textAt(spec, 'schedulerName') || 'default-scheduler',
    'spec.serviceAccountName': ({ spec }) => textAt(spec, 'serviceAccountName') ?? '',
    'spec.hostNetwork': ({ spec }) => String(spec['hostNetwork'] === true),
    'status.phase': ({ status }) => status.phase,
    'status.podIP': ({ status }) => status.podIPs?.[0]?.ip ?? '',
    'status.podIPs': () => '',
    'status.nominatedNodeName': () => '',
  },
  columns: [
    nameColumn,
    column('Ready', 'How many containers are ready, of how many.', (pod) => {
      const { ready, total } = summarizePod(pod)
      return `${ready}/${total}`
    }),
    column(
      'Status',
      "The pod's phase, or the reason that says more about its containers.",
      (pod) => summarizePod(pod).status,
    ),
    column('Restarts', 'How often containers were restarted, and when the last one was.', (pod, nowMs) => {
      const { restarts, lastRestartMs } = summarizePod(pod)
      return lastRestartMs === undefined
        ? String(restarts)
        : `${restarts} (${formatAge(nowMs - lastRestartMs)} ago)`
    }),
    ageColumn,
    wideColumn('IP', "The pod's address.", ({ status }) => status.podIPs?.[0]?.ip ?? '<none>'),
    // podd has one host, which `podd status` names.
    {
      ...wideColumn<PodObject>(
        'Node',
        'The host that runs the pod.',
        ({ spec }) => textAt(spec, 'nodeName') || '<none>',
      ),
      only: 'kubectl',
    },
    { ...wideColumn('Nominated Node', 'Empty: podd schedules no pods.', () => '<none>'), only: 'kubectl' },
    {
      ...wideColumn<PodObject>(
        'Readiness Gates',
        'How many of the readiness gates are met, of how many.',
        (pod) => summarizeGates(pod),
      ),
      only: 'kubectl',
    },
    {
      name: 'Source',
      description: 'The manifest: a file or a URL; api for what was written over the API.',
      wide: true,
      only: 'podd',
      cell: ({ metadata: { annotations } }) =>
        annotations?.['podd.dev/source'] === 'api' ? 'api' : (annotations?.['podd.dev/path'] ?? '<none>'),
    },
  ],
  conditions: ({ status }) => completed[status.phase] ?? [],
})

const completed: Readonly<Record<string, readonly RowCondition[]>> = {
  Succeeded: completion('Succeeded', 'The pod has completed successfully.'),
  Failed: completion('Failed', 'The pod failed.'),
}

function completion(reason: string, message: string): readonly RowCondition[] {
  return [{ type: 'Completed', status: 'True', reason, message }]
}

function summarizeGates({ spec, status }: PodObject): string {
  const gates = objectsAt(spec, 'readinessGates')
  if (gates.length === 0) return '<none>'
  const met = gates.filter(({ conditionType }) =>
    status.conditions.some(({ type, status: value }) => type === conditionType && value === 'True'),
  )
  return `${met.length}/${gates.length}`
}

/** Exported for events.k8s.io/v1, which has the same ones. */
export const eventColumns: readonly KindColumn<EventObject>[] = [
  {
    name: 'Last Seen',
    description: 'The time since it last happened.',
    only: 'kubectl',
    cell: ({ lastTimestamp }, nowMs) => formatAgeOf(lastTimestamp, nowMs),
  },
  {
    name: 'Last Seen',
    description: 'The time since it last happened, and how often it did; as in `kubectl events`.',
    only: 'podd',
    cell: formatSeen,
  },
  column('Type', 'Normal or Warning.', ({ type }) => type),
  column('Reason', 'Why it happened, in one word.', ({ reason }) => reason),
  column(
    'Object',
    'What it is about.',
    ({ involvedObject: { kind, name } }) => `${kind.toLowerCase()}/${name}`,
  ),
  wideColumn(
    'Subobject',
    'The part of the object that it is about.',
    ({ involvedObject }) => involvedObject.fieldPath ?? '',
  ),
  wideColumn('Source', 'Who reports it.', ({ source: { component, host } }) => `${component}, ${host}`),
  column('Message', 'What happened.', ({ message }) => message.trim()),
  wideColumn('First Seen', 'The time since it happened for the first time.', ({ firstTimestamp }, nowMs) =>
    formatAgeOf(firstTimestamp, nowMs),
  ),
  wideColumn('Count', 'How often it has happened.', ({ count }) => count),
  wideColumn('Name', "The event's own name.", ({ metadata }) => metadata.name),
]

/** `pkg/registry/core/event/strategy.go`, ToSelectableFields, 1.36. */
export const eventKind = servedKind<EventObject>({
  resource: 'events',
  shortNames: ['ev'],
  kind: 'Event',
  expires: true,
  fields: {
    'involvedObject.kind': ({ involvedObject }) => involvedObject.kind,
    'involvedObject.namespace': ({ involvedObject }) => involvedObject.namespace,
    'involvedObject.name': ({ involvedObject }) => involvedObject.name,
    'involvedObject.uid': ({ involvedObject }) => involvedObject.uid,
    'involvedObject.apiVersion': ({ involvedObject }) => involvedObject.apiVersion ?? '',
    'involvedObject.resourceVersion': () => '',
    'involvedObject.fieldPath': ({ involvedObject }) => involvedObject.fieldPath ?? '',
    reason: ({ reason }) => reason,
    reportingComponent: ({ reportingComponent }) => reportingComponent,
    source: ({ source }) => source.component,
    type: ({ type }) => type,
  },
  columns: eventColumns,
})

/** `5s`, or `5s (x3 over 2m)` for one that came again. */
export function formatSeen({ count, firstTimestamp, lastTimestamp }: EventObject, nowMs: number): string {
  const last = formatAgeOf(lastTimestamp, nowMs)
  return count > 1 ? `${last} (x${count} over ${formatAgeOf(firstTimestamp, nowMs)})` : last
}

const dataColumn = column<ConfigObject>('Data', 'How many entries it has.', (object) => keysOf(object).length)

/** No table has a value. */
const keysColumn: KindColumn<ConfigObject> = {
  name: 'Keys',
  description: 'The names of its entries.',
  only: 'podd',
  cell: (object) => keysOf(object).join(','),
}

const configMapKind = servedKind<ConfigObject>({
  resource: 'configmaps',
  verbs: writeVerbs,
  shortNames: ['cm'],
  kind: 'ConfigMap',
  columns: [nameColumn, dataColumn, ageColumn, keysColumn],
})

/** Their tables are made from podd's redacted form, so that no value leaves the daemon for them. */
const secretKind = servedKind<ConfigObject>({
  resource: 'secrets',
  verbs: writeVerbs,
  kind: 'Secret',
  tableRoot: '/podd/v1',
  fields: { type: ({ type }) => type ?? '' },
  columns: [
    nameColumn,
    column('Type', 'What the Secret is for.', ({ type }) => type ?? ''),
    dataColumn,
    ageColumn,
    keysColumn,
  ],
})

function keysOf({ data = {}, binaryData = {} }: ConfigObject): readonly string[] {
  return [...Object.keys(data), ...Object.keys(binaryData)].sort()
}

const shortModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}

const claimKind = servedKind<ClaimObject>({
  resource: 'persistentvolumeclaims',
  verbs: writeVerbs,
  shortNames: ['pvc'],
  kind: 'PersistentVolumeClaim',
  columns: [
    nameColumn,
    column('Status', "The claim's phase.", ({ status }) => status.phase),
    {
      name: 'Volume',
      description: 'The volume that it is bound to.',
      only: 'kubectl',
      cell: ({ spec }) => spec?.volumeName ?? '',
    },
    column('Capacity', 'How much the volume holds.', ({ spec, status }) =>
      spec?.volumeName === undefined ? '' : (status.capacity?.storage ?? ''),
    ),
    {
      name: 'Used',
      description: 'How much is in its directory.',
      only: 'podd',
      cell: ({ status }) => (status.usedBytes === undefined ? '<unknown>' : formatBytes(status.usedBytes)),
    },
    column('Access Modes', 'How the volume may be mounted.', ({ spec, status }) =>
      spec?.volumeName === undefined
        ? ''
        : (status.accessModes ?? []).map((mode) => shortModes[mode] ?? mode).join(','),
    ),
    column('StorageClass', 'The class of the volume.', ({ spec }) => spec?.storageClassName ?? ''),
    { ...column('VolumeAttributesClass', 'Not used by podd.', () => '<unset>'), only: 'kubectl' },
    ageColumn,
    wideColumn('VolumeMode', 'Filesystem or Block.', ({ spec }) => spec?.volumeMode ?? '<unset>'),
    {
      name: 'Directory',
      description: 'Where its content is on the host.',
      wide: true,
      only: 'podd',
      cell: ({ status }) => status.path,
    },
  ],
})

/** As quantities are written: `1.5Mi`. */
function formatBytes(bytes: number): string {
  const units = ['', 'Ki', 'Mi', 'Gi', 'Ti']
  let size = bytes
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit += 1
  }
  return `${Number(size.toPrecision(3))}${units[unit] ?? ''}`
}

const namespaceKind = servedKind<NamespaceObject>({
  resource: 'namespaces',
  shortNames: ['ns'],
  kind: 'Namespace',
  // Deleted only one by one, as a namespace is deleted with its content.
  verbs: writeVerbs.filter((verb) => verb !== 'deletecollection'),
  namespaced: false,
  fields: { 'status.phase': ({ status }) => status.phase },
  columns: [nameColumn, column('Status', 'Active or Terminating.', ({ status }) => status.phase), ageColumn],
})

const serviceAccountKind = servedKind<ServiceAccountObject>({
  resource: 'serviceaccounts',
  verbs: writeVerbs,
  shortNames: ['sa'],
  kind: 'ServiceAccount',
  columns: [nameColumn, ageColumn],
})

const roleLabel = 'node-role.kubernetes.io/'

export const nodeKind = servedKind<NodeObject>({
  resource: 'nodes',
  shortNames: ['no'],
  kind: 'Node',
  verbs: [...readVerbs, 'patch', 'update'],
  subresources: [
    { name: 'proxy', verbs: ['get'], kind: 'NodeProxyOptions' },
    { name: 'status', verbs: ['get', 'patch', 'update'] },
  ],
  namespaced: false,
  fields: { 'spec.unschedulable': ({ spec }) => String(spec.unschedulable === true) },
  columns: [
    nameColumn,
    column('Status', 'Whether the host runs pods.', (node) => nodeStatus(node)),
    column(
      'Roles',
      "The host's roles, from its labels.",
      ({ metadata }) =>
        Object.keys(metadata.labels ?? {})
          .flatMap((key) => (key.startsWith(roleLabel) ? [key.slice(roleLabel.length)] : []))
          .toSorted()
          .join(',') || '<none>',
    ),
    ageColumn,
    column(
      'Version',
      'The Kubernetes release whose behaviour podd matches.',
      ({ status }) => status.nodeInfo['kubeletVersion'] ?? '',
    ),
    wideColumn(
      'Internal-IP',
      "The host's own address.",
      ({ status }) => status.addresses.find(({ type }) => type === 'InternalIP')?.address ?? '<none>',
    ),
    { ...wideColumn('External-IP', 'Not known to podd.', () => '<none>'), only: 'kubectl' },
    wideColumn('OS-Image', 'The distribution.', ({ status }) => status.nodeInfo['osImage'] || '<unknown>'),
    wideColumn(
      'Kernel-Version',
      "The kernel's version and architecture.",
      ({ status: { nodeInfo } }) => `${nodeInfo['kernelVersion']} (${nodeInfo['architecture']})`,
    ),
    wideColumn(
      'Container-Runtime',
      'The runtime and its version.',
      ({ status }) => status.nodeInfo['containerRuntimeVersion'] || '<unknown>',
    ),
  ],
})

/** `Ready,SchedulingDisabled` (`pkg/printers/internalversion/printers.go`, printNode, 1.36). */
function nodeStatus({ spec, status }: NodeObject): string {
  const ready = status.conditions.find(({ type }) => type === 'Ready')
  const word = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady'
  return spec.unschedulable === true ? `${word},SchedulingDisabled` : word
}

const priorityClassKind = servedKind<PriorityClassObject>({
  resource: 'priorityclasses',
  shortNames: ['pc'],
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  verbs: writeVerbs,
  namespaced: false,
  columns: [
    nameColumn,
    {
      name: 'Value',
      type: 'integer',
      description: 'The higher, the later evicted.',
      cell: ({ value }) => value,
    },
    {
      name: 'Global-Default',
      type: 'boolean',
      description: 'Whether pods that name no class have it.',
      cell: ({ globalDefault }) => globalDefault === true,
    },
    ageColumn,
    column(
      'PreemptionPolicy',
      'Whether pods of the class may take the place of others.',
      ({ preemptionPolicy }) => preemptionPolicy,
    ),
  ],
})

const runtimeClassKind = servedKind<RuntimeClassObject>({
  resource: 'runtimeclasses',
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  verbs: writeVerbs,
  namespaced: false,
  columns: [nameColumn, column('Handler', "The runtime's handler.", ({ handler }) => handler), ageColumn],
})

const leaseKind = servedKind<LeaseObject>({
  resource: 'leases',
  verbs: writeVerbs,
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  columns: [
    nameColumn,
    column('Holder', 'Who has the lease.', ({ spec = {} }) => textAt(spec, 'holderIdentity') ?? ''),
    ageColumn,
  ],
})

const podTemplateKind = servedKind<PodTemplateObject>({
  resource: 'podtemplates',
  verbs: writeVerbs,
  kind: 'PodTemplate',
  columns: [
    nameColumn,
    column('Containers', 'The names of the containers.', (object) => containerTexts(object, 'name')),
    column('Images', 'Their images.', (object) => containerTexts(object, 'image')),
    column('Pod Labels', 'The labels of its pods.', (object) => templateLabels(object)),
  ],
})

/** One field of each container (`pkg/printers/internalversion/printers.go`, layoutContainerCells, 1.36). */
function containerTexts(owner: { readonly template?: Json }, field: 'name' | 'image'): string {
  const containers = objectsAt(objectOrEmpty(jsonAt(owner, 'template', 'spec')), 'containers')
  return containers.flatMap((container) => textAt(container, field) ?? []).join(',')
}

function templateLabels({ template = {} }: PodTemplateObject): string {
  const labels = objectAt(objectAt(template, 'metadata') ?? {}, 'labels')
  return entriesOf(labels, '=').join(',') || '<none>'
}

const roleColumn = column<IdleObject>('Role', 'The role that it binds.', (binding) => {
  const role = objectAt(objectOrEmpty(asJson(binding)), 'roleRef') ?? {}
  return `${textAt(role, 'kind') ?? ''}/${textAt(role, 'name') ?? ''}`
})

const createdColumn: KindColumn = column(
  'Created At',
  'When the object was created.',
  ({ metadata }) => metadata.creationTimestamp ?? '',
)

const rbac = { verbs: writeVerbs, apiVersion: 'rbac.authorization.k8s.io/v1' } as const

/** These have no effect. */
const idleServedKinds: readonly ServedKind[] = [
  servedKind<IdleObject>({
    ...rbac,
    resource: 'roles',
    kind: 'Role',
    columns: [nameColumn, createdColumn],
  }),
  servedKind<IdleObject>({
    ...rbac,
    resource: 'rolebindings',
    kind: 'RoleBinding',
    columns: [nameColumn, roleColumn, ageColumn],
  }),
  servedKind<IdleObject>({
    ...rbac,
    resource: 'clusterroles',
    kind: 'ClusterRole',
    namespaced: false,
    columns: [nameColumn, createdColumn],
  }),
  servedKind<IdleObject>({
    ...rbac,
    resource: 'clusterrolebindings',
    kind: 'ClusterRoleBinding',
    namespaced: false,
    columns: [nameColumn, roleColumn, ageColumn],
  }),
  servedKind<IdleObject>({
    resource: 'poddisruptionbudgets',
    verbs: writeVerbs,
    shortNames: ['pdb'],
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    columns: [
      nameColumn,
      column('Min Available', 'Without effect.', (budget) => specText(budget, 'minAvailable')),
      column('Max Unavailable', 'Without effect.', (budget) => specText(budget, 'maxUnavailable')),
      { ...column('Allowed Disruptions', 'Not counted by podd.', () => 'N/A'), only: 'kubectl' },
      ageColumn,
    ],
  }),
  servedKind<IdleObject>({
    resource: 'storageclasses',
    verbs: writeVerbs,
    shortNames: ['sc'],
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    namespaced: false,
    columns: [
      nameColumn,
      column(
        'Provisioner',
        'Without effect.',
        (each) => textAt(objectOrEmpty(asJson(each)), 'provisioner') ?? '',
      ),
      ageColumn,
    ],
  }),
  servedKind<IdleObject>({
    resource: 'ingressclasses',
    verbs: writeVerbs,
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IngressClass',
    namespaced: false,
    columns: [
      nameColumn,
      column('Controller', 'Without effect.', (each) => specText(each, 'controller')),
      ageColumn,
    ],
  }),
  servedKind<IdleObject>({
    resource: 'customresourcedefinitions',
    verbs: writeVerbs,
    shortNames: ['crd', 'crds'],
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    namespaced: false,
    columns: [nameColumn, createdColumn],
  }),
]

function specText(idle: IdleObject, field: string): string {
  const value = jsonAt(objectOrEmpty(asJson(idle)), 'spec', field)
  return typeof value === 'string' || typeof value === 'number' ? String(value) : 'N/A'
}

/** Fields: `pkg/registry/core/service/strategy.go`, SelectableFields, 1.36. */
const serviceKind = servedKind<ServiceObject>({
  resource: 'services',
  verbs: writeVerbs,
  shortNames: ['svc'],
  kind: 'Service',
  categories: ['all'],
  fields: {
    'spec.clusterIP': ({ spec }) => spec.clusterIP ?? '',
    'spec.type': ({ spec }) => spec.type,
  },
  columns: [
    nameColumn,
    column('Type', 'ClusterIP: there are no others.', ({ spec }) => spec.type),
    column(
      'Cluster-IP',
      'None, or nothing: a name leads to the pods themselves.',
      ({ spec }) => spec.clusterIP ?? '<none>',
    ),
    { ...column('External-IP', 'Not used by podd.', () => '<none>'), only: 'kubectl' },
    column(
      'Port(s)',
      'The ports of the Service.',
      ({ spec: { ports = [] } }) =>
        ports.map(({ port, protocol }) => `${port}/${protocol}`).join(',') || '<none>',
    ),
    ageColumn,
    wideColumn('Selector', 'The labels of its pods.', ({ spec }) => entriesOf(spec.selector, '=').join(',')),
  ],
})

const endpointSliceKind = servedKind<EndpointSliceObject>({
  resource: 'endpointslices',
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  columns: [
    nameColumn,
    column('AddressType', 'IPv4 or IPv6.', ({ addressType }) => addressType),
    column('Ports', 'The ports of the pods.', ({ ports }) => firstOf(ports.map(({ port }) => String(port)))),
    column('Endpoints', 'The addresses of the pods, ready or not.', ({ endpoints }) =>
      firstOf(endpoints.flatMap(({ addresses }) => addresses)),
    ),
    ageColumn,
  ],
})

/** At most three of them (`pkg/printers/internalversion/printers.go`, formatDiscoveryEndpoints, 1.36). */
function firstOf(texts: readonly string[]): string {
  if (texts.length === 0) return '<unset>'
  const more = texts.length > 3 ? ` + ${texts.length - 3} more...` : ''
  return `${texts.slice(0, 3).join(',')}${more}`
}

const containersColumn = wideColumn<WorkloadObject>(
  'Containers',
  'The names of the containers.',
  ({ spec }) => containerTexts(spec, 'name'),
)
const imagesColumn = wideColumn<WorkloadObject>('Images', 'Their images.', ({ spec }) =>
  containerTexts(spec, 'image'),
)
const selectorColumn = wideColumn<WorkloadObject>(
  'Selector',
  'The labels of its pods.',
  ({ spec }) =>
    entriesOf(objectAt(objectAt(spec, 'selector') ?? {}, 'matchLabels'), '=').join(',') || '<none>',
)

/** A number of a status; zero where it is left out. */
function countAt(object: JsonObject, key: string): number {
  const value = object[key]
  return typeof value === 'number' ? value : 0
}

function countColumn(name: string, description: string, key: string): KindColumn<WorkloadObject> {
  return { ...column(name, description, ({ status }) => countAt(status, key)), type: 'integer' }
}

const readyColumn = column<WorkloadObject>(
  'Ready',
  'How many pods are ready, of how many.',
  ({ spec, status }) => `${countAt(status, 'readyReplicas')}/${countAt(spec, 'replicas')}`,
)

const workload = { verbs: writeVerbs, categories: ['all'] } as const
const scaled = {
  subresources: [
    { name: 'scale', verbs: ['get', 'patch', 'update'], kind: 'Scale', apiVersion: 'autoscaling/v1' },
  ],
} as const

const deploymentKind = servedKind<WorkloadObject>({
  ...workload,
  ...scaled,
  resource: 'deployments',
  shortNames: ['deploy'],
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  columns: [
    nameColumn,
    readyColumn,
    countColumn('Up-to-date', 'How many pods are of the newest template.', 'updatedReplicas'),
    countColumn('Available', 'How many pods are ready for as long as they should.', 'availableReplicas'),
    ageColumn,
    containersColumn,
    imagesColumn,
    selectorColumn,
  ],
})

const statefulSetKind = servedKind<WorkloadObject>({
  ...workload,
  ...scaled,
  resource: 'statefulsets',
  shortNames: ['sts'],
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  columns: [nameColumn, readyColumn, ageColumn, containersColumn, imagesColumn],
})

const daemonSetKind = servedKind<WorkloadObject>({
  ...workload,
  resource: 'daemonsets',
  shortNames: ['ds'],
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  columns: [
    nameColumn,
    countColumn('Desired', 'How many pods it is to have.', 'desiredNumberScheduled'),
    countColumn('Current', 'How many pods there are.', 'currentNumberScheduled'),
    countColumn('Ready', 'How many pods are ready.', 'numberReady'),
    countColumn('Up-to-date', 'How many pods are of the newest template.', 'updatedNumberScheduled'),
    countColumn('Available', 'How many pods are ready for as long as they should.', 'numberAvailable'),
    { ...column('Node Selector', 'Without effect: there is one node.', () => '<none>'), only: 'kubectl' },
    ageColumn,
    containersColumn,
    imagesColumn,
    selectorColumn,
  ],
})

/** Made when it is asked for; it is none of what `kubectl get all` lists, as nothing stands behind it. */
const replicaSetKind = servedKind<WorkloadRevisionObject>({
  resource: 'replicasets',
  shortNames: ['rs'],
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  columns: [
    nameColumn,
    setColumn('Desired', 'How many pods of its template there are to be.', 'spec', 'replicas'),
    setColumn('Current', 'How many there are.', 'status', 'replicas'),
    setColumn('Ready', 'How many of them are ready.', 'status', 'readyReplicas'),
    ageColumn,
    wideColumn('Containers', 'The names of the containers.', (object) =>
      containerTexts(objectAt(object, 'spec') ?? {}, 'name'),
    ),
    wideColumn('Images', 'Their images.', (object) =>
      containerTexts(objectAt(object, 'spec') ?? {}, 'image'),
    ),
  ],
})

function setColumn(
  name: string,
  description: string,
  part: 'spec' | 'status',
  key: string,
): KindColumn<WorkloadRevisionObject> {
  return {
    ...column<WorkloadRevisionObject>(name, description, (object) =>
      countAt(objectAt(object, part) ?? {}, key),
    ),
    type: 'integer',
  }
}

/** As `replicaSetKind`. */
const controllerRevisionKind = servedKind<WorkloadRevisionObject>({
  resource: 'controllerrevisions',
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  columns: [
    nameColumn,
    column('Controller', 'The workload that has the template.', ({ metadata: { ownerReferences } }) =>
      ownerReferences.map(({ kind, name }) => `${kind.toLowerCase()}.apps/${name}`).join(','),
    ),
    {
      name: 'Revision',
      type: 'integer',
      description: 'Its number.',
      cell: (object) => (object.kind === 'ControllerRevision' ? object.revision : 0),
    },
    ageColumn,
  ],
})

/** `pkg/printers/internalversion/printers.go`, printJob, 1.36. */
export function jobState({ spec, status }: WorkloadObject): string {
  const types = objectsAt(status, 'conditions').map((condition) => textAt(condition, 'type'))
  const end = ['Complete', 'Failed'].find((type) => types.includes(type))
  if (end !== undefined) return end
  return spec['suspend'] === true ? 'Suspended' : 'Running'
}

export function jobCompletions({ spec, status }: WorkloadObject): string {
  const { completions, parallelism } = spec
  if (typeof completions === 'number') return `${countAt(status, 'succeeded')}/${completions}`
  const shared = typeof parallelism === 'number' && parallelism > 1 ? `1 of ${parallelism}` : '1'
  return `${countAt(status, 'succeeded')}/${shared}`
}

function jobDuration({ status }: WorkloadObject, nowMs: number): string {
  const start = textAt(status, 'startTime')
  if (start === undefined) return ''
  const end = textAt(status, 'completionTime')
  return formatAge((end === undefined ? nowMs : Date.parse(end)) - Date.parse(start))
}

const jobKind = servedKind<WorkloadObject>({
  ...workload,
  resource: 'jobs',
  apiVersion: 'batch/v1',
  kind: 'Job',
  // `pkg/registry/batch/job/strategy.go`, JobToSelectableFields, 1.36.
  fields: { 'status.successful': ({ status }) => String(countAt(status, 'succeeded')) },
  columns: [
    nameColumn,
    column('Status', 'Complete, Failed, Running or Suspended.', (job) => jobState(job)),
    column('Completions', 'How many pods have succeeded, of how many.', (job) => jobCompletions(job)),
    column('Duration', 'How long it has run.', (job, nowMs) => jobDuration(job, nowMs)),
    ageColumn,
    containersColumn,
    imagesColumn,
  ],
})

const cronJobKind = servedKind<WorkloadObject>({
  ...workload,
  resource: 'cronjobs',
  shortNames: ['cj'],
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  columns: [
    nameColumn,
    column('Schedule', 'When it starts a Job.', ({ spec }) => textAt(spec, 'schedule') ?? ''),
    column(
      'Timezone',
      "By which clock; the host's where none is given.",
      ({ spec }) => textAt(spec, 'timeZone') ?? '<none>',
    ),
    column('Suspend', 'Whether it starts none for now.', ({ spec }) =>
      spec['suspend'] === true ? 'True' : 'False',
    ),
    {
      ...column('Active', 'How many of its Jobs run.', ({ status }) => objectsAt(status, 'active').length),
      type: 'integer',
    },
    column('Last Schedule', 'The time since it started the last one.', ({ status }, nowMs) => {
      const last = textAt(status, 'lastScheduleTime')
      return last === undefined ? '<none>' : formatAgeOf(last, nowMs)
    }),
    ageColumn,
  ],
})

/** All kinds that the API serves: its routes, `podd get` and `podd describe` go by this list. */
export const servedKinds: readonly ServedKind[] = [
  configMapKind,
  eventKind,
  leaseKind,
  namespaceKind,
  nodeKind,
  claimKind,
  podKind,
  podTemplateKind,
  secretKind,
  serviceAccountKind,
  ...idleServedKinds,
  serviceKind,
  endpointSliceKind,
  priorityClassKind,
  runtimeClassKind,
  deploymentKind,
  statefulSetKind,
  daemonSetKind,
  replicaSetKind,
  controllerRevisionKind,
  jobKind,
  cronJobKind,
]

/** The names of a kind on the command line. */
export function namesOfKind({ resource, singular, shortNames }: ServedKind): readonly string[] {
  return [resource, singular, ...shortNames]
}

/** By any of its names, in whatever case. */
export function findKind(name: string): ServedKind | undefined {
  const lower = name.toLowerCase()
  return servedKinds.find((kind) => namesOfKind(kind).includes(lower))
}
