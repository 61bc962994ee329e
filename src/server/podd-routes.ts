import { PoddError, errorCode, errorMessage } from '../base/errors.ts'
import { findRunningPod } from './pods/pod-target.ts'
import { ApiError } from './requests/api-error.ts'
import { jsonResponse } from './requests/api-request.ts'
import type { ApiResponse } from './requests/api-request.ts'
import { objectNotFound } from './requests/not-found.ts'
import type { ApiReaders } from './requests/readers.ts'
import type { Call, Route } from './requests/route.ts'
import { sourceRoutes } from './source-routes.ts'

/** podd's own routes, except those of images. */
export function poddRoutes(readers: ApiReaders): readonly Route[] {
  const { status, probes, drain } = readers
  const pods = readers.resources.pods.reader
  return [
    {
      method: 'GET',
      pattern: '/podd/v1/status',
      handle: () => jsonResponse(status.daemonStatus()),
    },
    ...sourceRoutes(readers.sources),
    {
      method: 'GET',
      pattern: '/podd/v1/applied',
      needsPods: true,
      handle: () => jsonResponse(status.applied()),
    },
    {
      method: 'POST',
      pattern: '/podd/v1/drain',
      needsPods: true,
      handle: async () => jsonResponse(await drain.run()),
    },
    {
      method: 'POST',
      pattern: '/podd/v1/drain/undo',
      needsPods: true,
      handle: async () => {
        await drain.undo()
        return jsonResponse({ undone: true })
      },
    },
    {
      method: 'GET',
      pattern: '/podd/v1/namespaces/*/pods/*/probes',
      needsPods: true,
      handle: ({ names: [namespace = '', name = ''] }) => {
        const all = pods.list()
        const found = all.findLast(
          ({ metadata }) => metadata.name === name && metadata.namespace === namespace,
        )
        if (found === undefined) throw objectNotFound('pods', all, { namespace, name })
        return jsonResponse(probes.listProbes(found.metadata.uid))
      },
    },
    {
      method: 'POST',
      pattern: '/podd/v1/namespaces/*/pods/*/restart',
      needsPods: true,
      handle: (call) => restartPod(readers, call),
    },
    {
      method: 'POST',
      pattern: '/podd/v1/namespaces/*/persistentvolumeclaims/*/purge',
      needsPods: true,
      handle: (call) => purgeClaim(readers, call),
    },
  ]
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
