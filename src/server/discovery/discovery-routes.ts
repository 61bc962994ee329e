import { createHash } from 'node:crypto'
import type { ApiResource } from '../../api/served-kind.ts'
import type { ApiResponse } from '../requests/api-request.ts'
import { jsonResponse } from '../requests/api-request.ts'
import type { Call, Route } from '../requests/route.ts'
import {
  aggregated,
  coreVersions,
  groupDocument,
  groupList,
  groupsOf,
  resourceList,
} from './discovery-documents.ts'

const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** Discovery in the form that a client accepts: aggregated, or group by group. */
export function discoveryRoutes(resources: readonly ApiResource[]): readonly Route[] {
  const groups = groupsOf(resources)
  const root = (isCore: boolean, legacy: () => object) => (call: Call) =>
    wantsAggregated(call)
      ? respond(call, aggregated(groups, isCore), aggregatedType)
      : respond(call, legacy())
  return [
    get(
      '/api',
      root(true, () => coreVersions()),
    ),
    get(
      '/apis',
      root(false, () => groupList(groups)),
    ),
    // An empty document in protobuf: clients then leave the checks to the server.
    get('/openapi/v2', () => ({
      status: 200,
      contentType: 'application/octet-stream',
      body: '',
    })),
    get('/openapi/v3', async (call) => {
      const { openApiDocuments, openApiIndex } = await openApi()
      return respond(call, openApiIndex(openApiDocuments(resources)))
    }),
    ...groups.map(({ group, version }) => {
      const name = group === '' ? `api/${version}` : `apis/${group}/${version}`
      return get(`/openapi/v3/${name}`, async ({ query }) => {
        const { openApiDocuments } = await openApi()
        return serveDocument(openApiDocuments(resources).get(name) ?? '{}', query)
      })
    }),
    ...groups.flatMap((group) => {
      const list = (call: Call): ApiResponse => respond(call, resourceList(group))
      if (group.group === '') return [get(`/api/${group.version}`, list)]
      return [
        get(`/apis/${group.group}`, (call) => respond(call, groupDocument(group))),
        get(`/apis/${group.group}/${group.version}`, list),
      ]
    }),
  ]
}

/** Loaded with the first request, as it needs the schemas of all kinds. */
const openApi = () => import('./openapi-document.ts')

/** A document requested by its content hash never changes. */
function serveDocument(body: string, query: URLSearchParams): ApiResponse {
  const response = { status: 200, contentType: 'application/json', body }
  return query.has('hash') ? { ...response, headers: { 'cache-control': 'public, immutable' } } : response
}

function get(pattern: string, handle: Route['handle']): Route {
  return { method: 'GET', pattern, handle }
}

/** Whether aggregated discovery of version v2 is among what the client accepts. */
function wantsAggregated({ request }: Call): boolean {
  const accepted = request.headers.accept?.split(',') ?? []
  return accepted.some((type) => {
    const [media, ...parameters] = type.split(';').map((part) => part.trim())
    return (
      media === 'application/json' &&
      ['g=apidiscovery.k8s.io', 'v=v2', 'as=APIGroupDiscoveryList'].every((part) => parameters.includes(part))
    )
  })
}

/** Clients cache unchanged documents. */
function respond({ request }: Call, document: object, contentType = 'application/json'): ApiResponse {
  const response = { ...jsonResponse(document), contentType }
  const etag = `"${createHash('sha256').update(response.body).digest('hex').slice(0, 32)}"`
  const headers = { etag, vary: 'Accept', 'cache-control': 'public' }
  if (request.headers['if-none-match'] === etag) return { ...response, status: 304, headers, body: '' }
  return { ...response, headers }
}
