import { createHash } from 'node:crypto'
import { kubernetesVersion, poddVersion, splitApiVersion } from '../../api/resource.ts'
import type { ApiResource } from '../../api/served-kind.ts'
import { jsonResponse } from '../requests/request.ts'
import type { ApiResponse } from '../requests/request.ts'
import { get } from '../requests/route.ts'
import type { Call, Route } from '../requests/route.ts'

const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** Discovery in the form that a client accepts: aggregated, or group by group. */
export function discoveryRoutes(resources: readonly ApiResource[]): readonly Route[] {
  const groups = groupsOf(resources)
  // For clients that don't know aggregated discovery there is the older form.
  const root = (isCore: boolean, legacy: object) => (call: Call) =>
    wantsAggregated(call) ? respond(call, aggregated(groups, isCore), aggregatedType) : respond(call, legacy)
  const others = groups.filter(({ group }) => group !== '').map((group) => describeGroup(group))
  return [
    get('/api', root(true, { kind: 'APIVersions', versions: ['v1'] })),
    get('/apis', root(false, { kind: 'APIGroupList', apiVersion: 'v1', groups: others })),
    // An empty document in protobuf: clients then leave the checks to the server.
    get('/openapi/v2', () => ({ status: 200, contentType: 'application/octet-stream', body: '' })),
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
      const document = { kind: 'APIGroup', apiVersion: 'v1', ...describeGroup(group) }
      return [
        get(`/apis/${group.group}`, (call) => respond(call, document)),
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

/** A group with its one version, and the resources in it. */
interface Group {
  readonly group: string
  readonly version: string
  readonly resources: readonly ApiResource[]
}

/** The groups in the order in which clients look for a resource's name: the core group is first. */
export function groupsOf(resources: readonly ApiResource[]): readonly Group[] {
  const groups = Map.groupBy(resources, ({ group, version }) => `${group}/${version}`)
  return [...groups.values()].flatMap((own) => {
    const [first] = own
    return first === undefined ? [] : [{ group: first.group, version: first.version, resources: own }]
  })
}

function describeGroup({ group, version }: Group): object {
  const entry = { groupVersion: `${group}/${version}`, version }
  return { name: group, versions: [entry], preferredVersion: entry }
}

/** GET /api/v1 and /apis/{group}/{version} */
function resourceList({ group, version, resources }: Group): object {
  return {
    kind: 'APIResourceList',
    ...(group !== '' && { apiVersion: 'v1' }),
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: resources.flatMap((resource) => [describeResource(resource), ...subresourcesOf(resource)]),
  }
}

function describeResource(resource: ApiResource): object {
  const { singular: singularName, namespaced, kind, verbs, shortNames, categories } = resource
  return {
    name: resource.resource,
    singularName,
    namespaced,
    kind,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
  }
}

function subresourcesOf({ resource, kind, namespaced, subresources }: ApiResource): readonly object[] {
  return subresources.map((sub) => ({
    name: `${resource}/${sub.name}`,
    singularName: '',
    namespaced,
    ...(sub.apiVersion !== undefined && splitApiVersion(sub.apiVersion)),
    kind: sub.kind ?? kind,
    verbs: sub.verbs,
  }))
}

/** apidiscovery.k8s.io/v2: all groups with their resources at once; `isCore` chooses between /api and /apis. */
function aggregated(groups: readonly Group[], isCore: boolean): object {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups
      .filter(({ group }) => (group === '') === isCore)
      .map(({ group, version, resources }) => {
        const versions = [
          { version, freshness: 'Current', resources: resources.map((each) => aggregateResource(each)) },
        ]
        return { metadata: group === '' ? {} : { name: group }, versions }
      }),
  }
}

function aggregateResource(resource: ApiResource): object {
  const { kind, namespaced, singular, verbs, shortNames, categories, subresources } = resource
  return {
    resource: resource.resource,
    responseKind: { group: '', version: '', kind },
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(subresources.length > 0 && {
      subresources: subresources.map((sub) => ({
        subresource: sub.name,
        responseKind: { ...splitApiVersion(sub.apiVersion ?? ''), kind: sub.kind ?? kind },
        verbs: sub.verbs,
      })),
    }),
  }
}

/** GET /version: the Kubernetes version whose API podd serves, which clients check, and podd's own. */
export function versionInfo(): object {
  const [major = '', minor = ''] = kubernetesVersion.split('.')
  return {
    major,
    minor,
    gitVersion: `v${kubernetesVersion}.0+podd-${poddVersion}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  }
}
