import { nodeKind, servedKinds } from '../../api/served-kinds.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import type { RandomSource } from '../../base/random.ts'
import type { ApiResponse, Call, Route } from '../requests/request.ts'
import type { ObjectWriter, ApiReaders } from '../requests/readers.ts'
import type { WrittenKind } from './written-kind.ts'

/** The routes that create, change and delete objects; their code is loaded with the first such request. */
export function writeRoutes(
  readers: ApiReaders,
  { writer, random }: { readonly writer: ObjectWriter; readonly random: RandomSource },
): readonly Route[] {
  return servedKinds
    .filter(({ verbs }) => verbs.includes('create'))
    .flatMap((kind) => routesOf(kind, readers, { writer, random }))
    .concat(nodeRoutes(readers, { writer, random }))
}

/** The one node is neither created nor deleted. */
function nodeRoutes(
  readers: ApiReaders,
  { writer, random }: { readonly writer: ObjectWriter; readonly random: RandomSource },
): readonly Route[] {
  const { nodes, namespaces, runtimeclasses, priorityclasses } = readers.resources
  const route = (method: Route['method'], scope: 'object' | 'status'): Route => ({
    method,
    pattern: `${nodeKind.root}/nodes/*${scope === 'status' ? '/status' : ''}`,
    async handle(call) {
      const { answerNodeUpdate } = await import('./answer-write.ts')
      await nodes.whenListed()
      const written = {
        kind: nodeKind,
        reader: nodes.reader,
        writer,
        namespaces: namespaces.reader,
        runtimeClasses: runtimeclasses.reader,
        priorityClasses: priorityclasses.reader,
        clock: call.clock,
        random,
      }
      return answerNodeUpdate(written, call, scope)
    },
  })
  return (['PUT', 'PATCH'] as const).flatMap((method) => [route(method, 'object'), route(method, 'status')])
}

function routesOf(
  kind: ServedKind,
  readers: ApiReaders,
  { writer, random }: { readonly writer: ObjectWriter; readonly random: RandomSource },
): readonly Route[] {
  const { reader, whenListed } = readers.resources[kind.resource]
  const below = (call: Call): WrittenKind => ({
    kind,
    reader,
    writer,
    namespaces: readers.resources.namespaces.reader,
    runtimeClasses: readers.resources.runtimeclasses.reader,
    priorityClasses: readers.resources.priorityclasses.reader,
    clock: call.clock,
    random,
  })
  const at = kind.namespaced ? `${kind.root}/namespaces/*/${kind.resource}` : `${kind.root}/${kind.resource}`
  const route = (
    method: Route['method'],
    pattern: string,
    handle: (written: WrittenKind, call: Call) => Promise<ApiResponse>,
  ): Route => ({
    method,
    pattern,
    async handle(call) {
      await whenListed()
      return handle(below(call), call)
    },
  })
  const load = () => import('./answer-write.ts')
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
