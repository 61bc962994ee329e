/**
 * A duration as kubectl shows it: at most two units, fewer for longer ones (apimachinery's
 * `pkg/util/duration.HumanDuration`, 1.36).
 */
export function formatAge(ageMs: number): string {
  const seconds = Math.floor(ageMs / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return withRest(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return withRest(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (hours < 192) return withRest(days, 'd', hours % 24, 'h')
  if (days < 365 * 2) return `${days}d`
  const years = Math.floor(days / 365)
  return days < 365 * 8 ? withRest(years, 'y', days % 365, 'd') : `${years}y`
}

function withRest(count: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${count}${unit}` : `${count}${unit}${rest}${restUnit}`
}

/** The age of an RFC 3339 time; `<unknown>` where there is none. */
export function formatAgeOf(time: string | undefined, nowMs: number): string {
  const timeMs = time === undefined ? Number.NaN : Date.parse(time)
  return Number.isNaN(timeMs) ? '<unknown>' : formatAge(nowMs - timeMs)
}
