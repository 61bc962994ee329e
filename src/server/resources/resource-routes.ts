import { servedKinds } from '../../api/kinds/served-kinds.ts'
import type { ServedKind } from '../../api/kinds/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import { jsonResponse } from '../requests/api-request.ts'
import type { ApiResponse } from '../requests/api-request.ts'
import { objectNotFound } from '../requests/not-found.ts'
import { booleanParam } from '../requests/query.ts'
import type { ApiReaders, ResourceReader, ShownKind } from '../requests/readers.ts'
import type { Call, Route } from '../requests/route.ts'
import { listResources } from './list-resources.ts'
import { readListOptions, readWatchOptions } from './list-options.ts'
import { redactSecrets } from './redact-secrets.ts'
import type { WatchLines } from './watch-lines.ts'
import { watchResources } from './watch-resources.ts'

/** One kind under one root of paths. */
interface Served {
  readonly kind: ServedKind
  readonly root: string
  readonly reader: ResourceReader<ResourceObject>
  readonly whenListed: ShownKind<ResourceObject>['whenListed']
  readonly lines: WatchLines
}

/** Lists, watches and single objects of every kind that is served, and podd's own form of Secrets, without their values. */
export function resourceRoutes(readers: ApiReaders, lines: WatchLines): readonly Route[] {
  return servedKinds.flatMap((kind) => {
    const { reader, whenListed } = readers.resources[kind.resource]
    const routes = routesOf({ kind, root: '/api/v1', reader, whenListed, lines })
    if (kind.tableRoot === '/api/v1') return routes
    const own = { kind, root: kind.tableRoot, reader: redactSecrets(reader), whenListed, lines }
    return routes.concat(routesOf(own))
  })
}

function routesOf(served: Served): readonly Route[] {
  const { kind, root } = served
  const { resource } = kind
  const list = (call: Call): Promise<ApiResponse> => answerList(served, call)
  return [
    { method: 'GET', pattern: `${root}/${resource}`, handle: list },
    { method: 'GET', pattern: `${root}/namespaces/*/${resource}`, handle: list },
    {
      method: 'GET',
      pattern: `${root}/namespaces/*/${resource}/*`,
      handle: async ({ names }) => {
        await served.whenListed()
        return jsonResponse(findObject(served, names))
      },
    },
  ]
}

async function answerList(served: Served, { query, names, clock, signal }: Call): Promise<ApiResponse> {
  const { kind, reader, lines, whenListed } = served
  const [namespace] = names
  if (!booleanParam(query, 'watch')) {
    const options = readListOptions(query, kind, namespace)
    await whenListed()
    return listResources(kind, reader, options)
  }
  const options = readWatchOptions(query, kind, namespace)
  await whenListed()
  const cutOff = new AbortController()
  return {
    status: 200,
    contentType: 'application/json',
    body: watchResources(kind, reader, options, { clock, lines, signal, cutOff: () => cutOff.abort() }),
    headFirst: true,
    cutOff: cutOff.signal,
  }
}

/** Of two objects under one name, of which one replaces the other, the new one. Throws ApiError NotFound. */
function findObject(
  { kind, reader }: Served,
  [namespace = '', name = '']: readonly string[],
): ResourceObject {
  const all = reader.list()
  const found = all.findLast(
    ({ metadata }) => metadata.name === name && (!kind.namespaced || metadata.namespace === namespace),
  )
  if (found === undefined) throw objectNotFound(kind.resource, all, { namespace, name })
  return found
}
