import { nodeKind, servedKinds } from '../../api/served-kinds.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import type { RandomSource } from '../../base/random.ts'
import type { ApiResponse } from '../requests/request.ts'
import type { Call, Route } from '../requests/route.ts'
import type { ObjectWriter, ApiReaders } from '../requests/readers.ts'
import type { WrittenKind } from './written-kind.ts'

const load = () => import('./answer-write.ts')

/** The routes that create, change and delete objects; their code is loaded with the first such request. */
export function writeRoutes(
  readers: ApiReaders,
  writer: ObjectWriter,
  random: RandomSource,
): readonly Route[] {
  const of = (kind: ServedKind, { clock }: Call): WrittenKind => ({
    kind,
    reader: readers.resources[kind.resource],
    writer,
    namespaces: readers.resources.namespaces,
    runtimeClasses: readers.resources.runtimeclasses,
    priorityClasses: readers.resources.priorityclasses,
    clock,
    random,
  })
  const router: Router = (kind) => (method, pattern, handlerOf) => ({
    method,
    pattern,
    async handle(call) {
      await readers.whenListed(kind.resource)
      return handlerOf(await load())(of(kind, call), call)
    },
  })
  return servedKinds
    .filter(({ verbs }) => verbs.includes('create'))
    .flatMap((kind) => kindRoutes(kind, router(kind)))
    .concat(nodeRoutes(router(nodeKind)))
}

/** @param handlerOf which of the functions answers */
type WriteRoute = (
  method: Route['method'],
  pattern: string,
  handlerOf: (code: Code) => (written: WrittenKind, call: Call) => Promise<ApiResponse>,
) => Route
type Code = Awaited<ReturnType<typeof load>>
type Router = (kind: ServedKind) => WriteRoute

/** The one node is neither created nor deleted. */
function nodeRoutes(route: WriteRoute): readonly Route[] {
  const node = `${nodeKind.root}/nodes/*`
  return (['PUT', 'PATCH'] as const).flatMap((method) => [
    route(method, node, (code) => (written, call) => code.answerNodeUpdate(written, call, 'object')),
    route(
      method,
      `${node}/status`,
      (code) => (written, call) => code.answerNodeUpdate(written, call, 'status'),
    ),
  ])
}

function kindRoutes(kind: ServedKind, route: WriteRoute): readonly Route[] {
  const at = kind.namespaced ? `${kind.root}/namespaces/*/${kind.resource}` : `${kind.root}/${kind.resource}`
  const object = `${at}/*`
  const routes = [
    route('POST', at, (code) => code.answerCreate),
    route('PUT', object, (code) => code.answerReplace),
    route('PATCH', object, (code) => code.answerPatch),
    route('DELETE', object, (code) => code.answerDelete),
  ]
  if (kind.verbs.includes('deletecollection'))
    routes.push(route('DELETE', at, (code) => code.answerDeleteAll))
  if (kind.subresources.some(({ name }) => name === 'scale'))
    for (const method of ['GET', 'PUT', 'PATCH'] as const)
      routes.push(route(method, `${object}/scale`, (code) => code.answerScale))
  if (kind.kind !== 'Pod') return routes
  for (const scope of ['status', 'ephemeralcontainers', 'resize'] as const) {
    const place = `${object}/${scope}`
    routes.push(
      route('PUT', place, (code) => (written, call) => code.answerReplace(written, call, scope)),
      route('PATCH', place, (code) => (written, call) => code.answerPatch(written, call, scope)),
    )
  }
  return [
    ...routes,
    route('POST', `${object}/eviction`, (code) => code.answerEviction),
    route('POST', `${object}/binding`, (code) => code.answerBinding),
  ]
}
