import { qualifiedResource } from '../../api/resource.ts'
import type { ResourceObject } from '../../api/resource.ts'
import { formatTime } from '../../base/clock.ts'
import { isJsonObject, jsonAt, objectOrEmpty, sameData } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { applyManifest } from '../../decide/writing/apply-manifest.ts'
import type { ApplyConflict, Updater } from '../../decide/writing/apply-manifest.ts'
import type { UpdateScope } from '../../decide/writing/judge-update.ts'
import { updateNode as updateOwnNode } from '../../decide/writing/own-node.ts'
import { jsonPatch, mergePatch, PatchError, strategicMerge } from '../../decide/writing/patch.ts'
import { metadataOf } from '../../decide/writing/prepare-object.ts'
import { ApiError, invalidMetaOptions, objectNotFound } from '../requests/api-error.ts'
import {
  asObject,
  contentTypeOf,
  parseJsonBody,
  parseYamlBody,
  readJsonPatch,
  readObject,
  readWholeObject,
  unknownFormat,
} from '../requests/read-object.ts'
import { jsonResponse } from '../requests/request.ts'
import type { ApiRequest, ApiResponse } from '../requests/request.ts'
import type { Call } from '../requests/route.ts'
import { readListOptions } from '../resources/list-options.ts'
import { createObject } from './create-object.ts'
import type { Written } from './create-object.ts'
import { deleteObject, isOwned, readDeleteOptions } from './delete-object.ts'
import { refuseStale, updateObject } from './update-object.ts'
import { conflict, findShown, invalid, plain, readWriteOptions, refuseOther } from './written-kind.ts'
import type { OptionsKind, Target, WriteOptions, WrittenKind } from './written-kind.ts'

const applyPatch = 'application/apply-patch+yaml'

export async function answerCreate(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const { given, options } = await readWrite(request, query, 'CreateOptions')
  const [namespace = ''] = written.kind.namespaced ? names : []
  return respond(await createObject(written, given, namespace, options))
}

export async function answerDelete(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const options = readDeleteOptions(query, await readObject(request))
  return jsonResponse(await deleteObject(written, targetOf(written, names), options))
}

export async function answerReplace(
  written: WrittenKind,
  { request, query, names }: Call,
  scope: UpdateScope = 'object',
): Promise<ApiResponse> {
  const { given, options } = await readWrite(request, query, 'UpdateOptions')
  const target = targetOf(written, names)
  const updater = updaterOf(written, request, options)
  return respond(await updateObject(written, target, options, scope, () => given, updater))
}

export async function answerPatch(
  written: WrittenKind,
  { request, query, names }: Call,
  scope: UpdateScope = 'object',
): Promise<ApiResponse> {
  const target = targetOf(written, names)
  if (scope === 'object' && contentTypeOf(request) === applyPatch) {
    const options = readWriteOptions(query, 'PatchOptions')
    const applied = asObject(await parseYamlBody(await request.readBody()))
    return respond(await applyObject(written, applied, target, options))
  }
  const options = readPatchOptions(query)
  const { change, duplicates } = await readPatch(request, scope === 'object' ? [applyPatch] : [])
  const updater = updaterOf(written, request, options)
  const asPatch = { ...options, duplicates, isPatch: true }
  return respond(await updateObject(written, target, asPatch, scope, change, updater))
}

/** autoscaling/v1 Scale of a workload: how many pods it is to have (`pkg/registry/apps/deployment/storage`, 1.36). */
export async function answerScale(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const target = targetOf(written, names)
  if (request.method === 'GET') {
    const shown = findShown(written, target)
    if (shown === undefined)
      throw objectNotFound(qualifiedResource(written.kind), written.reader.list(), target)
    return jsonResponse(scaleOf(plain(shown)))
  }
  const isPatch = request.method === 'PATCH'
  const options = isPatch ? readPatchOptions(query) : readWriteOptions(query, 'UpdateOptions')
  const given = isPatch ? undefined : asObject(parseJsonBody(await request.readBody()))
  const patch = given === undefined ? (await readPatch(request)).change : () => given
  const change = (current: JsonObject): JsonObject => {
    const scale = patch(scaleOf(current))
    refuseOther(scaleKind, scale, target)
    const replicas = jsonAt(scale, 'spec', 'replicas') ?? 0
    // Of the workload, too, these are what the client has read.
    const { uid = '', resourceVersion = '' } = metadataOf(scale)
    const metadata = { ...metadataOf(current), uid, resourceVersion }
    return { ...current, metadata, spec: { ...objectOrEmpty(current['spec']), replicas } }
  }
  const updater = updaterOf(written, request, options)
  const { object, ...rest } = await updateObject(written, target, options, 'object', change, updater)
  return respond({ ...rest, object: scaleOf(objectOrEmpty(JSON.parse(JSON.stringify(object)))) })
}

