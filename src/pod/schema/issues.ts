/* Problems with fields, in the words of Kubernetes' field errors. */
import { isWholeQuantity } from '../values/quantity.ts'

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

export type NameRule = (value: string) => readonly string[]

/**
 * Problems of a document, in the words of Kubernetes' field errors (k8s.io/apimachinery/pkg/util/validation/field):
 * what is reported here is of the field at `path`, unless `near` says more precisely where it stands in the text.
 */
export class Issues {
  readonly path: FieldPath
  /** Those of the whole document. */
  readonly problems: FieldProblem[]

  constructor(path: FieldPath = [], problems: FieldProblem[] = []) {
    this.path = path
    this.problems = problems
  }

  /** Of a field below this one. */
  of(...steps: FieldPath): Issues {
    return new Issues([...this.path, ...steps], this.problems)
  }

  required(detail?: string, near?: Issues): void {
    this.#add(
      'FieldValueRequired',
      detail === undefined ? 'Required value' : `Required value: ${detail}`,
      near,
    )
  }

  invalid(value: unknown, detail: string, near?: Issues): void {
    this.#add('FieldValueInvalid', `Invalid value: ${JSON.stringify(value)}: ${detail}`, near)
  }

  duplicate(value: unknown): void {
    this.#add('FieldValueDuplicate', `Duplicate value: ${JSON.stringify(value)}`)
  }

  notFound(value: unknown): void {
    this.#add('FieldValueNotFound', `Not found: ${JSON.stringify(value)}`)
  }

  forbidden(detail: string, near?: Issues): void {
    this.#add('FieldValueForbidden', `Forbidden: ${detail}`, near)
  }

  /** One too many of several alternatives; nothing below it is checked. */
  oneTooMany(what: string, near?: Issues): void {
    const message = `Forbidden: may not specify more than 1 ${what}`
    this.#add('FieldValueForbidden', message, near, { isWhole: true })
  }

  unsupported(value: unknown, supported: readonly string[], near?: Issues): void {
    const words = supported.map((word) => JSON.stringify(word)).join(', ')
    const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${words}`
    this.#add('FieldValueNotSupported', message, near)
  }

  tooMany(count: number, most: number): void {
    this.#add('FieldValueTooMany', `Too many: ${count}: must have at most ${most} items`)
  }

  tooLong(maxBytes: number, near?: Issues): void {
    this.#add('FieldValueTooLong', `Too long: may not be more than ${maxBytes} bytes`, near)
  }

  /** Something that Kubernetes supports and podd doesn't. */
  refused(reason: string): void {
    this.#add('RefusedHere', reason.startsWith('not supported') ? reason : `not supported: ${reason}`)
  }

  /**
   * As the API server warns of it (pkg/api/pod/warnings.go, pkg/api/persistentvolumeclaim/util.go, 1.36); of an
   * emptyDir's limit podd alone does.
   */
  wholeBytes(amount: string | undefined): void {
    if (amount === undefined || isWholeQuantity(amount)) return
    this.warn(`fractional byte value ${JSON.stringify(amount)} is invalid, must be an integer`)
  }

  warn(message: string, hint?: string): void {
    this.problems.push({ severity: 'warning', path: this.path, message, ...(hint !== undefined && { hint }) })
  }

  /** Each problem that a rule for names finds in `value`. */
  name(value: string, rule: NameRule, near?: Issues): void {
    for (const detail of rule(value)) this.invalid(value, detail, near)
  }

  /** The same for a name that has to be there. */
  requiredName(value: string, rule: NameRule): void {
    if (value === '') this.required()
    else this.name(value, rule)
  }

  /** The same for one that may be left out, or empty. */
  optionalName(value: string | undefined, rule: NameRule): void {
    if (value !== undefined && value !== '') this.name(value, rule)
  }

  /** Problems of this map about its entry `key`, which locates them for the reader. */
  entry(key: string, value: string, rule: NameRule): void {
    this.name(value, rule, this.of(key))
  }

  /** An integer between the bounds, both included. */
  range(value: number | undefined, min: number, max = Number.POSITIVE_INFINITY): void {
    if (value === undefined || (value >= min && value <= max)) return
    const detail =
      max === Number.POSITIVE_INFINITY
        ? `must be greater than or equal to ${min}`
        : `must be between ${min} and ${max}, inclusive`
    this.invalid(value, detail)
  }

  /** Marks the second and later of equal values. */
  unique<T>(
    items: readonly T[],
    keyOf: (item: T) => string | undefined,
    issuesOf: (index: number) => Issues,
  ): void {
    const seen = new Set<string>()
    for (const [index, item] of items.entries()) {
      const key = keyOf(item)
      if (key === undefined || key === '') continue
      if (seen.has(key)) issuesOf(index).duplicate(key)
      seen.add(key)
    }
  }

  #add(reason: FaultReason, message: string, near?: Issues, more?: Pick<FieldProblem, 'isWhole'>): void {
    const place = near && { near: near.path }
    this.problems.push({ severity: 'error', path: this.path, reason, message, ...more, ...place })
  }
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
