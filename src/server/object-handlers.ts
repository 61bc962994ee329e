import type { ServerResponse } from 'node:http'
import type { ClaimObject, ConfigObject } from '../api/local-objects.ts'
import { PoddError } from '../base/errors.ts'
import { ApiError } from './api-error.ts'
import { booleanParam } from './query.ts'
import type { LocalObjectReader } from './readers.ts'
import { respondJson, respondList } from './respond.ts'
import type { Patience } from './respond.ts'

interface ObjectCall extends Patience {
  readonly readers: { readonly objects: LocalObjectReader }
  readonly response: ServerResponse
  readonly query: URLSearchParams
  readonly names: readonly string[]
  readonly signal: AbortSignal
}

interface ObjectRoute {
  readonly method: 'GET' | 'POST'
  readonly pattern: string
  handle(call: ObjectCall): void | Promise<void>
}

const configs = [
  ['configmaps', 'ConfigMap'],
  ['secrets', 'Secret'],
] as const

/** Routes to the objects that pods refer to; src/api/routes.ts tells of them in words. */
export const objectRoutes: readonly ObjectRoute[] = [
  ...configs.flatMap(([resource, kind]): readonly ObjectRoute[] => {
    const handle = (call: ObjectCall): Promise<void> => {
      const values = booleanParam(call.query, 'values')
      return sendList(call, `${kind}List`, call.readers.objects.listConfigs(kind, { values }))
    }
    return [
      { method: 'GET', pattern: `/api/v1/${resource}`, handle },
      { method: 'GET', pattern: `/api/v1/namespaces/*/${resource}`, handle },
    ]
  }),
  { method: 'GET', pattern: '/api/v1/persistentvolumeclaims', handle: sendClaims },
  { method: 'GET', pattern: '/api/v1/namespaces/*/persistentvolumeclaims', handle: sendClaims },
  { method: 'POST', pattern: '/podd/v1/namespaces/*/persistentvolumeclaims/*/purge', handle: purgeClaim },
]

async function sendClaims(call: ObjectCall): Promise<void> {
  await sendList(call, 'PersistentVolumeClaimList', await call.readers.objects.listClaims())
}

function sendList(
  call: ObjectCall,
  kind: string,
  all: readonly (ConfigObject | ClaimObject)[],
): Promise<void> {
  const [namespace] = call.names
  const items = all.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
  return respondList(call.response, { apiVersion: 'v1', kind, items }, call)
}

async function purgeClaim({ readers, response, names }: ObjectCall): Promise<void> {
  const [namespace = '', name = ''] = names
  try {
    await readers.objects.purgeClaim({ namespace, name })
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    if (error.code === 'CLAIM_NOT_FOUND') throw new ApiError(404, error.message, error.hint)
    if (error.code === 'CLAIM_IN_USE' || error.code === 'VOLUME_TEARDOWN')
      throw new ApiError(409, error.message, error.hint)
    throw error
  }
  respondJson(response, { purged: name })
}