const scaleKind = { kind: 'Scale', apiVersion: 'autoscaling/v1' } as const

function scaleOf({ metadata = {}, spec = {}, status = {} }: JsonObject): JsonObject {
  const {
    name = '',
    namespace = '',
    uid = '',
    resourceVersion = '',
    creationTimestamp = null,
  } = objectOrEmpty(metadata)
  const selector = Object.entries(objectOrEmpty(jsonAt(spec, 'selector', 'matchLabels')))
  return {
    ...scaleKind,
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: jsonAt(spec, 'replicas') ?? 1 },
    status: {
      replicas: jsonAt(status, 'replicas') ?? 0,
      selector: selector.map(([key, value]) => `${key}=${typeof value === 'string' ? value : ''}`).join(','),
    },
  }
}

/** POST of an Eviction: there are no disruption budgets (`pkg/registry/core/pod/storage/eviction.go`, 1.36). */
export async function answerEviction(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const eviction = (await readObject(request)) ?? {}
  const { deleteOptions, apiVersion = '' } = eviction
  const { name: given } = metadataOf(eviction)
  const { namespace, name } = targetOf(written, names)
  if (typeof given === 'string' && given !== '' && given !== name)
    throw new ApiError(400, 'name in URL does not match name in Eviction object')
  const version = apiVersion === 'policy/v1beta1' ? apiVersion : 'policy/v1'
  refuseOther({ kind: 'Eviction', apiVersion: version }, eviction, { namespace })
  const options = readDeleteOptions(query, objectOrEmpty(deleteOptions))
  const dryRun = options.dryRun || readWriteOptions(query, 'CreateOptions').dryRun
  await deleteObject(written, targetOf(written, names), { ...options, dryRun }, 'evicted')
  return jsonResponse({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }, 201)
}

/** POST of a Binding: a pod is bound to this node when it is created. */
export async function answerBinding(written: WrittenKind, { names }: Call): Promise<ApiResponse> {
  const { name } = targetOf(written, names)
  const why = `pod ${name} is already assigned to node ${JSON.stringify(written.writer.nodeName)}`
  throw conflict({ ...written.kind, resource: 'pods/binding' }, name, why)
}

