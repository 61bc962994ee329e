import { isJsonObject, objectOrEmpty, textAt } from '../base/json.ts'
import type { JsonObject } from '../base/json.ts'
import { mayDo, parseRole, rulesOf } from './access/authorize.ts'
import type { NetworkApi } from './network-api.ts'
import { ApiError, invalidOptions } from './requests/api-error.ts'
import { readObject } from './requests/read-object.ts'
import { jsonResponse } from './requests/request.ts'
import { countParam, post, readTarget } from './requests/route.ts'
import type { ApiRequest, ApiResponse, Identity } from './requests/request.ts'
import type { Route } from './requests/route.ts'

const defaultDays = 365
const maxDays = 3650

export function accessRoutes(network: Pick<NetworkApi, 'kubeconfig'> | undefined): readonly Route[] {
  return [post('/podd/v1/kubeconfig', ({ query }) => issueKubeconfig(network, query))]
}

function issueKubeconfig(
  network: Pick<NetworkApi, 'kubeconfig'> | undefined,
  query: URLSearchParams,
): ApiResponse {
  if (network === undefined)
    throw new ApiError(
      409,
      'podd serves its API on the unix socket alone',
      'Set api.listen in the config file, such as `api: {listen: 127.0.0.1:6443}`, and restart podd.',
    )
  const user = query.get('user') ?? 'admin'
  if (!/^[\w.@:+-]{1,64}$/u.test(user))
    throw new ApiError(400, 'user must be 1 to 64 letters, digits, or any of . _ @ : + -')
  const role = parseRole(query.get('role') ?? 'admin')
  if (role === undefined) throw new ApiError(400, 'role must be admin, edit or view')
  const days = countParam(query, 'days') ?? defaultDays
  if (days < 1 || days > maxDays) throw new ApiError(400, `days must be from 1 to ${maxDays}`)
  const server = query.get('server') ?? undefined
  if (server !== undefined && !/^https:\/\/[\w.:[\]-]+$/u.test(server))
    throw new ApiError(400, 'server must be https://HOST:PORT')
  const body = network.kubeconfig(user, role, days, server)
  return { status: 200, contentType: 'application/yaml', body }
}

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
  return reviews.map(([pattern, kind, review]) =>
    post(pattern, ({ request }) => answer(request, kind, review)),
  )
}

async function answer(request: ApiRequest, kind: string, review: Review): Promise<ApiResponse> {
  const asked = (await readObject(request)) ?? {}
  if (asked['kind'] !== undefined && asked['kind'] !== kind)
    throw new ApiError(400, `the body of the request is no ${kind}`)
  const { metadata = {}, spec } = asked
  const status = review(request.identity, objectOrEmpty(spec))
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
    const textOf = (key: string): string => textAt(resourceAttributes, key) ?? ''
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
