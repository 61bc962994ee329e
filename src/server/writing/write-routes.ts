import { servedKinds } from '../../api/kinds/served-kinds.ts'
import type { ServedKind } from '../../api/kinds/served-kind.ts'
import type { RandomSource } from '../../base/random.ts'
import type { ApiResponse } from '../requests/api-request.ts'
import type { ObjectWriter } from '../requests/object-writer.ts'
import type { ApiReaders } from '../requests/readers.ts'
import type { Call, Route } from '../requests/route.ts'
import type { WrittenKind } from './written-kind.ts'

/** What makes, changes and deletes objects; loaded with the first request for it. */
export function writeRoutes(
  readers: ApiReaders,
  { writer, random }: { readonly writer: ObjectWriter; readonly random: RandomSource },
): readonly Route[] {
  return servedKinds
    .filter(({ verbs }) => verbs.includes('create'))
    .flatMap((kind) => routesOf(kind, readers, { writer, random }))
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
    hasNamespace: () => true,
    clock: call.clock,
    random,
  })
  const at = kind.namespaced ? `/api/v1/namespaces/*/${kind.resource}` : `/api/v1/${kind.resource}`
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
  return [
    route('POST', at, async (written, call) =>
      (await import('./answer-write.ts')).answerCreate(written, call),
    ),
    route('PUT', `${at}/*`, async (written, call) =>
      (await import('./answer-write.ts')).answerReplace(written, call),
    ),
    route('PATCH', `${at}/*`, async (written, call) =>
      (await import('./answer-write.ts')).answerPatch(written, call),
    ),
    route('DELETE', `${at}/*`, async (written, call) =>
      (await import('./answer-write.ts')).answerDelete(written, call),
    ),
  ]
}
