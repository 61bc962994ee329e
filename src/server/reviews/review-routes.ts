import { isJsonObject } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { mayDo, rulesOf } from '../access/roles.ts'
import { ApiError } from '../requests/api-error.ts'
import { jsonResponse } from '../requests/api-request.ts'
import type { ApiRequest, ApiResponse } from '../requests/api-request.ts'
import type { Identity } from '../requests/identity.ts'
import { invalidOptions } from '../requests/invalid-options.ts'
import { readObject } from '../requests/read-object.ts'
import { readTarget } from '../requests/route.ts'
import type { Route } from '../requests/route.ts'

type Review = (identity: Identity, spec: JsonObject) => object

/** The self-reviews of clients: their identity, whether they may make a request, and all their rules. */
const reviews: readonly (readonly [path: string, kind: string, review: Review])[] = [
  [
    '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    'SelfSubjectReview',
    ({ name, groups }) => ({ userInfo: { username: name, groups } }),
  ],
  [
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    'SelfSubjectAccessReview',
    (identity, spec) => ({ allowed: isAllowed(identity, spec) }),
  ],
  [
    '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
    'SelfSubjectRulesReview',
    (identity) => ({ ...rulesOf(identity), incomplete: false }),
  ],
]

export function reviewRoutes(): readonly Route[] {
  return reviews.map(([pattern, kind, review]) => ({
    method: 'POST',
    pattern,
    handle: ({ request }) => answer(request, kind, review),
  }))
}

async function answer(request: ApiRequest, kind: string, review: Review): Promise<ApiResponse> {
  const asked = (await readObject(request)) ?? {}
  if (asked['kind'] !== undefined && asked['kind'] !== kind)
    throw new ApiError(400, `the body of the request is no ${kind}`)
  const { metadata = {}, spec } = asked
  const status = review(request.identity, isJsonObject(spec) ? spec : {})
  const [, , group, version] = readTarget(request.target).pathname.split('/')
  const body = {
    kind,
    apiVersion: `${group}/${version}`,
    metadata,
    ...(spec !== undefined && { spec }),
    status,
  }
  return jsonResponse(body, 201)
}

function isAllowed(identity: Identity, { resourceAttributes, nonResourceAttributes }: JsonObject): boolean {
  if (isJsonObject(resourceAttributes)) {
    const textOf = (key: string): string => {
      const value = resourceAttributes[key]
      return typeof value === 'string' ? value : ''
    }
    const resource = {
      group: textOf('group'),
      version: textOf('version'),
      resource: textOf('resource'),
      subresource: textOf('subresource'),
      namespace: textOf('namespace'),
      name: textOf('name'),
    }
    return mayDo(identity, { verb: textOf('verb'), resource, path: '' })
  }
  if (!isJsonObject(nonResourceAttributes))
    throw invalidOptions({ kind: 'SelfSubjectAccessReview', group: 'authorization.k8s.io' }, [
      {
        field: 'spec.resourceAttributes',
        reason: 'FieldValueInvalid',
        message:
          'Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
      },
    ])
  const { verb, path } = nonResourceAttributes
  return mayDo(identity, {
    verb: typeof verb === 'string' ? verb : '',
    resource: undefined,
    path: typeof path === 'string' ? path : '',
  })
}
