/* A value held against a schema, in the API server's words. */
import { isJsonObject, sameData } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { nearestName } from '../../base/text.ts'
import { parseQuantity, writtenQuantity } from '../values/quantity.ts'
import { formatFieldPath } from './issues.ts'
import type { FaultReason, FieldPath, FieldProblem } from './issues.ts'
import type { AnyType, Field, Fields, ScalarType } from './types.ts'

/** `Warn` takes unknown fields with a warning, except in a securityContext. */
export type FieldValidation = 'Strict' | 'Warn'

/** How many unknown names get a suggestion: finding one is the most expensive step. */
const maxGuesses = 100

/** The result of checking a value against its schema. */
export interface CheckResult {
  /** The value without ignored fields, nulls and harmless values of refused fields; undefined when there are errors. */
  readonly value: Json | undefined
  /**
   * The input of validation: `value` with its ignored fields. Where there are errors, unreadable fields are left out,
   * or have their zero value where required, so that everything else is validated at once.
   */
  readonly whole: Json
  readonly problems: readonly FieldProblem[]
  /** Fields that an unknown name was probably meant for; `whole` has them with their zero value. */
  readonly meant: readonly FieldPath[]
  /** Fields that were dropped as they have no effect. */
  readonly ignored: readonly { readonly path: FieldPath; readonly reason: string }[]
}

/** Checks a value against its schema strictly: names, types, allowed words, required and refused fields. */
export function checkValue(
  type: AnyType,
  value: Json,
  options: {
    readonly path?: FieldPath
    readonly fieldValidation?: FieldValidation
    /** Where it stands in a larger document: messages name the whole path. */
    readonly below?: FieldPath | undefined
  } = {},
): CheckResult {
  const check = new Check(options.fieldValidation ?? 'Strict', options.below ?? [])
  const whole = check.value(type, value, options.path ?? []) ?? zeroOf(type)
  const failed = check.problems.some((problem) => problem.severity === 'error')
  return {
    value: failed ? undefined : check.ignored.length === 0 ? whole : dropIgnored(type, whole),
    whole,
    problems: check.problems,
    meant: check.meant,
    ignored: check.ignored,
  }
}

class Check {
  readonly problems: FieldProblem[] = []
  readonly meant: FieldPath[] = []
  readonly ignored: { readonly path: FieldPath; readonly reason: string }[] = []
  readonly #fieldValidation: FieldValidation

  readonly #below: FieldPath

  constructor(fieldValidation: FieldValidation, below: FieldPath) {
    this.#fieldValidation = fieldValidation
    this.#below = below
  }

