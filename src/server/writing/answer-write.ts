import { ApiError } from '../requests/api-error.ts'
import { formatTime } from '../../base/clock.ts'
import { isJsonObject } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { metadataOf } from '../../decide/writing/prepare-object.ts'
import type { Updater } from '../../decide/writing/apply-manifest.ts'
import type { UpdateScope } from '../../decide/writing/judge-update.ts'
import { jsonResponse } from '../requests/api-request.ts'
import type { ApiRequest, ApiResponse } from '../requests/api-request.ts'
import type { Call } from '../requests/route.ts'
import { readListOptions } from '../resources/list-options.ts'
import { applyObject } from './apply-object.ts'
import { createObject } from './create-object.ts'
import type { Written } from './create-object.ts'
import { deleteObject, readDeleteOptions } from './delete-object.ts'
import { readPatch } from './patch-object.ts'
import {
  asObject,
  contentTypeOf,
  parseYamlBody,
  readObject,
  readWholeObject,
} from '../requests/read-object.ts'
import { updateObject } from './update-object.ts'
import { conflict } from './write-errors.ts'
import { readWriteOptions } from './write-query.ts'
import type { OptionsKind, WriteOptions } from './write-query.ts'
import type { Target, WrittenKind } from './written-kind.ts'

const applyPatch = 'application/apply-patch+yaml'

/** POST of a collection. */
export async function answerCreate(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const { given, options } = await readWrite(request, query, 'CreateOptions')
  const [namespace = ''] = written.kind.namespaced ? names : []
  return respond(await createObject(written, given, { namespace, options }))
}

/** DELETE of an object. */
export async function answerDelete(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const options = readDeleteOptions(query, await readObject(request))
  return jsonResponse(await deleteObject(written, targetOf(written, names), options))
}

/** PUT of an object or a subresource. */
export async function answerReplace(
  written: WrittenKind,
  { request, query, names }: Call,
  scope: UpdateScope = 'object',
): Promise<ApiResponse> {
  const { given, options } = await readWrite(request, query, 'UpdateOptions')
  const target = targetOf(written, names)
  const updater = updaterOf(written, request, options)
  return respond(await updateObject(written, { target, options, scope, updater, change: () => given }))
}

/** PATCH of an object or a subresource. */
export async function answerPatch(
  written: WrittenKind,
  { request, query, names }: Call,
  scope: UpdateScope = 'object',
): Promise<ApiResponse> {
  const options = readWriteOptions(query, 'PatchOptions')
  if (scope === 'object' && contentTypeOf(request) === applyPatch) {
    const applied = asObject(await parseYamlBody(await request.readBody()))
    return respond(await applyObject(written, applied, { target: targetOf(written, names), options }))
  }
  const change = await readPatch(request)
  const target = targetOf(written, names)
  const updater = updaterOf(written, request, options)
  return respond(await updateObject(written, { target, options, scope, updater, change }))
}

/** POST of an Eviction: there are no disruption budgets (`pkg/registry/core/pod/storage/eviction.go`, 1.36). */
export async function answerEviction(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const eviction = (await readObject(request)) ?? {}
  const { deleteOptions } = eviction
  const { name: given } = metadataOf(eviction)
  if (typeof given === 'string' && given !== '' && given !== targetOf(written, names).name)
    throw new ApiError(400, 'name in URL does not match name in Eviction object')
  const options = readDeleteOptions(query, isJsonObject(deleteOptions) ? deleteOptions : {})
  const dryRun = options.dryRun || readWriteOptions(query, 'CreateOptions').dryRun
  await deleteObject(written, targetOf(written, names), { ...options, dryRun })
  return jsonResponse({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }, 201)
}

/** POST of a Binding: a pod is bound to this node when it is created. */
export async function answerBinding(written: WrittenKind, { names }: Call): Promise<ApiResponse> {
  const { name } = targetOf(written, names)
  const why = `pod ${name} is already assigned to node ${JSON.stringify(written.writer.nodeName)}`
  throw conflict({ ...written.kind, resource: 'pods/binding' }, name, why)
}

/** DELETE of a collection: all selected objects that were written over the API. */
export async function answerDeleteAll(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const { kind, reader, writer } = written
  const [namespace = ''] = kind.namespaced ? names : []
  const { accepts } = readListOptions(query, kind, kind.namespaced ? namespace : undefined)
  const options = readDeleteOptions(query, await readObject(request))
  const doomed = reader
    .list()
    .filter(
      (object) =>
        accepts(object) &&
        writer.get({ kind: kind.kind, namespace, name: object.metadata.name })?.uid === object.metadata.uid,
    )
  for (const { metadata } of doomed) await deleteObject(written, { namespace, name: metadata.name }, options)
  const { listKind, apiVersion } = kind
  const resourceVersion = String(reader.revision)
  return jsonResponse({ kind: listKind, apiVersion, metadata: { resourceVersion }, items: doomed })
}

function targetOf({ kind }: WrittenKind, names: readonly string[]): Target {
  const [namespace = '', name = ''] = kind.namespaced ? names : ['', ...names]
  return { namespace, name }
}

/** The object and the options of a POST or PUT. Throws ApiError. */
async function readWrite(
  request: ApiRequest,
  query: URLSearchParams,
  kind: OptionsKind,
): Promise<{ readonly given: JsonObject; readonly options: WriteOptions }> {
  const options = readWriteOptions(query, kind)
  const { object, duplicates } = await readWholeObject(request)
  if (object === undefined) throw new ApiError(400, 'the request has no body')
  return { given: object, options: { ...options, duplicates } }
}

/** The field manager of a write (`apiserver/pkg/endpoints/handlers/create.go`, managerOrUserAgent, 1.36). */
function updaterOf({ clock }: WrittenKind, { headers }: ApiRequest, { fieldManager }: WriteOptions): Updater {
  const [agent = ''] = (headers['user-agent'] ?? '').split('/')
  return { manager: fieldManager || agent || 'unknown', time: formatTime(clock.wallMs()) }
}

function respond({ object, status, warnings }: Written): ApiResponse {
  const response = jsonResponse(object, status)
  if (warnings.length === 0) return response
  // One header may hold several (RFC 7234).
  const warning = bounded(warnings)
    .map((text) => `299 - ${quoted(text)}`)
    .join(', ')
  return { ...response, headers: { Warning: warning } }
}

/** The longest warning, and of all warnings of a response (`apiserver/pkg/endpoints/filters/warning.go`, 1.36). */
const mostCharacters = 256
const mostOfAll = 4096

function bounded(warnings: readonly string[]): readonly string[] {
  let total = 0
  return warnings
    .map((text) => text.slice(0, mostCharacters))
    .filter((text) => (total += text.length) <= mostOfAll)
}

/** A header holds printable ASCII alone: the rest is escaped. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[^ -~]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  )
}
