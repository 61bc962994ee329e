import { PoddError } from '../base/errors.ts'

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

/**
 * Milliseconds of a duration written as Go writes it (`300ms`, `1m30s`, `1.5h`, `0`; time.ParseDuration).
 * Throws PoddError BAD_DURATION.
 */
export function parseDuration(text: string): number {
  const match = /^([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/u.exec(text)
  if (text === '0') return 0
  if (match === null) {
    throw new PoddError('BAD_DURATION', `${JSON.stringify(text)} is not a duration`, {
      hint: 'Write a number with its unit, such as 500ms, 20s, 1m30s or 2h.',
    })
  }
  let totalMs = 0
  const [, sign = ''] = match
  for (const part of text.slice(sign.length).matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/guy)) {
    totalMs += Number(part[1]) * (unitMs[part[2] ?? ''] ?? Number.NaN)
  }
  return sign === '-' ? -totalMs : totalMs
}

/** The shortest Go spelling of whole milliseconds: `1m30s`, `20s`, `250ms`, `0s`. */
export function formatDuration(durationMs: number): string {
  if (durationMs === 0) return '0s'
  const parts: string[] = []
  let restMs = Math.abs(Math.round(durationMs))
  for (const unit of ['h', 'm', 's', 'ms']) {
    const ms = unitMs[unit] ?? 1
    const count = Math.floor(restMs / ms)
    restMs -= count * ms
    if (count > 0) parts.push(`${count}${unit}`)
  }
  return `${durationMs < 0 ? '-' : ''}${parts.join('')}`
}