  /** Undefined where it can't be used. */
  value(type: AnyType, value: Json, path: FieldPath): Json | undefined {
    switch (type.kind) {
      case 'object':
        return isJsonObject(value) ? this.#object(type, value, path) : this.#wrong(value, 'an object', path)
      case 'list':
        if (!Array.isArray(value)) return this.#wrong(value, 'a list', path)
        return value.map((item: Json, index) => this.#item(type.item, item, [...path, index]))
      case 'map':
        if (!isJsonObject(value)) return this.#wrong(value, 'an object', path)
        return Object.fromEntries(
          Object.entries(value).map(([key, item]) => [key, this.#item(type.value, item, [...path, key])]),
        )
      default:
        return this.#scalar(type, value, path)
    }
  }

  /** In a list or a map null is the zero value, as in Go's decoder; the zero value also replaces an unusable item. */
  #item(type: AnyType, value: Json, path: FieldPath): Json {
    const given = value === null && type.kind !== 'any' ? emptyValues[type.kind] : value
    return this.value(type, given, path) ?? zeroOf(type)
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
      if (field === undefined) meant.add(this.#unknown(key, Object.keys(fields), value, path))
      else if (!isAbsent(field, item)) {
        const checked = this.#field(field, item, fieldPath)
        if (checked !== undefined) kept.push([key, checked])
        else if (field.presence === 'required' && field.support.kind !== 'refused')
          kept.push([key, zeroOf(field.type)])
      }
    }
    for (const [key, field] of Object.entries(fields)) {
      if (field.presence !== 'required' || !isAbsent(field, value[key] ?? null)) continue
      if (field.absentIsZero === true || meant.has(key)) kept.push([key, zeroOf(field.type)])
      else kept.push([key, this.#missing(field.type, [...path, key])])
    }
    return Object.fromEntries(kept)
  }

  /** Reports the required fields of an absent object. */
  #missing(type: AnyType, path: FieldPath): Json {
    if (type.kind === 'object') return this.#object(type, {}, path)
    this.#error(path, 'FieldValueRequired', 'Required value')
    return zeroOf(type)
  }

  /**
   * The value of a field; undefined for none. Of a refused one types and names are checked, and no values: it has to go
   * whatever they are.
   */
  #field(field: Field, value: Json, path: FieldPath): Json | undefined {
    const { support } = field
    switch (support.kind) {
      case 'supported':
        return this.value(field.type, value, path)
      case 'ignored':
        this.ignored.push({ path, reason: support.reason })
        return this.value(field.type, value, path)
      case 'refused': {
        if (support.harmless?.some((harmless) => sameData(harmless, value)) === true) return undefined
        const { reason } = support
        const message = reason.startsWith('not supported') ? reason : `not supported: ${reason}`
        this.#error(path, 'RefusedHere', message)
        // Kubernetes couldn't read it either.
        const inner = new Check(this.#fieldValidation, this.#below)
        const checked = inner.value(field.type, value, path)
        this.problems.push(...inner.problems.filter((problem) => isUnreadable(problem)))
        return checked
      }
    }
  }

  /** Returns the name that was probably meant, so that this field isn't also reported as missing. */
  #unknown(key: string, known: readonly string[], owner: JsonObject, path: FieldPath): string | undefined {
    const nearest = this.problems.length < maxGuesses ? nearestName(key, known) : undefined
    const owners = [...this.#below, ...path]
    const parent = owners.length === 0 ? 'the document' : formatFieldPath(owners)
    const guess = nearest === undefined ? '' : `; did you mean ${JSON.stringify(nearest)}?`
    const warn = this.#fieldValidation === 'Warn' && !path.includes('securityContext')
    this.problems.push({
      severity: warn ? 'warning' : 'error',
      path: [...path, key],
      reason: 'UnknownField',
      message: `unknown field ${JSON.stringify(key)} in ${parent}${guess}`,
    })
    if (warn) return undefined
    if (nearest !== undefined && !Object.hasOwn(owner, nearest)) this.meant.push([...path, nearest])
    return nearest
  }

  #scalar(type: ScalarType<unknown>, value: Json, path: FieldPath): Json | undefined {
    switch (type.kind) {
      case 'any':
        return value
      case 'bool':
        return typeof value === 'boolean' ? value : this.#wrong(value, 'true or false', path)
      case 'int32':
        return this.#integer(value, 2 ** 31, path)
      case 'int64':
        return this.#integer(value, 2 ** 63, path)
      case 'intOrString':
        return typeof value === 'string' ? value : this.#integer(value, 2 ** 31, path)
      case 'quantity':
        return this.#quantity(value, path)
      case 'string':
        if (typeof value !== 'string') return this.#wrong(value, 'a string', path)
        if (type.format === 'date-time' && !isDateTime(value)) return this.#wrong(value, 'a time', path)
        if (type.values === undefined || type.values.includes(value)) return value
        return this.#unsupported(value, type.values, path)
    }
  }

  #unsupported(value: string, allowed: readonly string[], path: FieldPath): undefined {
    const words = allowed.map((word) => JSON.stringify(word)).join(', ')
    const nearest = nearestWords(value, allowed)
    this.problems.push({
      severity: 'error',
      path,
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${words}`,
      ...(nearest.length > 0 && { hint: `did you mean ${nearest.join(' or ')}?` }),
    })
  }

  #integer(value: Json, limit: number, path: FieldPath): Json | undefined {
    if (typeof value !== 'number' || !Number.isInteger(value)) return this.#wrong(value, 'an integer', path)
    if (value < limit && value >= -limit) return value
    return this.#error(path, 'FieldValueTypeInvalid', `Invalid value: ${value}: out of range`)
  }

  #quantity(value: Json, path: FieldPath): Json | undefined {
    if (typeof value !== 'string' && typeof value !== 'number') {
      return this.#wrong(value, 'a quantity such as 500m or 128Mi', path)
    }
    if (parseQuantity(writtenQuantity(value)) !== undefined) return value
    return this.#error(
      path,
      'FieldValueTypeInvalid',
      `Invalid value: ${JSON.stringify(value)}: quantities must match the regular expression ` +
        `'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
    )
  }

  #wrong(value: Json, expected: string, path: FieldPath): undefined {
    const isPlain = typeof value === 'number' || typeof value === 'boolean'
    this.problems.push({
      severity: 'error',
      path,
      reason: 'FieldValueTypeInvalid',
      message: `Invalid value: must be ${expected}, not ${describe(value)}`,
      ...(isPlain && expected === 'a string' && { hint: 'put quotes around it', wantsQuotes: true as const }),
    })
  }

  #error(path: FieldPath, reason: FaultReason, message: string): undefined {
    this.problems.push({ severity: 'error', path, reason, message })
  }
}

