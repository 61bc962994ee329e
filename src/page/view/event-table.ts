import { formatAgeOf } from '../../api/served-kind.ts'
import type { EventObject, PodObject } from '../../api/resource.ts'
import { element } from './dom.ts'
import { podLink } from './pod-link.ts'
import { table } from './table.ts'
import type { Cell } from './table.ts'

/** The events; those of existing pods link to them. */
export function eventTable(
  events: readonly EventObject[],
  nowMs: number,
  pods: readonly PodObject[],
): HTMLElement {
  const columns = ['Last seen', 'Type', 'Reason', 'Object', 'Message'].map((title) => ({ title }))
  const rows = events.map((event): readonly Cell[] => {
    const { lastTimestamp, type, reason, message, count, involvedObject } = event
    const { kind, namespace, name, uid } = involvedObject
    const about = `${kind.toLowerCase()}/${name}`
    const isShown = kind === 'Pod' && pods.some(({ metadata }) => metadata.uid === uid)
    return [
      `${formatAgeOf(lastTimestamp, nowMs)}${count > 1 ? ` (x${count})` : ''}`,
      [element('span', { class: type === 'Warning' ? 'warn' : undefined }, type)],
      reason,
      isShown ? [element('a', { href: podLink(namespace, name) }, about)] : about,
      message,
    ]
  })
  return table('Events', columns, rows)
}
