import { isJsonObject } from '../base/json.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type {
  ClaimObject,
  ConfigObject,
  LeaseObject,
  NamespaceObject,
  NodeObject,
  PodTemplateObject,
  PriorityClassObject,
  RuntimeClassObject,
  ServiceAccountObject,
} from './cluster-objects.ts'
import { summarizePod } from './pod-summary.ts'
import type { EventObject, PodObject } from './resource.ts'
import {
  ageColumn,
  formatAge,
  formatAgeOf,
  nameColumn,
  readVerbs,
  servedKind,
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
  singular: 'pod',
  shortNames: ['po'],
  kind: 'Pod',
  categories: ['all'],
  subresources: [
    { name: 'log', verbs: ['get'] },
    { name: 'attach', verbs: ['create', 'get'], kind: 'PodAttachOptions' },
    { name: 'exec', verbs: ['create', 'get'], kind: 'PodExecOptions' },
    { name: 'portforward', verbs: ['create', 'get'], kind: 'PodPortForwardOptions' },
    {
      name: 'proxy',
      verbs: ['create', 'delete', 'get', 'patch', 'update'],
      kind: 'PodProxyOptions',
    },
    { name: 'status', verbs: ['get', 'patch', 'update'] },
    { name: 'ephemeralcontainers', verbs: ['get', 'patch', 'update'] },
    { name: 'resize', verbs: ['get', 'patch', 'update'] },
    { name: 'eviction', verbs: ['create'], kind: 'Eviction', apiVersion: 'policy/v1' },
  ],
  fields: {
    'spec.nodeName': ({ spec }) => textAt(spec, 'nodeName', ''),
    'spec.restartPolicy': ({ spec }) => textAt(spec, 'restartPolicy', 'Always'),
    'spec.schedulerName': ({ spec }) => textAt(spec, 'schedulerName', 'default-scheduler'),
    'spec.serviceAccountName': ({ spec }) => textAt(spec, 'serviceAccountName', ''),
    'spec.hostNetwork': ({ spec }) => String(spec['hostNetwork'] === true),
    'status.phase': ({ status }) => status.phase,
    'status.podIP': ({ status }) => status.podIPs?.[0]?.ip ?? '',
    'status.podIPs': () => '',
    'status.nominatedNodeName': () => '',
  },
  columns: [
    nameColumn,
    {
      name: 'Ready',
      description: 'How many containers are ready, of how many.',
      cell(pod) {
        const { ready, total } = summarizePod(pod)
        return `${ready}/${total}`
      },
    },
    {
      name: 'Status',
      description: "The pod's phase, or the reason that says more about its containers.",
      cell: (pod) => summarizePod(pod).status,
    },
    {
      name: 'Restarts',
      description: 'How often containers were restarted, and when the last one was.',
      cell(pod, nowMs) {
        const { restarts, lastRestartMs } = summarizePod(pod)
        return lastRestartMs === undefined
          ? String(restarts)
          : `${restarts} (${formatAge(nowMs - lastRestartMs)} ago)`
      },
    },
    ageColumn,
    {
      name: 'IP',
      description: "The pod's address.",
      wide: true,
      cell: ({ status }) => status.podIPs?.[0]?.ip ?? '<none>',
    },
    {
      name: 'Node',
      description: 'The host that runs the pod.',
      wide: true,
      cell: ({ spec }) => textAt(spec, 'nodeName', '<none>'),
    },
    {
      name: 'Nominated Node',
      description: 'Empty: podd schedules no pods.',
      wide: true,
      only: 'kubectl',
      cell: () => '<none>',
    },
    {
      name: 'Readiness Gates',
      description: 'How many of the readiness gates are met, of how many.',
      wide: true,
      cell: (pod) => summarizeGates(pod),
    },
    {
      name: 'Source',
      description: 'The manifest: a file or a URL.',
      wide: true,
      only: 'podd',
      cell: ({ metadata }) => metadata.annotations?.['podd.dev/path'] ?? '<none>',
    },
  ],
  conditions: ({ status }) => completed[status.phase] ?? [],
})

const completed: Readonly<Record<string, readonly RowCondition[]>> = {
  Succeeded: [
    {
      type: 'Completed',
      status: 'True',
      reason: 'Succeeded',
      message: 'The pod has completed successfully.',
    },
  ],
  Failed: [{ type: 'Completed', status: 'True', reason: 'Failed', message: 'The pod failed.' }],
}

function summarizeGates({ spec, status }: PodObject): string {
  const list = spec['readinessGates']
  const gates = Array.isArray(list) ? list.filter((gate) => isJsonObject(gate)) : []
  if (gates.length === 0) return '<none>'
  const met = gates.filter(({ conditionType }) =>
    status.conditions.some(({ type, status: value }) => type === conditionType && value === 'True'),
  )
  return `${met.length}/${gates.length}`
}

