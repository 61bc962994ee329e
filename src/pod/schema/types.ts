/*
 * The combinators of the Pod API's schema. One schema is the single place for a field's name, type, default and
 * support; the static types (`Infer`), the strict decoder (./check-value.ts) and docs/SUPPORT.md all come from it.
 */
import { isJsonObject } from '../../base/json.ts'
import type { Json } from '../../base/json.ts'
import { canonicalQuantity, writtenQuantity } from '../values/quantity.ts'

/** What podd does with a field. */
export type Support =
  /** Works as in Kubernetes; an e2e test proves it (test/support/proves.ts). */
  | { readonly kind: 'supported'; readonly note?: string }
  /** Accepted with no effect here, for the stated reason; dropped while decoding. */
  | { readonly kind: 'ignored'; readonly reason: string }
  /** An error when it is present, except with one of the `harmless` values. */
  | { readonly kind: 'refused'; readonly reason: string; readonly harmless?: readonly unknown[] }

export interface ScalarType<T> {
  readonly kind: 'string' | 'int32' | 'int64' | 'bool' | 'quantity' | 'intOrString' | 'any'
  /** The only values allowed, if there is such a list. */
  readonly values?: readonly string[]
  /** The one of them that asks nothing of other fields, where that isn't the first. */
  readonly neutral?: string
  /** The API has a pointer here: an empty string is a value, and differs from absence. */
  readonly isPointer?: true
  /** The required format of the string. */
  readonly format?: 'date-time'
  /** Never set; carries the static type. */
  readonly _type?: T
}

export interface ListType<T> {
  readonly kind: 'list'
  readonly item: AnyType
  readonly _type?: readonly T[]
}

export interface MapType<T> {
  readonly kind: 'map'
  readonly value: AnyType
  readonly _type?: Readonly<Record<string, T>>
}

export interface ObjectType<F extends Fields> {
  readonly kind: 'object'
  /** The API type's name (`PodSpec`, `Container`, …). */
  readonly name: string
  readonly fields: F
  readonly _type?: InferFields<F>
}

// oxlint-disable-next-line typescript/no-explicit-any -- erased: stands for any static type
export type AnyType = ScalarType<any> | ListType<any> | MapType<any> | ObjectType<any>

export interface Field<
  T = unknown,
  Presence extends 'required' | 'optional' | 'defaulted' | 'absent' =
    | 'required'
    | 'optional'
    | 'defaulted'
    | 'absent',
> {
  readonly type: AnyType
  readonly presence: Presence
  /** The default value (presence `defaulted`). */
  readonly value?: unknown
  readonly support: Support
  /** Where absent it has Go's zero value, which validation judges. */
  readonly absentIsZero?: true
  readonly _type?: T
}

export type Fields = Readonly<Record<string, Field>>

type Keys<F extends Fields, P extends string> = {
  [K in keyof F]: F[K]['presence'] extends P ? K : never
}[keyof F]

type InferFields<F extends Fields> = {
  readonly [K in Keys<F, 'required' | 'defaulted'>]: NonNullable<F[K]['_type']>
} & {
  readonly [K in Keys<F, 'optional'>]?: NonNullable<F[K]['_type']>
}

/** The static type of a decoded, defaulted value of the schema type `T`. */
export type Infer<T extends AnyType> = NonNullable<T['_type']>

export const string: ScalarType<string> = { kind: 'string' }
export const dateTime: ScalarType<string> = { kind: 'string', format: 'date-time' }
export const int32: ScalarType<number> = { kind: 'int32' }
export const int64: ScalarType<number> = { kind: 'int64' }
export const bool: ScalarType<boolean> = { kind: 'bool' }
/** Kept as its canonical text; see ../values/quantity.ts. */
export const quantity: ScalarType<string> = { kind: 'quantity' }
export const intOrString: ScalarType<number | string> = { kind: 'intOrString' }
/** Not checked inside: only for fields that are refused or ignored as a whole. */
export const any: ScalarType<unknown> = { kind: 'any' }

/** One of the given words. */
export function oneOf<const V extends readonly string[]>(...values: V): ScalarType<V[number]> {
  return { kind: 'string', values }
}

/** One of the given words, or absent; the empty string doesn't count as absent. */
export function oneOfOrNone<const V extends readonly string[]>(...values: V): ScalarType<V[number]> {
  return { kind: 'string', values, isPointer: true }
}

export function list<T extends AnyType>(item: T): ListType<Infer<T>> {
  return { kind: 'list', item }
}

export function map<T extends AnyType>(value: T): MapType<Infer<T>> {
  return { kind: 'map', value }
}

export function object<const F extends Fields>(name: string, fields: F): ObjectType<F> {
  return { kind: 'object', name, fields }
}

/** `note`: what differs from Kubernetes, or is needed for it. */
function supported(note: string | undefined): Support {
  return note === undefined ? { kind: 'supported' } : { kind: 'supported', note }
}

