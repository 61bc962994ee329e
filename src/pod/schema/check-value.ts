import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import type { FieldPath, FieldProblem } from './field-path.ts'
import { formatFieldPath } from './field-path.ts'
import { nearestName } from '../values/nearest-name.ts'
import { parseQuantity } from '../values/quantity.ts'
import type { AnyType, Field, Fields, ScalarType } from './types.ts'

/** `Warn` takes unknown fields with a warning, except in a securityContext. */
export type FieldValidation = 'Strict' | 'Warn'

/** How many unknown names get a suggestion: to find one is the most expensive step. */
const maxGuesses = 100

/** What checking a value against its schema found. */
export interface CheckResult {
  /** The value without ignored fields, nulls and what asks for nothing; undefined when there are errors. */
  readonly value: Json | undefined
  readonly problems: readonly FieldProblem[]
  /** Fields that were dropped because they have no effect here. */
  readonly ignored: readonly { readonly path: FieldPath; readonly reason: string }[]
}

/** Checks a value against its schema strictly: names, types, allowed words, required and refused fields. */
export function checkValue(
  type: AnyType,
  value: Json,
  options: { readonly path?: FieldPath; readonly fieldValidation?: FieldValidation } = {},
): CheckResult {
  const check = new Check(options.fieldValidation ?? 'Strict')
  const checked = check.value(type, value, options.path ?? [])
  const failed = check.problems.some((problem) => problem.severity === 'error')
  return { value: failed ? undefined : checked, problems: check.problems, ignored: check.ignored }
}

class Check {
  readonly problems: FieldProblem[] = []
  readonly ignored: { readonly path: FieldPath; readonly reason: string }[] = []
  readonly #fieldValidation: FieldValidation

  constructor(fieldValidation: FieldValidation) {
    this.#fieldValidation = fieldValidation
  }

  value(type: AnyType, value: Json, path: FieldPath): Json {
    switch (type.kind) {
      case 'object':
        return isJsonObject(value) ? this.#object(type, value, path) : this.#wrong(value, 'an object', path)
      case 'list':
        if (!Array.isArray(value)) return this.#wrong(value, 'a list', path)
        return value.map((item, index) => this.value(type.item, item, [...path, index]))
      case 'map':
        if (!isJsonObject(value)) return this.#wrong(value, 'an object', path)
        return Object.fromEntries(
          Object.entries(value).flatMap(([key, item]) => {
            // In a map of strings null is the empty string, as Go's decoder has it; in others nothing.
            if (item === null) return type.value.kind === 'string' ? [[key, '']] : []
            return [[key, this.value(type.value, item, [...path, key])]]
          }),
        )
      default:
        return this.#scalar(type, value, path)
    }
  }

