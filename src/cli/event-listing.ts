import type { EventObject } from '../api/objects.ts'
import { formatAgeOf } from './age.ts'
import type { Listing } from './verb.ts'

export interface EventListingOptions {
  readonly withNamespace: boolean
  readonly nowMs: number
}

/** Events as `kubectl events` shows them, in the order in which they last happened. */
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

/** Oldest first. */
export function sortEvents(events: readonly EventObject[]): readonly EventObject[] {
  return [...events].sort((a, b) => Date.parse(a.lastTimestamp) - Date.parse(b.lastTimestamp))
}
