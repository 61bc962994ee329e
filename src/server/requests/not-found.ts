import type { ResourceObject } from '../../api/resource.ts'
import { nearestName } from '../../base/text.ts'
import { notFound } from './api-error.ts'
import type { ApiError } from './api-error.ts'

/** The error for a missing object, with a hint at the same name in another namespace, or at a similar name. */
export function objectNotFound(
  resource: string,
  all: readonly ResourceObject[],
  { namespace, name }: { readonly namespace: string; readonly name: string },
): ApiError {
  const elsewhere = all.find(
    ({ metadata }) => metadata.name === name && (metadata.namespace ?? '') !== namespace,
  )
  if (elsewhere !== undefined) {
    const other = elsewhere.metadata.namespace
    return notFound(resource, name, `There is one in namespace ${other}: -n ${other}`)
  }
  const names = all.flatMap(({ metadata }) =>
    (metadata.namespace ?? '') === namespace ? [metadata.name] : [],
  )
  const near = nearestName(name, names)
  return notFound(resource, name, near === undefined ? undefined : `Did you mean ${near}?`)
}
