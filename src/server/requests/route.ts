import type { Clock } from '../../base/clock.ts'
import { ApiError } from './api-error.ts'
import type { ApiRequest, ApiResponse } from './request.ts'

export interface Call {
  readonly request: ApiRequest
  readonly query: URLSearchParams
  /** The segments that matched the pattern's `*`. */
  readonly names: readonly string[]
  readonly clock: Clock
  readonly signal: AbortSignal
}

export interface Route {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Segments; `*` stands for any one, and `**` at the end for any number of them. */
  readonly pattern: string
  /** The request waits until pods can be listed. */
  readonly needsPods?: true
  handle(call: Call): ApiResponse | Promise<ApiResponse>
}

export function get(pattern: string, handle: Route['handle']): Route {
  return { method: 'GET', pattern, handle }
}

export function post(pattern: string, handle: Route['handle']): Route {
  return { method: 'POST', pattern, handle }
}

/** The same, answered when pods can be listed. */
export function withPods(route: Route): Route {
  return { ...route, needsPods: true }
}

/** The route of a path, and the segments that match its pattern's `*`. Throws ApiError where there is none. */
export function findRoute<R extends Pick<Route, 'method' | 'pattern'>>(
  routes: readonly R[],
  method: string,
  pathname: string,
): { readonly route: R; readonly names: readonly string[] } {
  const segments = decodePath(withoutLastSlash(method, pathname))
  const matches = routes.flatMap((route) => {
    const names = match(route.pattern, segments)
    return names === undefined ? [] : [{ route, names }]
  })
  const found = matches.find(({ route }) => route.method === method)
  if (found !== undefined) return found
  if (matches.length === 0)
    throw new ApiError(404, 'the server could not find the requested resource', undefined, {})
  throw new ApiError(405, 'the server does not allow this method on the requested resource', undefined, {})
}

/** Parses the URL of a request. Throws ApiError for a malformed one. */
export function readTarget(target: string): URL {
  const url = URL.parse(target, 'http://podd')
  if (url === null) throw new ApiError(400, 'the path of the request is not well-formed')
  return url
}

/**
 * A path without its last slash, which means nothing to an API server either: clients that are generated from its
 * OpenAPI document ask for `/version/` and `/api/v1/`. A DELETE keeps it: where the name of an object was forgotten, all
 * would go.
 */
export function withoutLastSlash(method: string, pathname: string): string {
  return method === 'DELETE' ? pathname : pathname.replace(/(?<=[^/])\/$/u, '')
}

/** The segments of a path, including the empty one before its first slash. Throws ApiError for a malformed path. */
export function decodePath(pathname: string): readonly string[] {
  try {
    return pathname.split('/').map((segment) => decodeURIComponent(segment))
  } catch {
    // decodeURIComponent throws for malformed escapes alone.
    throw new ApiError(400, `${pathname} is not a well-formed path`)
  }
}

function match(pattern: string, segments: readonly string[]): readonly string[] | undefined {
  const wanted = pattern.split('/')
  const isOpen = wanted.at(-1) === '**'
  if (isOpen) wanted.pop()
  if (isOpen ? segments.length < wanted.length : wanted.length !== segments.length) return undefined
  const names: string[] = []
  for (const [index, segment] of segments.slice(0, wanted.length).entries()) {
    if (wanted[index] === '*') names.push(segment)
    else if (wanted[index] !== segment) return undefined
  }
  return names
}

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
  if (!/^\d{1,15}$/u.test(value)) throw new ApiError(400, `${name} must be a whole number, 0 or more`)
  return Number(value)
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
