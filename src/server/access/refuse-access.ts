import { ApiError } from '../requests/api-error.ts'
import { isAnonymous } from '../requests/identity.ts'
import type { Identity } from '../requests/identity.ts'
import type { Attributes } from './attributes.ts'
import { mayDo } from './roles.ts'

/**
 * Authorizes a request: returns where the client may make it.
 * @throws ApiError Unauthorized for unknown clients, Forbidden for known ones, in an API server's words
 * (`apiserver/pkg/endpoints/handlers/responsewriters/errors.go`, 1.36)
 */
export function refuseAccess(identity: Identity, attributes: Attributes): void {
  if (mayDo(identity, attributes)) return
  if (isAnonymous(identity)) throw new ApiError(401, 'Unauthorized')
  const { verb, resource, path } = attributes
  const who = JSON.stringify(identity.name)
  if (resource === undefined)
    throw new ApiError(403, `forbidden: User ${who} cannot ${verb} path ${JSON.stringify(path)}`)
  const { group, name, namespace } = resource
  const full =
    resource.subresource === '' ? resource.resource : `${resource.resource}/${resource.subresource}`
  const what = qualified(resource.resource, group)
  const place = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`
  throw new ApiError(
    403,
    `${what}${name === '' ? '' : ` ${JSON.stringify(name)}`} is forbidden: User ${who} cannot ${verb} resource ${JSON.stringify(full)} in API group ${JSON.stringify(group)} ${place}`,
    undefined,
    { ...(name !== '' && { name }), ...(group !== '' && { group }), kind: resource.resource },
  )
}

function qualified(resource: string, group: string): string {
  return group === '' ? resource : `${resource}.${group}`
}
