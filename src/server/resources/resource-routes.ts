import { regardingEventKind, toRegardingEvent } from '../../api/derived-kinds.ts'
import { qualifiedResource } from '../../api/resource.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { RoutedKind, ServedResources } from '../../api/served-kind.ts'
import { servedKinds } from '../../api/served-kinds.ts'
import type { RandomSource } from '../../base/random.ts'
import { ApiError, objectNotFound } from '../requests/api-error.ts'
import type { ApiReaders, ResourceReader } from '../requests/readers.ts'
import { jsonResponse } from '../requests/request.ts'
import { booleanParam, get } from '../requests/route.ts'
import type { ApiResponse } from '../requests/request.ts'
import type { Call, Route } from '../requests/route.ts'
import { mapReader, redactSecret } from './derived-readers.ts'
import { encodeContinuation, readListOptions, readWatchOptions } from './list-options.ts'
import type { ListOptions } from './list-options.ts'
import { chooseRepresentation } from './representation.ts'
import type { Representation } from './representation.ts'
import { watchResources } from './watch-resources.ts'
import type { WatchLines } from './watch-resources.ts'

/** One kind under one root of paths. */
interface Served {
  readonly kind: RoutedKind
  readonly root: string
  readonly reader: ResourceReader<ResourceObject>
  readonly whenListed: () => Promise<void>
  readonly lines: WatchLines
  readonly random: RandomSource
}

/** How long a watch lasts that asks for no time: 30 to 60 min (`apiserver/pkg/endpoints/handlers/get.go`, 1.36). */
const minWatchSeconds = 1800

/** Lists, watches and single objects of every served kind, and podd's own form of Secrets, without values. */
export function resourceRoutes(
  readers: ApiReaders,
  lines: WatchLines,
  random: RandomSource,
): readonly Route[] {
  const { events } = readers.resources
  const serve = (kind: RoutedKind, root: string, reader: Served['reader'], resource: keyof ServedResources) =>
    routesOf({ kind, root, reader, whenListed: () => readers.whenListed(resource), lines, random })
  return [
    ...servedKinds.flatMap((kind) => {
      const reader = readers.resources[kind.resource]
      const routes = serve(kind, kind.root, reader, kind.resource)
      if (kind.tableRoot === kind.root) return routes
      return routes.concat(serve(kind, kind.tableRoot, mapReader(reader, redactSecret), kind.resource))
    }),
    ...serve(regardingEventKind, regardingEventKind.root, mapReader(events, toRegardingEvent), 'events'),
  ]
}

function routesOf(served: Served): readonly Route[] {
  const { kind, root } = served
  const { resource, subresources } = kind
  const list = (call: Call): Promise<ApiResponse> => answerList(served, call)
  const single = async (call: Call): Promise<ApiResponse> => {
    const form = formOf(kind, call)
    await served.whenListed()
    return jsonResponse(form.single(findObject(served, call.names)))
  }
  const object = kind.namespaced ? `${root}/namespaces/*/${resource}/*` : `${root}/${resource}/*`
  // Reading one of these subresources returns the object itself.
  const views = subresources.filter(
    ({ verbs, kind }) => kind === undefined && verbs.includes('get') && verbs.includes('patch'),
  )
  return [
    get(`${root}/${resource}`, list),
    ...(kind.namespaced ? [get(`${root}/namespaces/*/${resource}`, list)] : []),
    get(object, single),
    ...views.map(({ name }) => get(`${object}/${name}`, single)),
  ]
}

function formOf(kind: RoutedKind, { request, query, clock }: Call): Representation {
  return chooseRepresentation(kind, request.headers.accept, query, () => clock.wallMs())
}

