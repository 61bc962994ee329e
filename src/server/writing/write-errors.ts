import type { ServedKind } from '../../api/served-kind.ts'
import type { FieldProblem } from '../../pod/schema/issues.ts'
import { formatFieldPath } from '../../pod/schema/issues.ts'
import { ApiError } from '../requests/api-error.ts'

type Named = Pick<ServedKind, 'kind' | 'apiVersion'> & { readonly resource: string }

/** The error of an API server for an invalid object (`apimachinery/pkg/api/errors`, NewInvalid, 1.36). */
export function invalid(kind: Named, name: string, problems: readonly FieldProblem[]): ApiError {
  const causes = problems.map(({ path, message, reason }) => ({
    // Fields that only podd rejects are forbidden.
    reason: reason === 'RefusedHere' ? 'FieldValueForbidden' : (reason ?? 'FieldValueInvalid'),
    message,
    field: formatFieldPath(path),
  }))
  const texts = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))]
  const all = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`
  return new ApiError(422, `${kind.kind} ${JSON.stringify(name)} is invalid: ${all}`, undefined, {
    ...(name !== '' && { name }),
    ...groupOf(kind),
    kind: kind.kind,
    causes,
  })
}

/** The error of a strict decoder for unknown or duplicate fields. */
export function strictDecoding({ kind, apiVersion }: Named, faults: readonly string[]): ApiError {
  const version = apiVersion.split('/').at(-1) ?? ''
  const list = faults.join(', ')
  return new ApiError(
    400,
    `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: strict decoding error: ${list}`,
  )
}

/** The error of a decoder for a value of another type than its field's. */
export function wrongType({ kind, apiVersion }: Named, problems: readonly FieldProblem[]): ApiError {
  const version = apiVersion.split('/').at(-1) ?? ''
  const texts = problems.map(({ path, message }) => `${formatFieldPath(path)}: ${message}`)
  return new ApiError(
    400,
    `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${texts.join(', ')}`,
  )
}

export function alreadyExists({ resource, ...kind }: Named, name: string): ApiError {
  return new ApiError(
    409,
    `${qualified(resource, kind.apiVersion)} ${JSON.stringify(name)} already exists`,
    undefined,
    { name, ...groupOf(kind), kind: resource },
    'AlreadyExists',
  )
}

export function conflict({ resource, ...kind }: Named, name: string, why: string): ApiError {
  return new ApiError(
    409,
    `Operation cannot be fulfilled on ${qualified(resource, kind.apiVersion)} ${JSON.stringify(name)}: ${why}`,
    undefined,
    { name, ...groupOf(kind), kind: resource },
  )
}

/** The error for an object that a source gives: it is changed there. */
export function notWritable({ resource }: Named, name: string, path: string | undefined): ApiError {
  const from = path === undefined ? 'is not one that was written over the API' : `comes from ${path}`
  return new ApiError(
    405,
    `${resource} ${JSON.stringify(name)} ${from} and cannot be changed over the API: change it there`,
    undefined,
    { name, kind: resource },
  )
}

function groupOf({ apiVersion }: Pick<Named, 'apiVersion'>): { readonly group?: string } {
  const [group = '', version] = apiVersion.split('/')
  return version === undefined ? {} : { group }
}

function qualified(resource: string, apiVersion: string): string {
  const { group } = groupOf({ apiVersion })
  return group === undefined ? resource : `${resource}.${group}`
}
