import type {
  NamespaceObject,
  NodeObject,
  PriorityClassObject,
  RuntimeClassObject,
  ServiceAccountObject,
} from '../cluster-objects.ts'
import { formatAgeOf } from './age.ts'
import { readVerbs, writeVerbs } from './api-resource.ts'
import { servedKind } from './served-kind.ts'

const nameColumn = {
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

export const namespaceKind = servedKind<NamespaceObject>({
  resource: 'namespaces',
  singular: 'namespace',
  shortNames: ['ns'],
  kind: 'Namespace',
  // Deleted only one by one, as a namespace is deleted with its content.
  verbs: writeVerbs.filter((verb) => verb !== 'deletecollection'),
  namespaced: false,
  fields: { 'status.phase': ({ status }) => status.phase },
  columns: [nameColumn, { title: 'STATUS', cell: ({ status }) => status.phase }, ageColumn],
})

export const serviceAccountKind = servedKind<ServiceAccountObject>({
  resource: 'serviceaccounts',
  singular: 'serviceaccount',
  shortNames: ['sa'],
  kind: 'ServiceAccount',
  columns: [nameColumn, ageColumn],
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
    nameColumn,
    { title: 'STATUS', cell: (node) => nodeStatus(node) },
    ageColumn,
    { title: 'VERSION', cell: ({ status }) => status.nodeInfo['kubeletVersion'] ?? '' },
    { title: 'INTERNAL-IP', wide: true, cell: (node) => internalAddress(node) },
  ],
})

export const priorityClassKind = servedKind<PriorityClassObject>({
  resource: 'priorityclasses',
  singular: 'priorityclass',
  shortNames: ['pc'],
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  verbs: writeVerbs,
  namespaced: false,
  columns: [
    nameColumn,
    { title: 'VALUE', cell: ({ value }) => String(value) },
    { title: 'GLOBAL-DEFAULT', cell: ({ globalDefault }) => String(globalDefault === true) },
    ageColumn,
  ],
})

export const runtimeClassKind = servedKind<RuntimeClassObject>({
  resource: 'runtimeclasses',
  singular: 'runtimeclass',
  shortNames: [],
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  verbs: writeVerbs,
  namespaced: false,
  columns: [nameColumn, { title: 'HANDLER', cell: ({ handler }) => handler }, ageColumn],
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
