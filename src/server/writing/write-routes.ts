import { nodeKind, servedKinds } from '../../api/served-kinds.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import type { RandomSource } from '../../base/random.ts'
import type { ApiResponse } from '../requests/request.ts'
import type { Call, Route } from '../requests/route.ts'
import type { ObjectWriter, ApiReaders } from '../requests/readers.ts'
import type { WrittenKind } from './written-kind.ts'

/** The routes that create, change and delete objects; their code is loaded with the first such request. */
export function writeRoutes(
  readers: ApiReaders,
  writer: ObjectWriter,
  random: RandomSource,
): readonly Route[] {
  const of = (kind: ServedKind, { clock }: Call): WrittenKind => ({
    kind,
    reader: readers.resources[kind.resource].reader,
    writer,
    namespaces: readers.resources.namespaces.reader,
    runtimeClasses: readers.resources.runtimeclasses.reader,
    priorityClasses: readers.resources.priorityclasses.reader,
    clock,
    random,
  })
  const router: Router = (kind) => (method, pattern, handle) => ({
    method,
    pattern,
    async handle(call) {
      await readers.resources[kind.resource].whenListed()
      return handle(of(kind, call), call)
    },
  })
  return servedKinds
    .filter(({ verbs }) => verbs.includes('create'))
    .flatMap((kind) => kindRoutes(kind, router(kind)))
    .concat(nodeRoutes(router(nodeKind)))
}

const load = () => import('./answer-write.ts')

type WriteRoute = (
  method: Route['method'],
  pattern: string,
  handle: (written: WrittenKind, call: Call) => Promise<ApiResponse>,
) => Route
type Router = (kind: ServedKind) => WriteRoute

/** The one node is neither created nor deleted. */
function nodeRoutes(route: WriteRoute): readonly Route[] {
  const node = `${nodeKind.root}/nodes/*`
  return (['PUT', 'PATCH'] as const).flatMap((method) => [
    route(method, node, async (written, call) => (await load()).answerNodeUpdate(written, call, 'object')),
    route(method, `${node}/status`, async (written, call) =>
      (await load()).answerNodeUpdate(written, call, 'status'),
    ),
  ])
}

function kindRoutes(kind: ServedKind, route: WriteRoute): readonly Route[] {
  const at = kind.namespaced ? `${kind.root}/namespaces/*/${kind.resource}` : `${kind.root}/${kind.resource}`
  const object = `${at}/*`
  const routes = [
    route('POST', at, async (written, call) => (await load()).answerCreate(written, call)),
    route('PUT', object, async (written, call) => (await load()).answerReplace(written, call)),
    route('PATCH', object, async (written, call) => (await load()).answerPatch(written, call)),
    route('DELETE', object, async (written, call) => (await load()).answerDelete(written, call)),
  ]
  if (kind.verbs.includes('deletecollection'))
    routes.push(route('DELETE', at, async (written, call) => (await load()).answerDeleteAll(written, call)))
  if (kind.kind !== 'Pod') return routes
  const scopes = (['status', 'ephemeralcontainers', 'resize'] as const).flatMap((scope) => [
    route('PUT', `${object}/${scope}`, async (written, call) =>
      (await load()).answerReplace(written, call, scope),
    ),
    route('PATCH', `${object}/${scope}`, async (written, call) =>
      (await load()).answerPatch(written, call, scope),
    ),
  ])
  return [
    ...routes,
    ...scopes,
    route('POST', `${object}/eviction`, async (written, call) =>
      (await load()).answerEviction(written, call),
    ),
    route('POST', `${object}/binding`, async (written, call) => (await load()).answerBinding(written, call)),
  ]
}