/** DELETE of a collection: all selected objects that were written over the API, and pods of workloads. */
export async function answerDeleteAll(
  written: WrittenKind,
  { request, query, names }: Call,
): Promise<ApiResponse> {
  const { kind, reader, writer } = written
  const [namespace = ''] = kind.namespaced ? names : []
  const { accepts } = readListOptions(query, kind, kind.namespaced ? namespace : undefined)
  const options = readDeleteOptions(query, await readObject(request))
  const isMeant = (object: ResourceObject): boolean => {
    const { name, uid } = object.metadata
    const kept = writer.get({ kind: kind.kind, namespace, name })
    return kept === undefined ? kind.kind === 'Pod' && isOwned(object) : kept.uid === uid
  }
  const selected = reader.list().filter((object) => accepts(object) && isMeant(object))
  for (const { metadata } of selected)
    await deleteObject(written, { namespace, name: metadata.name }, options)
  const { listKind, apiVersion } = kind
  const resourceVersion = String(reader.revision)
  return jsonResponse({ kind: listKind, apiVersion, metadata: { resourceVersion }, items: selected })
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
const maxCharacters = 256
const maxOfAll = 4096

function bounded(warnings: readonly string[]): readonly string[] {
  let total = 0
  return warnings
    .map((text) => text.slice(0, maxCharacters))
    .filter((text) => (total += text.length) <= maxOfAll)
}

/** A header holds printable ASCII alone: the rest is escaped. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[^ -~]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  )
}

/** Server-side apply: creates the object, or changes the fields that the manager owns. Throws ApiError. */
function applyObject(
  written: WrittenKind,
  applied: JsonObject,
  target: Target,
  options: WriteOptions,
): Promise<Written> {
  const { kind, writer, clock } = written
  const { fieldManager: manager, force } = options
  if (manager === '')
    throw invalidMetaOptions('PatchOptions', [
      {
        field: 'fieldManager',
        reason: 'FieldValueRequired',
        message: 'Required value: is required for apply patch',
      },
    ])
  const { apiVersion, kind: givenKind } = applied
  if (typeof apiVersion !== 'string' || typeof givenKind !== 'string')
    throw new ApiError(400, 'invalid object type: apiVersion and kind are required for an apply patch')
  if (metadataOf(applied)['managedFields'] !== undefined)
    throw new ApiError(400, 'metadata.managedFields must be nil')
  refuseOther(kind, applied, kind.namespaced ? target : { name: target.name })
  const apply = { applied, manager, force, time: formatTime(clock.wallMs()) }
  const isKept = writer.get({ kind: kind.kind, ...target }) !== undefined
  if (!isKept && findShown(written, target) === undefined) {
    const { uid = '' } = metadataOf(applied)
    if (uid !== '') {
      const why = `uid mismatch: the provided object specified uid ${JSON.stringify(uid)}, and no existing object was found`
      throw conflict(kind, target.name, why)
    }
    const fresh = { ...applied, metadata: { ...metadataOf(applied), name: target.name } }
    const { object } = refusing(() => applyManifest({}, { ...apply, applied: fresh }))
    return createObject(written, object, target.namespace, options)
  }
  const change = (shown: JsonObject): JsonObject => {
    const { object, conflicts } = refusing(() => applyManifest(shown, apply))
    if (conflicts.length > 0) throw conflicting(conflicts)
    return object
  }
  return updateObject(written, target, options, 'object', change)
}

function conflicting(conflicts: readonly ApplyConflict[]): ApiError {
  const managers = [...new Set(conflicts.map(({ manager }) => manager))]
  const [first] = conflicts
  const told = managers.map((manager) => {
    const fields = conflicts.filter((each) => each.manager === manager).map(({ field }) => `- ${field}`)
    return `conflicts with ${manager}:\n${fields.join('\n')}`
  })
  const message =
    conflicts.length === 1 && first !== undefined
      ? `Apply failed with 1 conflict: conflict with ${first.manager}: ${first.field}`
      : `Apply failed with ${conflicts.length} conflicts: ${told.join('\n')}`
  const causes = conflicts.map(({ manager, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${manager}`,
    field,
  }))
  return new ApiError(409, message, undefined, { causes })
}

/** Throws ApiError Invalid for a patch that can't be applied. */
function refusing<T>(apply: () => T): T {
  try {
    return apply()
  } catch (error) {
    if (error instanceof PatchError) throw new ApiError(422, error.message)
    throw error
  }
}

type Patch = (current: JsonObject, patch: Json) => Json

const patches: Readonly<Record<string, Patch>> = {
  'application/json-patch+json': jsonPatch,
  'application/merge-patch+json': mergePatch,
  'application/strategic-merge-patch+json': strategicMerge,
}

/** What a patch makes of an object, and the fields that stand twice in it. */
interface ReadPatch {
  /** Throws ApiError Invalid. */
  readonly change: (current: JsonObject) => JsonObject
  readonly duplicates: readonly string[]
}

/**
 * Reads a patch. Throws ApiError UnsupportedMediaType, BadRequest.
 * @param others further types that the request could have had
 */
async function readPatch(request: ApiRequest, others: readonly string[] = []): Promise<ReadPatch> {
  const type = contentTypeOf(request)
  const apply = Object.hasOwn(patches, type) ? patches[type] : undefined
  if (apply === undefined) throw unknownFormat([...Object.keys(patches), ...others])
  const { patch, duplicates } = await readJsonPatch(request)
  if (apply === jsonPatch ? !Array.isArray(patch) : !isJsonObject(patch))
    throw new ApiError(
      400,
      `error decoding patch: ${apply === jsonPatch ? 'a JSON patch must be a list of operations' : 'a merge patch must be an object'}`,
    )
  return { change: (current) => refusing(() => asObject(apply(current, patch))), duplicates }
}

/** The options of a patch that is no apply. Throws ApiError Invalid. */
function readPatchOptions(query: URLSearchParams): WriteOptions {
  const options = readWriteOptions(query, 'PatchOptions')
  if (!query.has('force')) return options
  const message = 'Forbidden: may not be specified for non-apply patch'
  throw invalidMetaOptions('PatchOptions', [{ field: 'force', reason: 'FieldValueForbidden', message }])
}

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
  const { dryRun } = isPatch ? readPatchOptions(query) : readWriteOptions(query, 'UpdateOptions')
  const given = isPatch ? undefined : await readWrite(request, query, 'UpdateOptions')
  const change = given === undefined ? (await readPatch(request)).change : () => given.given
  const { kind, reader, writer } = written
  const target = { namespace: '', name }
  return writer.exclusively(async () => {
    const shown = findShown(written, target)
    if (shown === undefined) throw objectNotFound(qualifiedResource(kind), reader.list(), target)
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
