import type { FaultReason } from '../../pod/schema/issues.ts'
import { ApiError } from './api-error.ts'

/** What is wrong with one option of a request. */
export interface OptionFault {
  /** Empty: several options together. */
  readonly field: string
  readonly reason: FaultReason
  readonly message: string
}

/**
 * The error by which an API server rejects the options of a request (`apimachinery/pkg/api/errors`, NewInvalid, 1.36).
 */
export function invalidOptions(
  { kind, group, name = '' }: { readonly kind: string; readonly group?: string; readonly name?: string },
  faults: readonly OptionFault[],
): ApiError {
  const texts = faults.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`))
  const all = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`
  const qualified = group === undefined ? kind : `${kind}.${group}`
  return new ApiError(422, `${qualified} ${JSON.stringify(name)} is invalid: ${all}`, undefined, {
    ...(name !== '' && { name }),
    ...(group !== undefined && { group }),
    kind,
    causes: faults.map(({ field, reason, message }) => ({ reason, message, field })),
  })
}

/** Of meta/v1: ListOptions, CreateOptions and their like. */
export function invalidMetaOptions(kind: string, faults: readonly OptionFault[]): ApiError {
  return invalidOptions({ kind, group: 'meta.k8s.io' }, faults)
}
