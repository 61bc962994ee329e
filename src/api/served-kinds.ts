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
import { formatAge, formatAgeOf, readVerbs, servedKind, writeVerbs } from './served-kind.ts'
import type { ServedKind } from './served-kind.ts'

/** Pods: kubectl's columns; `-o wide` adds where they come from (`pkg/registry/core/pod/strategy.go`, ToSelectableFields, 1.36). */
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
    { title: 'NAME', cell: ({ metadata }) => metadata.name },
    {
      title: 'READY',
      cell(pod) {
        const { ready, total } = summarizePod(pod)
        return `${ready}/${total}`
      },
    },
    { title: 'STATUS', cell: (pod) => summarizePod(pod).status },
    {
      title: 'RESTARTS',
      cell(pod, nowMs) {
        const { restarts, lastRestartMs } = summarizePod(pod)
        return lastRestartMs === undefined
          ? String(restarts)
          : `${restarts} (${formatAge(nowMs - lastRestartMs)} ago)`
      },
    },
    { title: 'AGE', cell: ({ metadata }, nowMs) => formatAgeOf(metadata.creationTimestamp, nowMs) },
    { title: 'IP', wide: true, cell: ({ status }) => status.podIP ?? status.podIPs?.[0]?.ip ?? '<none>' },
    { title: 'NODE', wide: true, cell: ({ spec }) => textAt(spec, 'nodeName', '<none>') },
    {
      title: 'SOURCE',
      wide: true,
      cell: ({ metadata }) => metadata.annotations?.['podd.dev/path'] ?? '<none>',
    },
  ],
})

function textAt(object: JsonObject, key: string, absent: string): string {
  const value = object[key]
  return typeof value === 'string' && value !== '' ? value : absent
}

/** Events: the columns of `kubectl events` (`pkg/registry/core/event/strategy.go`, ToSelectableFields, 1.36). */
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
  columns: [
    { title: 'LAST SEEN', cell: formatSeen },
    { title: 'TYPE', cell: ({ type }) => type },
    { title: 'REASON', cell: ({ reason }) => reason },
    { title: 'OBJECT', cell: ({ involvedObject: { kind, name } }) => `${kind}/${name}` },
    { title: 'MESSAGE', cell: ({ message }) => message.trim() },
  ],
})

/** `5s`, or `5s (x3 over 2m)` for one that came again. */
export function formatSeen({ count, firstTimestamp, lastTimestamp }: EventObject, nowMs: number): string {
  const last = formatAgeOf(lastTimestamp, nowMs)
  return count > 1 ? `${last} (x${count} over ${formatAgeOf(firstTimestamp, nowMs)})` : last
}

const nameColumn = { title: 'NAME', cell: ({ metadata }: ConfigObject) => metadata.name }

/** How many entries, and their keys; no table has a value. */
const dataColumns = [
  { title: 'DATA', cell: (object: ConfigObject) => String(keysOf(object).length) },
  { title: 'KEYS', cell: (object: ConfigObject) => keysOf(object).join(',') },
]

