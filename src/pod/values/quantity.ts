/**
 * Kubernetes quantities (`500m`, `128Mi`, `1e3`), exact: in billionths, the API's finest unit. Source:
 * k8s.io/apimachinery/pkg/api/resource/quantity.go (1.36).
 */
export interface Quantity {
  /** The value times 10^9. */
  readonly nanos: bigint
  /** The format of suffixes in which it was written. */
  readonly format: 'BinarySI' | 'DecimalSI' | 'DecimalExponent'
}

const nano = 1_000_000_000n
/** The largest value; larger ones are clamped, as in Kubernetes. */
const maxNanos = (2n ** 63n - 1n) * nano

const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'] as const
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const

const grammar = /^([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,4}))?$/

/** Reads a quantity; undefined where the text isn't one. More digits than nano are rounded up, away from zero. */
export function parseQuantity(text: string): Quantity | undefined {
  const match = grammar.exec(text)
  if (match === null) return undefined
  const [, sign, whole = '', fraction = '', binary, decimal, exponent] = match
  // A point alone is zero there, too.
  if (whole === '' && fraction === '' && !text.includes('.')) return undefined
  if (whole.length + fraction.length > 400) return undefined
  const digits = BigInt(`${whole}${fraction}` || '0')
  let numerator = digits
  let powerOfTen = 9 - fraction.length
  let format: Quantity['format'] = 'DecimalSI'
  if (binary !== undefined) {
    numerator *= 1024n ** BigInt(binarySuffixes.findIndex((suffix) => suffix === binary))
    format = 'BinarySI'
  } else if (exponent !== undefined) {
    powerOfTen += Number(exponent)
    format = 'DecimalExponent'
  } else if (decimal !== undefined) {
    powerOfTen += 3 * (decimalSuffixes.findIndex((suffix) => suffix === decimal) - 3)
  }
  const magnitude = scale(numerator, powerOfTen)
  const capped = magnitude > maxNanos ? maxNanos : magnitude
  return { nanos: sign === '-' ? -capped : capped, format }
}

/** `value` × 10^power, rounded up. A tiny non-zero value stays non-zero. */
function scale(value: bigint, power: number): bigint {
  if (value === 0n) return 0n
  // Beyond this everything is over the cap, or rounds up to one billionth.
  if (power > 60) return maxNanos + 1n
  if (power >= 0) return value * 10n ** BigInt(power)
  return power < -500 ? 1n : divideUp(value, 10n ** BigInt(-power))
}

/** Division rounded away from zero. */
function divideUp(value: bigint, by: bigint): bigint {
  const quotient = value / by
  if (value % by === 0n) return quotient
  return value < 0n ? quotient - 1n : quotient + 1n
}

/** The canonical text: no fraction, the largest suffix that loses nothing. */
export function formatQuantity({ nanos, format }: Quantity): string {
  if (nanos === 0n) return '0'
  if (format === 'BinarySI' && nanos % nano === 0n) {
    const value = nanos / nano
    if (value <= -1024n || value >= 1024n) {
      const [mantissa, power] = divideOut(value, 1024n, binarySuffixes.length - 1)
      return `${mantissa}${binarySuffixes[power] ?? ''}`
    }
  }
  const [mantissa, power] = divideOut(nanos, 1000n, decimalSuffixes.length - 1)
  if (format !== 'DecimalExponent') return `${mantissa}${decimalSuffixes[power] ?? ''}`
  return power === 3 ? String(mantissa) : `${mantissa}e${3 * (power - 3)}`
}

function divideOut(value: bigint, by: bigint, maxPower: number): readonly [bigint, number] {
  let mantissa = value
  let power = 0
  while (power < maxPower && mantissa % by === 0n) {
    mantissa /= by
    power += 1
  }
  return [mantissa, power]
}

/** The canonical text of a quantity's text; undefined where it isn't one. */
export function canonicalQuantity(text: string): string | undefined {
  const parsed = parseQuantity(text)
  return parsed === undefined ? undefined : formatQuantity(parsed)
}

/**
 * The text of a quantity as it is written in a document, with spaces around it at most: the API server trims the JSON text,
 * in which tabs and line ends are escaped (Quantity.UnmarshalJSON, k8s.io/apimachinery/pkg/api/resource, 1.36).
 */
export function writtenQuantity(value: string | number | boolean): string {
  const text = String(value)
  return /[\t\n\v\f\r]/.test(text) ? text : text.trim()
}

/** Billionths of a text that was checked before (as all in a decoded Pod is); 0 for anything else. */
export function quantityNanos(text: string): bigint {
  return parseQuantity(text)?.nanos ?? 0n
}

/** Negative, zero or positive, as `a` is less than, equal to or greater than `b`. Takes checked text. */
export function compareQuantities(a: string, b: string): -1 | 0 | 1 {
  const difference = quantityNanos(a) - quantityNanos(b)
  if (difference === 0n) return 0
  return difference < 0n ? -1 : 1
}

/** The sum of checked texts, in the format of the first. */
export function addQuantities(...texts: readonly string[]): string {
  const format = parseQuantity(texts[0] ?? '0')?.format ?? 'DecimalSI'
  const nanos = texts.reduce((sum, text) => sum + quantityNanos(text), 0n)
  return formatQuantity({ nanos, format })
}

/** Whole units (bytes, cores) of a checked text, rounded up as Kubernetes' `Value()` does. */
export function quantityValue(text: string): number {
  return Number(divideUp(quantityNanos(text), nano))
}

/** Whether a checked text is a whole number of units. */
export function isWholeQuantity(text: string): boolean {
  return quantityNanos(text) % nano === 0n
}

/** Thousandths of a checked text, rounded up as Kubernetes' `MilliValue()` does. */
export function quantityMilliValue(text: string): number {
  return Number(divideUp(quantityNanos(text), nano / 1000n))
}