function textAt(object: JsonObject, key: string, absent: string): string {
  const value = object[key]
  return typeof value === 'string' && value !== '' ? value : absent
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
  { name: 'Type', description: 'Normal or Warning.', cell: ({ type }) => type },
  { name: 'Reason', description: 'Why it happened, in one word.', cell: ({ reason }) => reason },
  {
    name: 'Object',
    description: 'What it is about.',
    cell: ({ involvedObject: { kind, name } }) => `${kind.toLowerCase()}/${name}`,
  },
  {
    name: 'Subobject',
    description: 'The part of the object that it is about.',
    wide: true,
    cell: ({ involvedObject }) => involvedObject.fieldPath ?? '',
  },
  {
    name: 'Source',
    description: 'Who reports it.',
    wide: true,
    cell: ({ source: { component, host } }) => `${component}, ${host}`,
  },
  { name: 'Message', description: 'What happened.', cell: ({ message }) => message.trim() },
  {
    name: 'First Seen',
    description: 'The time since it happened for the first time.',
    wide: true,
    cell: ({ firstTimestamp }, nowMs) => formatAgeOf(firstTimestamp, nowMs),
  },
  { name: 'Count', description: 'How often it has happened.', wide: true, cell: ({ count }) => count },
  { name: 'Name', description: "The event's own name.", wide: true, cell: ({ metadata }) => metadata.name },
]

/** `pkg/registry/core/event/strategy.go`, ToSelectableFields, 1.36. */
export const eventKind = servedKind<EventObject>({
  resource: 'events',
  singular: 'event',
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

/** How many entries. */
const dataColumn: KindColumn<ConfigObject> = {
  name: 'Data',
  description: 'How many entries it has.',
  cell: (object) => keysOf(object).length,
}

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
  singular: 'configmap',
  shortNames: ['cm'],
  kind: 'ConfigMap',
  columns: [nameColumn, dataColumn, ageColumn, keysColumn],
})