const configMapKind = servedKind<ConfigObject>({
  resource: 'configmaps',
  verbs: writeVerbs,
  singular: 'configmap',
  shortNames: ['cm'],
  kind: 'ConfigMap',
  columns: [nameColumn, ...dataColumns],
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
  columns: [nameColumn, { title: 'TYPE', cell: ({ type }) => type ?? '' }, ...dataColumns],
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
    { title: 'NAME', cell: ({ metadata }) => metadata.name },
    { title: 'STATUS', cell: ({ status }) => status.phase },
    { title: 'CAPACITY', cell: ({ status }) => status.capacity?.storage ?? '' },
    {
      title: 'USED',
      cell: ({ status }) => (status.usedBytes === undefined ? '<unknown>' : formatBytes(status.usedBytes)),
    },
    {
      title: 'ACCESS MODES',
      cell: ({ spec }) => (spec?.accessModes ?? []).map((mode) => shortModes[mode] ?? mode).join(','),
    },
    { title: 'STORAGECLASS', cell: ({ spec }) => spec?.storageClassName ?? '' },
    { title: 'DIRECTORY', wide: true, cell: ({ status }) => status.path },
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

const clusterNameColumn = {
  title: 'NAME',
  cell: ({ metadata }: { readonly metadata: { readonly name: string } }) => metadata.name,
}

const ageColumn = {
  title: 'AGE',
  cell: (
    { metadata }: { readonly metadata: { readonly creationTimestamp?: string } },
    nowMs: number,
  ): string => formatAgeOf(metadata.creationTimestamp, nowMs),
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
  columns: [clusterNameColumn, { title: 'STATUS', cell: ({ status }) => status.phase }, ageColumn],
})

const serviceAccountKind = servedKind<ServiceAccountObject>({
  resource: 'serviceaccounts',
  singular: 'serviceaccount',
  shortNames: ['sa'],
  kind: 'ServiceAccount',
  columns: [clusterNameColumn, ageColumn],
})

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
    clusterNameColumn,
    { title: 'STATUS', cell: (node) => nodeStatus(node) },
    ageColumn,
    { title: 'VERSION', cell: ({ status }) => status.nodeInfo['kubeletVersion'] ?? '' },
    { title: 'INTERNAL-IP', wide: true, cell: (node) => internalAddress(node) },
  ],
})

const priorityClassKind = servedKind<PriorityClassObject>({
  resource: 'priorityclasses',
  singular: 'priorityclass',
  shortNames: ['pc'],
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  verbs: writeVerbs,
  namespaced: false,
  columns: [
    clusterNameColumn,
    { title: 'VALUE', cell: ({ value }) => String(value) },
    { title: 'GLOBAL-DEFAULT', cell: ({ globalDefault }) => String(globalDefault === true) },
    ageColumn,
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
  columns: [clusterNameColumn, { title: 'HANDLER', cell: ({ handler }) => handler }, ageColumn],
})

/** `Ready,SchedulingDisabled` (`pkg/printers/internalversion/printers.go`, printNode, 1.36). */
export function nodeStatus({ spec, status }: NodeObject): string {
  const ready = status.conditions.find(({ type }) => type === 'Ready')
  const word = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady'
  return spec.unschedulable === true ? `${word},SchedulingDisabled` : word
}

export function internalAddress({ status }: NodeObject): string {
  return status.addresses.find(({ type }) => type === 'InternalIP')?.address ?? '<none>'
}

const leaseKind = servedKind<LeaseObject>({
  resource: 'leases',
  verbs: writeVerbs,
  singular: 'lease',
  shortNames: [],
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  columns: [
    { title: 'NAME', cell: ({ metadata }) => metadata.name },
    { title: 'HOLDER', cell: (lease) => holderOf(lease) },
    { title: 'AGE', cell: ({ metadata }, nowMs) => formatAgeOf(metadata.creationTimestamp, nowMs) },
  ],
})

const podTemplateKind = servedKind<PodTemplateObject>({
  resource: 'podtemplates',
  verbs: writeVerbs,
  singular: 'podtemplate',
  shortNames: [],
  kind: 'PodTemplate',
  columns: [
    { title: 'NAME', cell: ({ metadata }) => metadata.name },
    { title: 'CONTAINERS', cell: (object) => containerTexts(object, 'name') },
    { title: 'IMAGES', cell: (object) => containerTexts(object, 'image') },
    { title: 'POD LABELS', cell: (object) => templateLabels(object) },
  ],
})

export function holderOf({ spec }: LeaseObject): string {
  const holder = spec?.['holderIdentity']
  return typeof holder === 'string' ? holder : ''
}

/** One field of each container (`pkg/printers/internalversion/printers.go`, layoutContainerCells, 1.36). */
export function containerTexts({ template }: PodTemplateObject, field: 'name' | 'image'): string {
  const spec = template?.['spec']
  const containers = isJsonObject(spec) ? spec['containers'] : undefined
  if (!Array.isArray(containers)) return ''
  return containers
    .map((container: Json) => (isJsonObject(container) ? container[field] : undefined))
    .filter((text) => typeof text === 'string')
    .join(',')
}

export function templateLabels({ template }: PodTemplateObject): string {
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