async function answerList(served: Served, call: Call): Promise<ApiResponse> {
  const { query, names, clock, signal } = call
  const { kind, reader, lines, whenListed, random } = served
  const [namespace] = names
  const form = formOf(kind, call)
  if (!booleanParam(query, 'watch')) {
    const options = readListOptions(query, kind, namespace)
    await whenListed()
    return listResources(reader, options, form)
  }
  const asked = readWatchOptions(query, kind, namespace)
  // Each at another time, so that clients that began together don't all come back together.
  const timeoutSeconds = asked.timeoutSeconds ?? minWatchSeconds * (1 + random())
  const options = { ...asked, timeoutSeconds }
  await whenListed()
  const cutOff = new AbortController()
  return {
    status: 200,
    contentType: 'application/json',
    body: watchResources(kind, reader, options, { form, signal, cutOff: () => cutOff.abort() }, lines, clock),
    headFirst: true,
    cutOff: cutOff.signal,
  }
}

/** The object of a name; of a pod and its replacement, the replacement. Throws ApiError NotFound. */
function findObject({ kind, reader }: Served, names: readonly string[]): ResourceObject {
  const [namespace = '', name = ''] = kind.namespaced ? names : ['', ...names]
  const all = reader.list()
  const found = all.findLast(
    ({ metadata }) => metadata.name === name && (metadata.namespace ?? '') === namespace,
  )
  if (found === undefined) throw objectNotFound(qualifiedResource(kind), all, { namespace, name })
  return found
}

/** The approximate size of the pieces in which a list is sent, in characters. */
const pieceBytes = 16 * 1024

/**
 * The requested list, or a chunk of `limit` objects. All chunks are of one revision. Throws ApiError Expired for a
 * forgotten revision, Timeout for a future one.
 */
function listResources(
  reader: ResourceReader<ResourceObject>,
  options: ListOptions,
  form: Representation,
): ApiResponse {
  const { revision, objects } = objectsAsked(reader, options)
  const accepted = objects.filter((object) => options.accepts(object))
  const offset = options.continue?.offset ?? 0
  const end = offset + (options.limit ?? accepted.length)
  const remaining = accepted.length - end
  const metadata = {
    resourceVersion: String(revision),
    ...(remaining > 0 && { continue: encodeContinuation({ revision, offset: end }) }),
    ...(remaining > 0 && !options.hasSelector && { remainingItemCount: remaining }),
  }
  const body = listPieces(metadata, accepted.slice(offset, end), form)
  return { status: 200, contentType: 'application/json', body }
}

function objectsAsked(
  reader: ResourceReader<ResourceObject>,
  { revision: wanted, match, continue: continuation }: ListOptions,
): { readonly revision: number; readonly objects: readonly ResourceObject[] } {
  if (continuation !== undefined) {
    const objects = reader.listAt(continuation.revision)
    if (objects !== undefined) return { revision: continuation.revision, objects }
    throw new ApiError(
      410,
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
    )
  }
  const { revision } = reader
  if (wanted !== undefined && wanted > revision) {
    const message = `Timeout: Too large resource version: ${wanted}, current: ${revision}`
    throw new ApiError(504, message, undefined, {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    })
  }
  if (match !== 'Exact' || wanted === undefined) return { revision, objects: reader.list() }
  const objects = reader.listAt(wanted)
  if (objects !== undefined) return { revision: wanted, objects }
  throw new ApiError(410, `too old resource version: ${wanted} (${revision})`)
}

/** Encoded as the client reads: a list is never in memory as a whole text. */
function* listPieces(
  metadata: object,
  items: readonly ResourceObject[],
  form: Representation,
): Generator<Uint8Array, void> {
  const { head, field } = form.listHead(metadata)
  const encoder = new TextEncoder()
  let piece = `${JSON.stringify(head).slice(0, -1)},"${field}":[`
  for (const [index, item] of items.entries()) {
    piece += `${index === 0 ? '' : ','}${JSON.stringify(form.listItem(item))}`
    if (piece.length < pieceBytes) continue
    yield encoder.encode(piece)
    piece = ''
  }
  yield encoder.encode(`${piece}]}\n`)
}
