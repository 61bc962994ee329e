import type { IncomingHttpHeaders } from 'node:http'
import { ApiError } from '../requests/api-error.ts'
import { anonymous, authenticatedGroup } from '../requests/identity.ts'
import type { Identity } from '../requests/identity.ts'
import { refuseAccess } from './refuse-access.ts'

const serviceAccount = /^system:serviceaccount:(?<namespace>[^:]+):[^:]+$/u

/**
 * The identity that a request is authorized as: administrators may impersonate others, whom headers name
 * (`apiserver/pkg/endpoints/filters/impersonation/impersonation.go`, 1.36). Extra fields and the UID have no effect.
 * @throws ApiError Forbidden for clients that may not, BadRequest for groups without a user
 */
export function impersonate(identity: Identity, headers: IncomingHttpHeaders): Identity {
  const name = textOf(headers['impersonate-user'])
  const given = groupsOf(textOf(headers['impersonate-group']))
  if (name === '') {
    if (Object.keys(headers).some((key) => key.startsWith('impersonate-')))
      throw new ApiError(400, 'requested to impersonate without a user')
    return identity
  }
  refuse(identity, 'users', name)
  for (const group of given) refuse(identity, 'groups', group)
  if (name === anonymous.name) return anonymous
  return { name, groups: [...new Set([...(given.length > 0 ? given : ownGroups(name)), authenticatedGroup])] }
}

function refuse(identity: Identity, resource: 'users' | 'groups', name: string): void {
  const wanted = { group: '', version: 'v1', resource, subresource: '', namespace: '', name }
  refuseAccess(identity, { verb: 'impersonate', resource: wanted, path: '' })
}

/** The groups of a user for whom none are named. */
function ownGroups(name: string): readonly string[] {
  const namespace = serviceAccount.exec(name)?.groups?.['namespace']
  return namespace === undefined ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
}

/** Node joins a header that occurs several times. */
function groupsOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '')
}

function textOf(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' ? header : (header ?? []).join(',')
}
