import type { EventObject, ResourceObject } from './resource.ts'
import { servedKind, withCell } from './served-kind.ts'
import type { RoutedKind } from './served-kind.ts'
import { eventColumns } from './served-kinds.ts'

/** events.k8s.io/v1 Event: what core/v1 calls Event, under other names. */
interface RegardingEventObject {
  readonly apiVersion: 'events.k8s.io/v1'
  readonly kind: 'Event'
  readonly metadata: EventObject['metadata']
  readonly eventTime: null
  readonly reportingController: string
  readonly reportingInstance: string
  readonly reason: string
  readonly regarding: EventObject['involvedObject']
  readonly note: string
  readonly type: EventObject['type']
  readonly deprecatedSource: EventObject['source']
  readonly deprecatedFirstTimestamp: string
  readonly deprecatedLastTimestamp: string
  readonly deprecatedCount: number
}

/** The field labels of `pkg/apis/events/v1/conversion.go`, 1.36. */
export const regardingEventKind = servedKind<RegardingEventObject>({
  resource: 'events',
  shortNames: ['ev'],
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  expires: true,
  fields: {
    'regarding.kind': ({ regarding }) => regarding.kind,
    'regarding.namespace': ({ regarding }) => regarding.namespace,
    'regarding.name': ({ regarding }) => regarding.name,
    'regarding.uid': ({ regarding }) => regarding.uid,
    'regarding.apiVersion': ({ regarding }) => regarding.apiVersion ?? '',
    'regarding.resourceVersion': () => '',
    'regarding.fieldPath': ({ regarding }) => regarding.fieldPath ?? '',
    reason: ({ reason }) => reason,
    reportingController: ({ reportingController }) => reportingController,
    type: ({ type }) => type,
  },
  columns: eventColumns.map((column) =>
    withCell(column, (event, nowMs) => column.cell(toCoreEvent(event), nowMs)),
  ),
})

/** The event in the form of events.k8s.io/v1; anything else as it is. */
export function toRegardingEvent(object: ResourceObject): ResourceObject {
  if (!isEvent(object)) return object
  const { metadata, involvedObject: regarding, reason, message: note, type, source } = object
  const event: RegardingEventObject = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata,
    eventTime: null,
    reportingController: object.reportingComponent,
    reportingInstance: object.reportingInstance,
    reason,
    regarding,
    note,
    type,
    deprecatedSource: source,
    deprecatedFirstTimestamp: object.firstTimestamp,
    deprecatedLastTimestamp: object.lastTimestamp,
    deprecatedCount: object.count,
  }
  return event
}

/** The other way round. */
function toCoreEvent(event: RegardingEventObject): EventObject {
  const { metadata, regarding: involvedObject, reason, note: message, type, deprecatedSource: source } = event
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata,
    involvedObject,
    reason,
    message,
    type,
    source,
    reportingComponent: source.component,
    reportingInstance: source.host,
    firstTimestamp: event.deprecatedFirstTimestamp,
    lastTimestamp: event.deprecatedLastTimestamp,
    count: event.deprecatedCount,
  }
}

function isEvent(object: ResourceObject): object is EventObject {
  return object.kind === 'Event' && 'involvedObject' in object
}

/** Kinds that are served and have no objects of their own. */
export const derivedKinds: readonly RoutedKind[] = [regardingEventKind]
