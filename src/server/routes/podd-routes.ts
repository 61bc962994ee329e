import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { ApiError, objectNotFound } from '../requests/api-error.ts'
import type { ApiReaders, SourceControl } from '../requests/readers.ts'
import { jsonResponse } from '../requests/request.ts'
import type { ApiResponse } from '../requests/request.ts'
import { get, post, withPods } from '../requests/route.ts'
import type { Call, Route } from '../requests/route.ts'
import { findRunningPod } from './pod-target.ts'

/** podd's own routes, except those of images. */
export function poddRoutes(readers: ApiReaders): readonly Route[] {
  const { status, drain } = readers
  return [
    get('/podd/v1/status', () => jsonResponse(status.daemonStatus())),
    ...sourceRoutes(readers.sources),
    withPods(get('/podd/v1/applied', () => jsonResponse(status.applied()))),
    withPods(post('/podd/v1/drain', async () => jsonResponse(await drain.run()))),
    withPods(
      post('/podd/v1/drain/undo', async () => {
        await drain.undo()
        return jsonResponse({ undone: true })
      }),
    ),
    withPods(get('/podd/v1/namespaces/*/pods/*/probes', (call) => listProbes(readers, call))),
    withPods(post('/podd/v1/namespaces/*/pods/*/restart', (call) => restartPod(readers, call))),
    withPods(
      post('/podd/v1/namespaces/*/persistentvolumeclaims/*/purge', (call) => purgeClaim(readers, call)),
    ),
  ]
}

function listProbes(
  { resources, probes }: ApiReaders,
  { names: [namespace = '', name = ''] }: Call,
): ApiResponse {
  const all = resources.pods.reader.list()
  const found = all.findLast(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
  if (found === undefined) throw objectNotFound('pods', all, { namespace, name })
  return jsonResponse(probes.listProbes(found.metadata.uid))
}

/** Throws ApiError Conflict for a pod or container that can't be restarted in its state. */
async function restartPod(
  { resources, reach }: ApiReaders,
  { query, names: [namespace = '', name = ''] }: Call,
): Promise<ApiResponse> {
  const pod = findRunningPod(resources.pods.reader, namespace, name)
  const wanted = query.getAll('container')
  try {
    const containers = await reach.restart(pod.metadata.uid, wanted.length === 0 ? undefined : wanted)
    return jsonResponse({ containers })
  } catch (error) {
    throw errorCode(error) === 'RESTART_REFUSED' ? new ApiError(409, errorMessage(error)) : error
  }
}

async function purgeClaim(
  { claims }: ApiReaders,
  { names: [namespace = '', name = ''] }: Call,
): Promise<ApiResponse> {
  try {
    await claims.purgeClaim({ namespace, name })
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    if (error.code === 'CLAIM_NOT_FOUND') throw new ApiError(404, error.message, error.hint)
    if (error.code === 'CLAIM_IN_USE' || error.code === 'VOLUME_TEARDOWN')
      throw new ApiError(409, error.message, error.hint)
    throw error
  }
  return jsonResponse({ purged: name })
}

function sourceRoutes(sources: SourceControl): readonly Route[] {
  const each = (change: (name: string) => Promise<boolean>) => (call: Call) =>
    changeEach(sources, call, change)
  return [
    get('/podd/v1/sources', () => jsonResponse(sources.list())),
    post(
      '/podd/v1/sources/hold',
      each((name) => sources.hold(name)),
    ),
    post(
      '/podd/v1/sources/resume',
      each((name) => sources.resume(name)),
    ),
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
