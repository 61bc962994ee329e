import { ApiError } from './api-error.ts'

/**
 * Everything but `false`, in any case, and `0` is true, also the bare name: Python's clients send `True`
 * (`apimachinery/pkg/runtime/conversion.go` Convert_Slice_string_To_bool, 1.36).
 */
export function booleanParam(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

/** A whole number, 0 or more. */
export function countParam(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name)
  if (value === null) return undefined
  const count = /^\d{1,15}$/u.test(value) ? Number(value) : Number.NaN
  if (Number.isNaN(count)) throw new ApiError(400, `${name} must be a whole number, 0 or more`)
  return count
}

/** A whole number, below 0 too. */
export function integerParam(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name)
  if (value === null) return undefined
  if (!/^[+-]?\d{1,15}$/u.test(value)) throw new ApiError(400, `${name} must be a whole number`)
  return Number(value)
}

/** With a zone: without one it would be in this host's. */
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/u

/** Wall milliseconds of an RFC 3339 time. */
export function timeParam(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name)
  if (value === null) return undefined
  const timeMs = rfc3339.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isNaN(timeMs)) throw new ApiError(400, `${name} must be a time such as 2026-01-31T09:30:00Z`)
  return timeMs
}
