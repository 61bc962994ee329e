import { isJsonObject } from '../base/json.ts'
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
import { toCoreEvent } from './derived-kinds.ts'
import type { RegardingEventObject } from './derived-kinds.ts'
import { summarizePod } from './pod-summary.ts'
import type { EventObject, PodObject, ResourceObject } from './resource.ts'
import { formatAge, formatAgeOf } from './served-kind.ts'
import { containerTexts, holderOf, internalAddress, nodeStatus, templateLabels } from './served-kinds.ts'

/** meta/v1 TableColumnDefinition. */
export interface TableColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly format: '' | 'name'
  readonly description: string
  /** 1: only with `-o wide`. */
  readonly priority: 0 | 1
}

export type TableCell = string | number | boolean

/** meta/v1 TableRowCondition. */
interface RowCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** How the API server prints objects of one kind (`pkg/printers/internalversion/printers.go`, 1.36). */
interface ApiTable {
  readonly columns: readonly TableColumn[]
  /** A cell for each column. */
  cells(object: ResourceObject, nowMs: number): readonly TableCell[]
  conditions(object: ResourceObject): readonly RowCondition[]
}

/** A column with what stands in it. */
interface ColumnEntry<T> {
  readonly name: string
  readonly description: string
  /** `string` unless said. */
  readonly type?: TableColumn['type']
  readonly wide?: boolean
  cell(object: T, nowMs: number): TableCell
}

function apiTable<T extends ResourceObject>(
  kind: string,
  entries: readonly ColumnEntry<T>[],
  conditions: (object: T) => readonly RowCondition[] = () => [],
): ApiTable {
  const isOfKind = (object: ResourceObject): object is T => object.kind === kind
  return {
    columns: entries.map(({ name, type = 'string', description, wide }) => ({
      name,
      type,
      format: name === 'Name' ? 'name' : '',
      description,
      priority: wide === true ? 1 : 0,
    })),
    cells: (object, nowMs) => (isOfKind(object) ? entries.map((entry) => entry.cell(object, nowMs)) : []),
    conditions: (object) => (isOfKind(object) ? conditions(object) : []),
  }
}

function nameColumn(): ColumnEntry<ResourceObject> {
  return {
    name: 'Name',
    description: "The object's name, unique among those of its kind in its namespace.",
    cell: ({ metadata }) => metadata.name,
  }
}

function ageColumn(): ColumnEntry<ResourceObject> {
  return {
    name: 'Age',
    description: 'The time since the object was created.',
    cell: ({ metadata }, nowMs) => formatAgeOf(metadata.creationTimestamp, nowMs),
  }
}

const podTable = apiTable<PodObject>(
  'Pod',
  [
    nameColumn(),
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
    ageColumn(),
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
      cell: ({ spec }) => (typeof spec['nodeName'] === 'string' ? spec['nodeName'] : '<none>'),
    },
    {
      name: 'Nominated Node',
      description: 'Empty: podd schedules no pods.',
      wide: true,
      cell: () => '<none>',
    },
    {
      name: 'Readiness Gates',
      description: 'How many of the readiness gates are met, of how many.',
      wide: true,
      cell: (pod) => summarizeGates(pod),
    },
  ],
  ({ status }) => completed[status.phase] ?? [],
)

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

const eventTable = apiTable<EventObject>('Event', [
  {
    name: 'Last Seen',
    description: 'The time since it last happened.',
    cell: ({ lastTimestamp }, nowMs) => formatAgeOf(lastTimestamp, nowMs),
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
])

/** Events in the form of events.k8s.io/v1 have the same table. */
const regardingEventTable: ApiTable = {
  ...eventTable,
  cells: (object, nowMs) => (isRegarding(object) ? eventTable.cells(toCoreEvent(object), nowMs) : []),
}

function isRegarding(object: ResourceObject): object is RegardingEventObject {
  return object.kind === 'Event' && 'regarding' in object
}

const dataColumn = {
  name: 'Data',
  description: 'How many entries it has.',
  cell: ({ data = {}, binaryData = {} }: ConfigObject) =>
    Object.keys(data).length + Object.keys(binaryData).length,
}

const configMapTable = apiTable<ConfigObject>('ConfigMap', [nameColumn(), dataColumn, ageColumn()])

const secretTable = apiTable<ConfigObject>('Secret', [
  nameColumn(),
  { name: 'Type', description: 'What the Secret is for.', cell: ({ type }) => type ?? '' },
  dataColumn,
  ageColumn(),
])

const shortModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}

