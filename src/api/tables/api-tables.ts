import type { ResourceObject } from '../resource.ts'
import { apiTable } from './api-table.ts'
import type { ApiTable } from './api-table.ts'
import {
  leaseTable,
  namespaceTable,
  nodeTable,
  podTemplateTable,
  priorityClassTable,
  runtimeClassTable,
  serviceAccountTable,
} from './cluster-tables.ts'
import { nameColumn } from './common-columns.ts'
import { claimTable, configMapTable, eventTable, regardingEventTable, secretTable } from './object-tables.ts'
import { podTable } from './pod-table.ts'

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
