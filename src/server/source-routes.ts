import { ApiError } from './requests/api-error.ts'
import { jsonResponse } from './requests/api-request.ts'
import type { ApiResponse } from './requests/api-request.ts'
import type { SourceControl } from './requests/readers.ts'
import type { Call, Route } from './requests/route.ts'

/** The routes of sources: list, hold and resume. */
export function sourceRoutes(sources: SourceControl): readonly Route[] {
  return [
    { method: 'GET', pattern: '/podd/v1/sources', handle: () => jsonResponse(sources.list()) },
    {
      method: 'POST',
      pattern: '/podd/v1/sources/hold',
      handle: (call) => changeEach(sources, call, (name) => sources.hold(name)),
    },
    {
      method: 'POST',
      pattern: '/podd/v1/sources/resume',
      handle: (call) => changeEach(sources, call, (name) => sources.resume(name)),
    },
  ]
}

/** Throws ApiError NotFound for an unknown source; none is changed then. */
async function changeEach(
  sources: SourceControl,
  { query }: Call,
  change: (name: string) => Promise<boolean>,
): Promise<ApiResponse> {
  const all = sources.list().map(({ metadata }) => metadata.name)
  const asked = query.getAll('source')
  const names = asked.length === 0 ? all : asked.map((word) => findSource(all, word))
  const changed: string[] = []
  for (const name of names) if (await change(name)) changed.push(name)
  return jsonResponse({ changed })
}

/** Finds a source by its name, or by what follows its kind: `edge` is `file:edge`. */
function findSource(all: readonly string[], word: string): string {
  const found = all.includes(word) ? [word] : all.filter((name) => name.endsWith(`:${word}`))
  const [only] = found
  if (only !== undefined && found.length === 1) return only
  if (word === 'api')
    throw new ApiError(
      404,
      'the objects written over the API are not a source that can be held',
      'Directories and URLs can: what they give is held until `podd resume`, and each write over the API still counts.',
    )
  const hint = all.length === 0 ? 'No sources are configured.' : `There are ${all.join(', ')}.`
  throw new ApiError(404, `there is no source ${JSON.stringify(word)}`, hint)
}
