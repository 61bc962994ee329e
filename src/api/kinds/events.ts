import type { EventObject } from '../objects.ts'
import { formatAgeOf } from './age.ts'
import { servedKind } from './served-kind.ts'

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