export function required<T extends AnyType>(type: T, note?: string): Field<Infer<T>, 'required'> {
  return { type, presence: 'required', support: supported(note) }
}

/** A field that the API calls required and reads as its zero value where it is left out. */
export function requiredOrZero<T extends AnyType>(type: T): Field<Infer<T>, 'required'> {
  return { ...required(type), absentIsZero: true }
}

/** An optional field without a default. */
export function optional<T extends AnyType>(type: T, note?: string): Field<Infer<T>, 'optional'> {
  return { type, presence: 'optional', support: supported(note) }
}

/** An optional field with the API's default. */
export function defaulted<T extends AnyType>(
  type: T,
  value: Infer<T>,
  note?: string,
): Field<Infer<T>, 'defaulted'> {
  return { type, presence: 'defaulted', value, support: supported(note) }
}

/** A field without effect on a standalone host; docs/SUPPORT.md states the reason. */
export function ignored(type: AnyType, reason: string): Field<never, 'absent'> {
  return { type, presence: 'absent', support: { kind: 'ignored', reason } }
}

/**
 * A field that podd can't honour, and therefore refuses. Values that equal absence (`false`, `{}`) may be named as
 * `harmless`; an empty list always is.
 */
export function refused(
  type: AnyType,
  reason: string,
  harmless: readonly unknown[] = [],
): Field<never, 'absent'> {
  return { type, presence: 'absent', support: { kind: 'refused', reason, harmless } }
}

/**
 * A field that one of several similar types doesn't have: refused where it is given; it keeps its default, so that code can
 * treat these types alike.
 */
export function never<F extends Field>(field: F, reason: string, harmless: readonly unknown[] = []): F {
  return { ...field, support: { kind: 'refused', reason, harmless } }
}

/**
 * A checked value with the schema's defaults filled in and quantities in their canonical form. Only
 * supported fields are in the result, so a value written by a newer podd can be read too.
 */
export function fillDefaults(type: AnyType, value: Json): unknown {
  switch (type.kind) {
    case 'object':
      return isJsonObject(value) ? fillObject(type.fields, value) : value
    case 'list':
      return Array.isArray(value) ? value.map((item) => fillDefaults(type.item, item)) : value
    case 'map':
      if (!isJsonObject(value)) return value
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, fillDefaults(type.value, item)]),
      )
    case 'quantity':
      return typeof value === 'object' ? value : (canonicalQuantity(writtenQuantity(value)) ?? value)
    default:
      return value
  }
}

function fillObject(fields: Fields, value: { readonly [key: string]: Json }): Record<string, unknown> {
  const filled: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(fields)) {
    if (field.presence === 'absent') continue
    const given = value[key]
    if (given !== undefined && given !== null) filled[key] = fillDefaults(field.type, given)
    else if (field.presence === 'defaulted') filled[key] = field.value
  }
  return filled
}

/** Whether a value is what the schema's static type says; it may hold more. */
export function conforms<T extends AnyType>(type: T, value: unknown): value is Infer<T>
export function conforms(type: AnyType, value: unknown): boolean {
  switch (type.kind) {
    case 'object':
      return isJsonObject(value) && fieldsMatch(type.fields, value)
    case 'list':
      return Array.isArray(value) && value.every((item) => conforms(type.item, item))
    case 'map':
      return isJsonObject(value) && Object.values(value).every((item) => conforms(type.value, item))
    case 'int32':
    case 'int64':
      return Number.isInteger(value)
    case 'bool':
      return typeof value === 'boolean'
    case 'intOrString':
      return Number.isSafeInteger(value) || typeof value === 'string'
    case 'quantity':
      return typeof value === 'string' && canonicalQuantity(value) !== undefined
    case 'string':
      return typeof value === 'string' && type.values?.includes(value) !== false
    case 'any':
      return true
  }
}

function fieldsMatch(fields: Fields, value: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(fields).every(([key, field]) => {
    const given = value[key]
    if (field.presence === 'absent') return true
    if (given === undefined) return field.presence === 'optional'
    return conforms(field.type, given)
  })
}

/** A value with the schema's defaults filled in; undefined where it isn't what the schema says. */
export function readAs<T extends AnyType>(type: T, value: Json | undefined): Infer<T> | undefined {
  const filled = value === undefined ? undefined : fillDefaults(type, value)
  return conforms(type, filled) ? filled : undefined
}

/** What podd does with the field, in a sentence. */
export function describeSupport(support: Field['support']): string {
  switch (support.kind) {
    case 'supported':
      return `Works as in Kubernetes${support.note === undefined ? '' : `: ${support.note}`}.`
    case 'ignored':
      return `Accepted by podd with no effect: ${support.reason}.`
    case 'refused':
      return `Refused by podd: ${support.reason}.`
  }
}

/** The field as it is below another one: a parent that isn't supported answers for all that is below it. */
export function fieldBelow(parent: Field['support'] | undefined, field: Field): Field {
  return parent === undefined || parent.kind === 'supported' ? field : { ...field, support: parent }
}