/** Kubernetes treats null, and an empty string for an enumeration, as absent. */
function isAbsent({ type, support }: Field, value: Json): boolean {
  if (value === null) return true
  if (value === '' && type.kind === 'string') {
    return type.isPointer !== true && type.values?.includes('') === false
  }
  if (support.kind === 'supported') return false
  if (Array.isArray(value)) return value.length === 0 && (type.kind === 'list' || type.kind === 'any')
  if (support.kind !== 'ignored' || !isJsonObject(value) || Object.keys(value).length > 0) return false
  return type.kind === 'object' || type.kind === 'map' || type.kind === 'any'
}

/** Two of them at the most; a long list of words needs it most. */
function nearestWords(value: string, allowed: readonly string[]): readonly string[] {
  if (allowed.length === 1) return []
  const first = nearestName(value, allowed) ?? allowed.find((word) => isWithin(value, word))
  if (first === undefined) return []
  const second = nearestName(
    value,
    allowed.filter((word) => word !== first),
  )
  return [first, ...(second === undefined ? [] : [second])].map((word) => JSON.stringify(word))
}

/** `TERM` in `SIGTERM`. */
function isWithin(value: string, word: string): boolean {
  return value.length > 2 && word.toLowerCase().endsWith(value.toLowerCase())
}

function isUnreadable({ reason }: FieldProblem): boolean {
  return reason === 'FieldValueTypeInvalid' || reason === 'UnknownField'
}

/** The format of Go's `time.RFC3339`. */
function isDateTime(text: string): boolean {
  const isShaped = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(text)
  return isShaped && !Number.isNaN(Date.parse(text.replace(',', '.')))
}

/** The value without fields of no effect. */
function dropIgnored(type: AnyType, value: Json): Json {
  switch (type.kind) {
    case 'object': {
      if (!isJsonObject(value)) return value
      const fields: Fields = type.fields
      return Object.fromEntries(
        Object.entries(value).flatMap(([key, item]) => {
          const field = fields[key]
          const isKept = field !== undefined && field.support.kind !== 'ignored'
          return isKept ? [[key, dropIgnored(field.type, item)]] : []
        }),
      )
    }
    case 'list':
      return Array.isArray(value) ? value.map((item: Json) => dropIgnored(type.item, item)) : value
    default:
      return value
  }
}

function describe(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string')
    return `the string ${JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)}`
  return typeof value === 'object' ? 'an object' : `the ${typeof value} ${value}`
}

/** The value that Go's decoder produces for null in a list or a map. */
const emptyValues: Readonly<Record<AnyType['kind'], Json>> = {
  object: {},
  map: {},
  list: [],
  bool: false,
  int32: 0,
  int64: 0,
  intOrString: 0,
  quantity: '0',
  string: '',
  any: null,
}

/** A minimal value that the type's schema accepts, in place of an unusable one. */
function zeroOf(type: AnyType): Json {
  if (type.kind === 'string') return type.neutral ?? type.values?.[0] ?? ''
  if (type.kind !== 'object') return emptyValues[type.kind]
  const fields: Fields = type.fields
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, { presence }]) => presence === 'required')
      .map(([key, field]) => [key, zeroOf(field.type)]),
  )
}
