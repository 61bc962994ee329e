import type { EventObject } from '../../api/objects.ts'
import { formatAgeOf } from './age.ts'
import type { Listing } from '../arguments/verb.ts'

export interface EventListingOptions {
  readonly withNamespace: boolean
  readonly nowMs: number
}

/** Events as `kubectl events` shows them, in the order given: podd's is that in which they last happened, whatever the clock said. */
export function listEvents(events: readonly EventObject[], options: EventListingOptions): Listing {
  const { withNamespace, nowMs } = options
  return {
    columns: [
      ...(withNamespace ? [{ title: 'NAMESPACE' }] : []),
      { title: 'LAST SEEN' },
      { title: 'TYPE' },
      { title: 'REASON' },
      { title: 'OBJECT' },
      { title: 'MESSAGE' },
    ],
    rows: events.map((event) => [
      ...(withNamespace ? [event.metadata.namespace] : []),
      formatSeen(event, nowMs),
      event.type,
      event.reason,
      `${event.involvedObject.kind}/${event.involvedObject.name}`,
      event.message.trim(),
    ]),
    objects: events,
    listKind: 'EventList',
  }
}

/** `5s`, or `5s (x3 over 2m)` for one that came again. */
export function formatSeen(event: EventObject, nowMs: number): string {
  const last = formatAgeOf(event.lastTimestamp, nowMs)
  return event.count > 1 ? `${last} (x${event.count} over ${formatAgeOf(event.firstTimestamp, nowMs)})` : last
}
