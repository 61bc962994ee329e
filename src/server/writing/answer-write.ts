import { ApiError } from '../requests/api-error.ts'
import { jsonResponse } from '../requests/api-request.ts'
import type { ApiResponse } from '../requests/api-request.ts'
import type { Call } from '../requests/route.ts'
import { createObject } from './create-object.ts'
import type { Written } from './create-object.ts'
import { deleteObject, readDeleteOptions } from './delete-object.ts'
import { readPatch } from './patch-object.ts'
import { readObject } from './read-object.ts'
import { updateObject } from './update-object.ts'
import { readWriteOptions } from './write-query.ts'
import type { Target, WrittenKind } from './written-kind.ts'

/** POST of a collection. */
export async function answerCreate(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const options = readWriteOptions(query)
  const given = (await readObject(request)) ?? refuseEmpty()
  const [namespace = ''] = written.kind.namespaced ? names : []
  return respond(await createObject(written, given, { namespace, options }))
}

/** PUT of an object. */
export async function answerReplace(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const options = readWriteOptions(query)
  const given = (await readObject(request)) ?? refuseEmpty()
  const target = targetOf(written, names)
  return respond(await updateObject(written, { target, options, scope: 'object', change: () => given }))
}

/** PATCH of an object. */
export async function answerPatch(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const options = readWriteOptions(query)
  const change = await readPatch(request)
  const target = targetOf(written, names)
  return respond(await updateObject(written, { target, options, scope: 'object', change }))
}

/** DELETE of an object. */
export async function answerDelete(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const options = readDeleteOptions(query, await readObject(request))
  return jsonResponse(await deleteObject(written, targetOf(written, names), options))
}

function targetOf({ kind }: WrittenKind, names: readonly string[]): Target {
  const [namespace = '', name = ''] = kind.namespaced ? names : ['', ...names]
  return { namespace, name }
}

function refuseEmpty(): never {
  throw new ApiError(400, 'the request has no body')
}

function respond({ object, status, warnings }: Written): ApiResponse {
  const response = jsonResponse(object, status)
  if (warnings.length === 0) return response
  // One header may hold several (RFC 7234).
  const warning = warnings.map((text) => `299 - ${JSON.stringify(text)}`).join(', ')
  return { ...response, headers: { Warning: warning } }
}
