import type {
  NamespaceObject,
  NodeObject,
  PriorityClassObject,
  RuntimeClassObject,
  ServiceAccountObject,
} from '../cluster-objects.ts'
import type { LeaseObject, PodTemplateObject } from '../kept-objects.ts'
import { containerTexts, holderOf, templateLabels } from '../kinds/kept-objects.ts'
import { internalAddress, nodeStatus } from '../kinds/cluster-kinds.ts'
import { apiTable } from './api-table.ts'
import { ageColumn, nameColumn } from './common-columns.ts'

export const namespaceTable = apiTable<NamespaceObject>('Namespace', [
  nameColumn(),
  { name: 'Status', description: 'Active or Terminating.', cell: ({ status }) => status.phase },
  ageColumn(),
])

export const serviceAccountTable = apiTable<ServiceAccountObject>('ServiceAccount', [
  nameColumn(),
  ageColumn(),
])

export const leaseTable = apiTable<LeaseObject>('Lease', [
  nameColumn(),
  {
    name: 'Holder',
    description: 'Who has the lease.',
    cell: (lease) => holderOf(lease),
  },
  ageColumn(),
])

export const podTemplateTable = apiTable<PodTemplateObject>('PodTemplate', [
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

export const nodeTable = apiTable<NodeObject>('Node', [
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

export const priorityClassTable = apiTable<PriorityClassObject>('PriorityClass', [
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

export const runtimeClassTable = apiTable<RuntimeClassObject>('RuntimeClass', [
  nameColumn(),
  { name: 'Handler', description: "The runtime's handler.", cell: ({ handler }) => handler },
  ageColumn(),
])
