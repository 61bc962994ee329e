/* Problems with fields, in the words of Kubernetes' field errors. */
import { isWholeQuantity } from '../values/quantity.ts'
import { conforms } from './types.ts'
import type { AnyType, Infer } from './types.ts'

/** The path of a field in its document: keys and list indexes from the top. */
export type FieldPath = readonly (string | number)[]

/**
 * The type of an error: the `reason` of a cause in the API server's Status
 * (k8s.io/apimachinery/pkg/util/validation/field, ErrorType), and two of podd's own: an unknown field, and a value that
 * Kubernetes accepts and podd doesn't.
 */
export type FaultReason =
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueInvalid'
  | 'FieldValueNotFound'
  | 'FieldValueNotSupported'
  | 'FieldValueRequired'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'RefusedHere'
  | 'UnknownField'

/** A problem of one field, before its position in a file is known. */
export interface FieldProblem {
  readonly severity: 'error' | 'warning'
  readonly path: FieldPath
  /** Its position in the text, where `path` is not precise enough. */
  readonly near?: FieldPath | undefined
  /** Of an error about a field. */
  readonly reason?: FaultReason | undefined
  readonly message: string
  /** Whether it concerns the whole field: the API server reports nothing below it. */
  readonly isWhole?: true
  readonly hint?: string | undefined
  /** Whether the hint may be followed by the value as written, in quotes. */
  readonly wantsQuotes?: true
}

type NameRule = (value: string) => readonly string[]

/** Collects problems, in the words of Kubernetes' field errors (k8s.io/apimachinery/pkg/util/validation/field). */
export class Issues {
  readonly problems: FieldProblem[] = []

  required(path: FieldPath, detail?: string, near?: FieldPath): void {
    const message = detail === undefined ? 'Required value' : `Required value: ${detail}`
    this.#add(path, 'FieldValueRequired', message, near)
  }

  invalid(path: FieldPath, value: unknown, detail: string, near?: FieldPath): void {
    this.#add(path, 'FieldValueInvalid', `Invalid value: ${JSON.stringify(value)}: ${detail}`, near)
  }

  duplicate(path: FieldPath, value: unknown): void {
    this.#add(path, 'FieldValueDuplicate', `Duplicate value: ${JSON.stringify(value)}`)
  }

  notFound(path: FieldPath, value: unknown): void {
    this.#add(path, 'FieldValueNotFound', `Not found: ${JSON.stringify(value)}`)
  }

  forbidden(path: FieldPath, detail: string, near?: FieldPath): void {
    this.#add(path, 'FieldValueForbidden', `Forbidden: ${detail}`, near)
  }

  /** One too many of several alternatives; nothing below it is checked. */
  oneTooMany(path: FieldPath, what: string, near?: FieldPath): void {
    const message = `Forbidden: may not specify more than 1 ${what}`
    const reason = 'FieldValueForbidden'
    this.problems.push({ severity: 'error', path, reason, message, isWhole: true, ...(near && { near }) })
  }

  unsupported(path: FieldPath, value: unknown, supported: readonly string[], near?: FieldPath): void {
    const words = supported.map((word) => JSON.stringify(word)).join(', ')
    const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${words}`
    this.#add(path, 'FieldValueNotSupported', message, near)
  }

  tooMany(path: FieldPath, count: number, most: number): void {
    this.#add(path, 'FieldValueTooMany', `Too many: ${count}: must have at most ${most} items`)
  }

  tooLong(path: FieldPath, maxBytes: number, near?: FieldPath): void {
    this.#add(path, 'FieldValueTooLong', `Too long: may not be more than ${maxBytes} bytes`, near)
  }

  /** Something that Kubernetes supports and podd doesn't. */
  refused(path: FieldPath, reason: string): void {
    this.#add(path, 'RefusedHere', reason.startsWith('not supported') ? reason : `not supported: ${reason}`)
  }

  /**
   * As the API server warns of it (pkg/api/pod/warnings.go, pkg/api/persistentvolumeclaim/util.go, 1.36); of an
   * emptyDir's limit podd alone does.
   */
  wholeBytes(path: FieldPath, amount: string | undefined): void {
    if (amount === undefined || isWholeQuantity(amount)) return
    this.warn(path, `fractional byte value ${JSON.stringify(amount)} is invalid, must be an integer`)
  }

  warn(path: FieldPath, message: string): void {
    this.problems.push({ severity: 'warning', path, message })
  }

  /** Adds each problem that a rule for names finds in `value`. */
  name(path: FieldPath, value: string, rule: NameRule, near?: FieldPath): void {
    for (const detail of rule(value)) this.invalid(path, value, detail, near)
  }

  /** Problems of the map at `path` about its entry `key`, which locates them for the reader. */
  entry(path: FieldPath, key: string, value: string, rule: NameRule): void {
    this.name(path, value, rule, [...path, key])
  }

  /** An integer between the bounds, both included. */
  range(path: FieldPath, value: number | undefined, min: number, max = Number.POSITIVE_INFINITY): void {
    if (value === undefined || (value >= min && value <= max)) return
    const detail =
      max === Number.POSITIVE_INFINITY
        ? `must be greater than or equal to ${min}`
        : `must be between ${min} and ${max}, inclusive`
    this.invalid(path, value, detail)
  }

  /** Marks the second and later of equal values. */
  unique<T>(
    items: readonly T[],
    keyOf: (item: T) => string | undefined,
    pathOf: (index: number) => FieldPath,
  ): void {
    const seen = new Set<string>()
    for (const [index, item] of items.entries()) {
      const key = keyOf(item)
      if (key === undefined || key === '') continue
      if (seen.has(key)) this.duplicate(pathOf(index), key)
      seen.add(key)
    }
  }

  #add(path: FieldPath, reason: FaultReason, message: string, near?: FieldPath): void {
    this.problems.push({ severity: 'error', path, reason, message, ...(near && { near }) })
  }
}

/**
 * A field that the static type has only once it is supported: its rules apply as soon as the schema accepts it.
 */
export function fieldOf<T extends AnyType>(owner: object, key: string, type: T): Infer<T> | undefined {
  const value: unknown = new Map<string, unknown>(Object.entries(owner)).get(key)
  return value !== undefined && conforms(type, value) ? value : undefined
}

/** As Kubernetes writes it: `spec.containers[0].image`; keys of maps are in brackets. */
export function formatFieldPath(path: FieldPath): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`
      if (step.startsWith('[')) return step
      if (maps.has(path[index - 1])) return `[${step}]`
      return index === 0 ? step : `.${step}`
    })
    .join('')
}

/** The maps of the API: their children are keys, not fields. */
const maps: ReadonlySet<string | number | undefined> = new Set([
  'annotations',
  'binaryData',
  'data',
  'labels',
  'limits',
  'matchLabels',
  'nodeSelector',
  'podFixed',
  'requests',
  'stringData',
])