  #object(
    type: { readonly name: string; readonly fields: Fields },
    value: JsonObject,
    path: FieldPath,
  ): JsonObject {
    const { fields } = type
    const kept: [string, Json][] = []
    const meant = new Set<string | undefined>()
    for (const [key, item] of Object.entries(value)) {
      const field = Object.hasOwn(fields, key) ? fields[key] : undefined
      const fieldPath = [...path, key]
      if (field === undefined) meant.add(this.#unknown(key, Object.keys(fields), path))
      else if (!isAbsent(field, item) && this.#isTaken(field, item, fieldPath)) {
        kept.push([key, this.value(field.type, item, fieldPath)])
      }
    }
    for (const [key, field] of Object.entries(fields)) {
      if (field.presence !== 'required' || meant.has(key)) continue
      if (isAbsent(field, value[key] ?? null)) this.#error([...path, key], 'Required value')
    }
    return Object.fromEntries(kept)
  }

  /** Whether the field is one whose value is used. */
  #isTaken(field: Field, value: Json, path: FieldPath): boolean {
    const { support } = field
    switch (support.kind) {
      case 'supported':
        return true
      case 'ignored':
        this.ignored.push({ path, reason: support.reason })
        return false
      case 'refused': {
        if (support.harmless?.some((harmless) => sameData(harmless, value)) === true) return false
        const { reason } = support
        this.#error(path, reason.startsWith('not supported') ? reason : `not supported: ${reason}`)
        return false
      }
    }
  }

  /** Gives the name that was probably meant, so that this field isn't reported as missing as well. */
  #unknown(key: string, known: readonly string[], path: FieldPath): string | undefined {
    const nearest = this.problems.length < maxGuesses ? nearestName(key, known) : undefined
    const parent = path.length === 0 ? 'the document' : formatFieldPath(path)
    const guess = nearest === undefined ? '' : `; did you mean ${JSON.stringify(nearest)}?`
    const warn = this.#fieldValidation === 'Warn' && !path.includes('securityContext')
    this.problems.push({
      severity: warn ? 'warning' : 'error',
      path: [...path, key],
      message: `unknown field ${JSON.stringify(key)} in ${parent}${guess}`,
    })
    return warn ? undefined : nearest
  }

  #scalar(type: ScalarType<unknown>, value: Json, path: FieldPath): Json {
    switch (type.kind) {
      case 'any':
        return value
      case 'bool':
        return typeof value === 'boolean' ? value : this.#wrong(value, 'true or false', path)
      case 'int32':
        return this.#integer(value, 2 ** 31, path)
      case 'int64':
        return this.#integer(value, Number.MAX_SAFE_INTEGER, path)
      case 'intOrString':
        return typeof value === 'string' ? value : this.#integer(value, 2 ** 31, path)
      case 'quantity':
        return this.#quantity(value, path)
      case 'string':
        if (typeof value !== 'string') return this.#wrong(value, 'a string', path)
        if (type.values !== undefined && !type.values.includes(value)) {
          const words = type.values.map((word) => JSON.stringify(word)).join(', ')
          this.#error(path, `Unsupported value: ${JSON.stringify(value)}: supported values: ${words}`)
        }
        return value
    }
  }

  #integer(value: Json, limit: number, path: FieldPath): Json {
    if (typeof value !== 'number' || !Number.isInteger(value)) return this.#wrong(value, 'an integer', path)
    if (value >= limit || value < -limit) this.#error(path, `Invalid value: ${value}: out of range`)
    return value
  }

  #quantity(value: Json, path: FieldPath): Json {
    if (typeof value !== 'string' && typeof value !== 'number') {
      return this.#wrong(value, 'a quantity such as 500m or 128Mi', path)
    }
    if (parseQuantity(String(value)) === undefined) {
      this.#error(
        path,
        `Invalid value: ${JSON.stringify(value)}: quantities must match the regular expression ` +
          `'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
      )
    }
    return value
  }

  #wrong(value: Json, expected: string, path: FieldPath): Json {
    const isPlain = typeof value === 'number' || typeof value === 'boolean'
    this.problems.push({
      severity: 'error',
      path,
      message: `Invalid value: must be ${expected}, not ${describe(value)}`,
      ...(isPlain && expected === 'a string' && { hint: 'put quotes around it', wantsQuotes: true as const }),
    })
    return value
  }

  #error(path: FieldPath, message: string): void {
    this.problems.push({ severity: 'error', path, message })
  }
}

/** Kubernetes takes null, and an empty word where only certain words are allowed, for nothing at all. */
function isAbsent({ type, support }: Field, value: Json): boolean {
  if (value === null) return true
  if (value === '' && type.kind === 'string' && type.values?.includes('') === false) return true
  if (support.kind === 'supported') return false
  if (Array.isArray(value)) return value.length === 0
  return support.kind === 'ignored' && isJsonObject(value) && Object.keys(value).length === 0
}

function describe(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  switch (typeof value) {
    case 'string':
      return `the string ${JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)}`
    case 'number':
      return `the number ${value}`
    case 'boolean':
      return `the boolean ${value}`
    default:
      return 'an object'
  }
}
