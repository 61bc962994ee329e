import type { GarbageItem } from '../../../api/images.ts'
import type { NodeEvent } from '../../../pod/state/pod-event.ts'

/** The most names in one event. */
const toldNames = 10

/** The event of what was removed; undefined where nothing was. podd's own: the kubelet only logs it. */
export function garbageEvent(reason: string, items: readonly GarbageItem[]): NodeEvent | undefined {
  const removed = items.filter(({ outcome }) => outcome === 'removed')
  if (removed.length === 0) return undefined
  const names = removed.slice(0, toldNames).map(({ kind, name, message }) => `${kind} ${name} (${message})`)
  const more = removed.length > toldNames ? ` and ${removed.length - toldNames} more` : ''
  return { type: 'Normal', reason, message: `Removed ${names.join(', ')}${more}` }
}
