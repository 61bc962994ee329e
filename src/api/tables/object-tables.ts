import { formatAgeOf } from '../kinds/age.ts'
import { toCoreEvent } from '../kinds/regarding-events.ts'
import type { RegardingEventObject } from '../kinds/regarding-events.ts'
import type { ResourceObject } from '../resource.ts'
import type { ClaimObject, ConfigObject } from '../local-objects.ts'
import type { EventObject } from '../objects.ts'
import { apiTable } from './api-table.ts'
import type { ApiTable } from './api-table.ts'
import { ageColumn, nameColumn } from './common-columns.ts'

export const eventTable = apiTable<EventObject>('Event', [
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
export const regardingEventTable: ApiTable = {
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

export const configMapTable = apiTable<ConfigObject>('ConfigMap', [nameColumn(), dataColumn, ageColumn()])

export const secretTable = apiTable<ConfigObject>('Secret', [
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

export const claimTable = apiTable<ClaimObject>('PersistentVolumeClaim', [
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