/** Their tables are made from podd's redacted form, so that no value leaves the daemon for them. */
const secretKind = servedKind<ConfigObject>({
  resource: 'secrets',
  verbs: writeVerbs,
  singular: 'secret',
  shortNames: [],
  kind: 'Secret',
  tableRoot: '/podd/v1',
  fields: { type: ({ type }) => type ?? '' },
  columns: [
    nameColumn,
    { name: 'Type', description: 'What the Secret is for.', cell: ({ type }) => type ?? '' },
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
  singular: 'persistentvolumeclaim',
  shortNames: ['pvc'],
  kind: 'PersistentVolumeClaim',
  columns: [
    nameColumn,
    { name: 'Status', description: "The claim's phase.", cell: ({ status }) => status.phase },
    {
      name: 'Volume',
      description: 'The volume that it is bound to.',
      only: 'kubectl',
      cell: ({ spec }) => spec?.volumeName ?? '',
    },
    {
      name: 'Capacity',
      description: 'How much the volume holds.',
      cell: ({ spec, status }) => (spec?.volumeName === undefined ? '' : (status.capacity?.storage ?? '')),
    },
    {
      name: 'Used',
      description: 'How much is in its directory.',
      only: 'podd',
      cell: ({ status }) => (status.usedBytes === undefined ? '<unknown>' : formatBytes(status.usedBytes)),
    },
    {
      name: 'Access Modes',
      description: 'How the volume may be mounted.',
      cell: ({ spec, status }) =>
        spec?.volumeName === undefined
          ? ''
          : (status.accessModes ?? []).map((mode) => shortModes[mode] ?? mode).join(','),
    },
    {
      name: 'StorageClass',
      description: 'The class of the volume.',
      cell: ({ spec }) => spec?.storageClassName ?? '',
    },
    {
      name: 'VolumeAttributesClass',
      description: 'Not used by podd.',
      only: 'kubectl',
      cell: () => '<unset>',
    },
    ageColumn,
    {
      name: 'VolumeMode',
      description: 'Filesystem or Block.',
      wide: true,
      cell: ({ spec }) => spec?.volumeMode ?? '<unset>',
    },
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
  singular: 'namespace',
  shortNames: ['ns'],
  kind: 'Namespace',
  // Deleted only one by one, as a namespace is deleted with its content.
  verbs: writeVerbs.filter((verb) => verb !== 'deletecollection'),
  namespaced: false,
  fields: { 'status.phase': ({ status }) => status.phase },
  columns: [
    nameColumn,
    { name: 'Status', description: 'Active or Terminating.', cell: ({ status }) => status.phase },
    ageColumn,
  ],
})

const serviceAccountKind = servedKind<ServiceAccountObject>({
  resource: 'serviceaccounts',
  singular: 'serviceaccount',
  shortNames: ['sa'],
  kind: 'ServiceAccount',
  columns: [nameColumn, ageColumn],
})

const roleLabel = 'node-role.kubernetes.io/'

export const nodeKind = servedKind<NodeObject>({
  resource: 'nodes',
  singular: 'node',
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
    { name: 'Status', description: 'Whether the host runs pods.', cell: (node) => nodeStatus(node) },
    {
      name: 'Roles',
      description: "The host's roles, from its labels.",
      cell: ({ metadata }) =>
        Object.keys(metadata.labels ?? {})
          .flatMap((key) => (key.startsWith(roleLabel) ? [key.slice(roleLabel.length)] : []))
          .toSorted()
          .join(',') || '<none>',
    },
    ageColumn,
    {
      name: 'Version',
      description: 'The Kubernetes release whose behaviour podd matches.',
      cell: ({ status }) => status.nodeInfo['kubeletVersion'] ?? '',
    },
    {
      name: 'Internal-IP',
      description: "The host's own address.",
      wide: true,
      cell: ({ status }) => status.addresses.find(({ type }) => type === 'InternalIP')?.address ?? '<none>',
    },
    {
      name: 'External-IP',
      description: 'Not known to podd.',
      wide: true,
      only: 'kubectl',
      cell: () => '<none>',
    },
    {
      name: 'OS-Image',
      description: 'The distribution.',
      wide: true,
      cell: ({ status }) => status.nodeInfo['osImage'] || '<unknown>',
    },
    {
      name: 'Kernel-Version',
      description: "The kernel's version and architecture.",
      wide: true,
      cell: ({ status: { nodeInfo } }) => `${nodeInfo['kernelVersion']} (${nodeInfo['architecture']})`,
    },
    {
      name: 'Container-Runtime',
      description: 'The runtime and its version.',
      wide: true,
      cell: ({ status }) => status.nodeInfo['containerRuntimeVersion'] || '<unknown>',
    },
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
  singular: 'priorityclass',
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
    {
      name: 'PreemptionPolicy',
      description: 'Whether pods of the class may take the place of others.',
      cell: ({ preemptionPolicy }) => preemptionPolicy,
    },
  ],
})

const runtimeClassKind = servedKind<RuntimeClassObject>({
  resource: 'runtimeclasses',
  singular: 'runtimeclass',
  shortNames: [],
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  verbs: writeVerbs,
  namespaced: false,
  columns: [
    nameColumn,
    { name: 'Handler', description: "The runtime's handler.", cell: ({ handler }) => handler },
    ageColumn,
  ],
})

const leaseKind = servedKind<LeaseObject>({
  resource: 'leases',
  verbs: writeVerbs,
  singular: 'lease',
  shortNames: [],
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  columns: [
    nameColumn,
    { name: 'Holder', description: 'Who has the lease.', cell: (lease) => holderOf(lease) },
    ageColumn,
  ],
})

const podTemplateKind = servedKind<PodTemplateObject>({
  resource: 'podtemplates',
  verbs: writeVerbs,
  singular: 'podtemplate',
  shortNames: [],
  kind: 'PodTemplate',
  columns: [
    nameColumn,
    {
      name: 'Containers',
      description: 'The names of the containers.',
      cell: (object) => containerTexts(object, 'name'),
    },
    { name: 'Images', description: 'Their images.', cell: (object) => containerTexts(object, 'image') },
    { name: 'Pod Labels', description: 'The labels of its pods.', cell: (object) => templateLabels(object) },
  ],
})

function holderOf({ spec }: LeaseObject): string {
  const holder = spec?.['holderIdentity']
  return typeof holder === 'string' ? holder : ''
}

/** One field of each container (`pkg/printers/internalversion/printers.go`, layoutContainerCells, 1.36). */
function containerTexts({ template }: PodTemplateObject, field: 'name' | 'image'): string {
  const spec = template?.['spec']
  const containers = isJsonObject(spec) ? spec['containers'] : undefined
  if (!Array.isArray(containers)) return ''
  return containers
    .map((container: Json) => (isJsonObject(container) ? container[field] : undefined))
    .filter((text) => typeof text === 'string')
    .join(',')
}

function templateLabels({ template }: PodTemplateObject): string {
  const metadata = template?.['metadata']
  const labels = isJsonObject(metadata) ? metadata['labels'] : undefined
  const pairs = Object.entries(isJsonObject(labels) ? labels : {}).flatMap(([key, value]) =>
    typeof value === 'string' ? [`${key}=${value}`] : [],
  )
  return pairs.toSorted().join(',') || '<none>'
}

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
  priorityClassKind,
  runtimeClassKind,
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
