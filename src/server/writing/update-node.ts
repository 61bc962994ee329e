import { sameData } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { updateNode as updateOwnNode } from '../../decide/writing/own-node.ts'
import { jsonResponse } from '../requests/api-request.ts'
import type { ApiResponse } from '../requests/api-request.ts'
import { objectNotFound } from '../requests/not-found.ts'
import { readWholeObject } from '../requests/read-object.ts'
import { ApiError } from '../requests/api-error.ts'
import type { Call } from '../requests/route.ts'
import { readPatch } from './patch-object.ts'
import { refuseStale } from './refuse-stale.ts'
import { invalid } from './write-errors.ts'
import { readWriteOptions } from './write-query.ts'
import { findShown, plain, refuseOther } from './written-kind.ts'
import type { WrittenKind } from './written-kind.ts'

/**
 * PUT or PATCH of the node, or of its status: keeps labels, annotations and extended resources; the rest follows from
 * the host. Throws ApiError, or PoddError OBJECT_NOT_KEPT.
 */
export async function answerNodeUpdate(
  written: WrittenKind,
  { request, query, names: [name = ''] }: Call,
  scope: 'object' | 'status',
): Promise<ApiResponse> {
  const isPatch = request.method === 'PATCH'
  const { dryRun } = readWriteOptions(query, isPatch ? 'PatchOptions' : 'UpdateOptions')
  const change = isPatch ? await readPatch(request) : await replacement(request)
  const { kind, reader, writer } = written
  const target = { namespace: '', name }
  return writer.exclusively(async () => {
    const shown = findShown(written, target)
    if (shown === undefined) throw objectNotFound(kind.resource, reader.list(), target)
    const wanted = change(plain(shown))
    refuseOther(kind, wanted, { name })
    refuseStale(kind, shown, wanted)
    const before = writer.get({ kind: kind.kind, ...target })?.manifest
    const { manifest, problems } = updateOwnNode(before, plain(shown), wanted, scope)
    if (problems.length > 0) throw invalid(kind, name, problems)
    if (!dryRun && !sameData(manifest, before)) {
      if (manifest === undefined) await writer.remove({ kind: kind.kind, ...target })
      else await writer.put(manifest)
    }
    return jsonResponse(findShown(written, target) ?? shown)
  })
}

async function replacement(request: Call['request']): Promise<() => JsonObject> {
  const { object } = await readWholeObject(request)
  if (object === undefined) throw new ApiError(400, 'the request has no body')
  return () => object
}