const claimTable = apiTable<ClaimObject>('PersistentVolumeClaim', [
  nameColumn(),
  { name: 'Status', description: "The claim's phase.", cell: ({ status }) => status.phase },
  {
    name: 'Volume',
    description: 'The volume that it is bound to.',
    cell: ({ spec }) => spec?.volumeName ?? '',
  },
  {
    name: 'Capacity',
    description: 'How much the volume holds.',
    cell: ({ spec, status }) => (spec?.volumeName === undefined ? '' : (status.capacity?.storage ?? '')),
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
  { name: 'VolumeAttributesClass', description: 'Not used by podd.', cell: () => '<unset>' },
  ageColumn(),
  {
    name: 'VolumeMode',
    description: 'Filesystem or Block.',
    wide: true,
    cell: ({ spec }) => spec?.volumeMode ?? '<unset>',
  },
])

const namespaceTable = apiTable<NamespaceObject>('Namespace', [
  nameColumn(),
  { name: 'Status', description: 'Active or Terminating.', cell: ({ status }) => status.phase },
  ageColumn(),
])

const serviceAccountTable = apiTable<ServiceAccountObject>('ServiceAccount', [nameColumn(), ageColumn()])

const leaseTable = apiTable<LeaseObject>('Lease', [
  nameColumn(),
  {
    name: 'Holder',
    description: 'Who has the lease.',
    cell: (lease) => holderOf(lease),
  },
  ageColumn(),
])

const podTemplateTable = apiTable<PodTemplateObject>('PodTemplate', [
  nameColumn(),
  {
    name: 'Containers',
    description: 'The names of the containers.',
    cell: (object) => containerTexts(object, 'name'),
  },
  { name: 'Images', description: 'Their images.', cell: (object) => containerTexts(object, 'image') },
  { name: 'Pod Labels', description: 'The labels of its pods.', cell: (object) => templateLabels(object) },
])

const roleLabel = 'node-role.kubernetes.io/'

const nodeTable = apiTable<NodeObject>('Node', [
  nameColumn(),
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
  ageColumn(),
  {
    name: 'Version',
    description: 'The Kubernetes release whose behaviour podd matches.',
    cell: ({ status }) => status.nodeInfo['kubeletVersion'] ?? '',
  },
  {
    name: 'Internal-IP',
    description: "The host's own address.",
    wide: true,
    cell: (node) => internalAddress(node),
  },
  { name: 'External-IP', description: 'Not known to podd.', wide: true, cell: () => '<none>' },
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
])

const priorityClassTable = apiTable<PriorityClassObject>('PriorityClass', [
  nameColumn(),
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
  ageColumn(),
  {
    name: 'PreemptionPolicy',
    description: 'Whether pods of the class may take the place of others.',
    cell: ({ preemptionPolicy }) => preemptionPolicy,
  },
])

const runtimeClassTable = apiTable<RuntimeClassObject>('RuntimeClass', [
  nameColumn(),
  { name: 'Handler', description: "The runtime's handler.", cell: ({ handler }) => handler },
  ageColumn(),
])

const tables: Readonly<Record<string, ApiTable>> = {
  ConfigMap: configMapTable,
  Event: eventTable,
  Lease: leaseTable,
  Namespace: namespaceTable,
  Node: nodeTable,
  PersistentVolumeClaim: claimTable,
  Pod: podTable,
  PodTemplate: podTemplateTable,
  PriorityClass: priorityClassTable,
  RuntimeClass: runtimeClassTable,
  Secret: secretTable,
  ServiceAccount: serviceAccountTable,
}

/** The table of a kind; for one without a table, only names and times, as in an API server. */
export function tableOf({
  apiVersion,
  kind,
}: {
  readonly apiVersion: string
  readonly kind: string
}): ApiTable {
  if (apiVersion === 'events.k8s.io/v1') return regardingEventTable
  const known = Object.hasOwn(tables, kind) ? tables[kind] : undefined
  return (
    known ??
    apiTable<ResourceObject>(kind, [
      nameColumn(),
      {
        name: 'Created At',
        type: 'date',
        description: 'When the object was created.',
        cell: ({ metadata }) => metadata.creationTimestamp ?? '',
      },
    ])
  )
}
