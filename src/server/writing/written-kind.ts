import type { NamespaceObject, PriorityClassObject, RuntimeClassObject } from '../../api/cluster-objects.ts'
import { qualifiedResource, splitApiVersion } from '../../api/resource.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import type { Clock } from '../../base/clock.ts'
import { asJson, isJsonObject, jsonAt, listOrEmpty, objectOrEmpty } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import type { RandomSource } from '../../base/random.ts'
import { formatFieldPath } from '../../pod/schema/issues.ts'
import type { FieldProblem } from '../../pod/schema/issues.ts'
import { ApiError, invalidMetaOptions, invalidOptions, objectNotFound } from '../requests/api-error.ts'
import type { ObjectWriter, ResourceReader, WrittenObject } from '../requests/readers.ts'
import { booleanParam } from '../requests/route.ts'

/** What writing needs of a kind. */
export interface WrittenKind {
  readonly kind: ServedKind
  readonly reader: ResourceReader<ResourceObject>
  readonly writer: ObjectWriter
  readonly namespaces: ResourceReader<NamespaceObject>
  readonly runtimeClasses: ResourceReader<RuntimeClassObject>
  readonly priorityClasses: ResourceReader<PriorityClassObject>
  readonly clock: Clock
  readonly random: RandomSource
}

export interface Target {
  readonly namespace: string
  readonly name: string
}

/** The shown object of that name; of a pod and its replacement, the replacement. */
export function findShown(
  { kind, reader }: WrittenKind,
  { namespace, name }: Target,
): ResourceObject | undefined {
  return reader
    .list()
    .findLast(
      ({ metadata }) => metadata.name === name && (!kind.namespaced || metadata.namespace === namespace),
    )
}

/** Throws ApiError NotFound; MethodNotAllowed for an object that a source gives. */
export function findWritten(
  written: WrittenKind,
  target: Target,
): { readonly kept: WrittenObject; readonly shown: ResourceObject } {
  const { kind, reader, writer } = written
  const kept = writer.get({ kind: kind.kind, ...target })
  const shown = kept === undefined ? findShown(written, target) : findByUid(reader, kept.uid)
  if (shown === undefined) throw objectNotFound(qualifiedResource(kind), reader.list(), target)
  if (kept === undefined) throw notWritable(kind, shown)
  return { kept, shown }
}

/** The shown object of this uid; undefined where there is none. */
export function findByUid(reader: WrittenKind['reader'], uid: string): ResourceObject | undefined {
  return reader.list().find(({ metadata }) => metadata.uid === uid)
}

export function plain(object: ResourceObject): JsonObject {
  return objectOrEmpty(asJson(object))
}

/** Whether a pod's phase is a last one. */
export function hasEnded(shown: ResourceObject): boolean {
  const phase = jsonAt(shown, 'status', 'phase')
  return phase === 'Succeeded' || phase === 'Failed'
}

/** Throws ApiError BadRequest where a body doesn't match the kind, name or namespace of the path. */
export function refuseOther(
  kind: Pick<ServedKind, 'kind' | 'apiVersion'>,
  object: JsonObject,
  { namespace, name }: Partial<Target>,
): void {
  const { apiVersion = kind.apiVersion, metadata } = object
  const givenKind = object['kind'] ?? kind.kind
  if (apiVersion !== kind.apiVersion || givenKind !== kind.kind) {
    throw new ApiError(
      400,
      `the object provided is unrecognized (must be of type ${kind.kind}): it is ${JSON.stringify(apiVersion)}, Kind=${JSON.stringify(givenKind)}`,
    )
  }
  if (!isJsonObject(metadata)) return
  const given = metadata['namespace'] ?? ''
  if (namespace !== undefined && given !== '' && given !== namespace) {
    const message = 'the namespace of the provided object does not match the namespace sent on the request'
    throw new ApiError(400, message)
  }
  const givenName = metadata['name'] ?? ''
  if (name !== undefined && givenName !== '' && givenName !== name) {
    const shown = typeof givenName === 'string' ? givenName : JSON.stringify(givenName)
    const message = `the name of the object (${shown}) does not match the name on the URL (${name})`
    throw new ApiError(400, message)
  }
}

type Named = Pick<ServedKind, 'kind' | 'apiVersion'> & { readonly resource: string }

/** The error of an API server for an invalid object (`apimachinery/pkg/api/errors`, NewInvalid, 1.36). */
export function invalid(kind: Named, name: string, problems: readonly FieldProblem[]): ApiError {
  const faults = problems.map(({ path, message, reason = 'FieldValueInvalid' }) => ({
    // Fields that only podd rejects are forbidden.
    reason: reason === 'RefusedHere' ? 'FieldValueForbidden' : reason,
    message,
    field: formatFieldPath(path),
  }))
  return invalidOptions({ kind: kind.kind, ...groupOf(kind), name }, faults)
}

type Decoded = Pick<WriteOptions, 'isPatch'>

/** The error of a strict decoder for unknown or duplicate fields. */
export function strictDecoding(kind: Named, faults: readonly string[], options: Decoded): ApiError {
  return cannotHandle(kind, `strict decoding error: ${faults.join(', ')}`, options)
}

/** The error of a decoder for a value of another type than its field's. */
export function wrongType(kind: Named, problems: readonly FieldProblem[], options: Decoded): ApiError {
  const texts = problems.map(({ path, message }) => `${formatFieldPath(path)}: ${message}`)
  return cannotHandle(kind, texts.join(', '), options)
}

/** Of a patch as `apiserver/pkg/endpoints/handlers/patch.go` (applyPatchToCurrentObject, 1.36) has it. */
function cannotHandle({ kind, apiVersion }: Named, why: string, { isPatch = false }: Decoded): ApiError {
  if (isPatch) {
    const cause = { reason: 'FieldValueInvalid', message: `Invalid value: ${why}`, field: 'patch' }
    return new ApiError(422, ` "" is invalid: patch: Invalid value: ${why}`, undefined, { causes: [cause] })
  }
  const version = JSON.stringify(splitApiVersion(apiVersion).version)
  return new ApiError(400, `${kind} in version ${version} cannot be handled as a ${kind}: ${why}`)
}

export function alreadyExists(kind: Named, name: string): ApiError {
  const message = `${qualifiedResource(kind)} ${JSON.stringify(name)} already exists`
  return new ApiError(409, message, undefined, detailsOf(kind, name), 'AlreadyExists')
}

export function conflict(kind: Named, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${qualifiedResource(kind)} ${JSON.stringify(name)}: ${why}`
  return new ApiError(409, message, undefined, detailsOf(kind, name))
}

/** The error for an object that a source gives: it is changed there, or in the object that it is made from. */
function notWritable({ resource }: Named, { metadata }: ResourceObject): ApiError {
  const { name, annotations = {} } = metadata
  const { 'podd.dev/path': path, 'podd.dev/source': source } = annotations
  const [owner] = listOrEmpty(jsonAt(metadata, 'ownerReferences'))
  const maker = jsonAt(owner, 'kind')
  const [from, then] =
    source === 'api' && typeof maker === 'string'
      ? [`is made by ${maker} ${JSON.stringify(jsonAt(owner, 'name'))}`, 'change that']
      : [
          path === undefined ? 'is not one that was written over the API' : `comes from ${path}`,
          'change it there',
        ]
  return new ApiError(
    405,
    `${resource} ${JSON.stringify(name)} ${from} and cannot be changed over the API: ${then}`,
    undefined,
    { name, kind: resource },
  )
}

function groupOf({ apiVersion }: Named): { readonly group?: string } {
  const { group } = splitApiVersion(apiVersion)
  return group === '' ? {} : { group }
}

function detailsOf(kind: Named, name: string): ApiError['details'] {
  return { name, ...groupOf(kind), kind: kind.resource }
}

export type FieldValidationMode = 'Strict' | 'Warn' | 'Ignore'

/** meta/v1 CreateOptions, UpdateOptions and PatchOptions from a query. */
export interface WriteOptions {
  /** A dry run: answers as if it were done, and changes nothing. */
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidationMode
  /** Empty by default. */
  readonly fieldManager: string
  /** Of an apply: takes fields over from other managers. */
  readonly force: boolean
  /** Fields that occur twice in the body. */
  readonly duplicates?: readonly string[]
  /** A patch leads to an object that can't be read: it is invalid, no bad request. */
  readonly isPatch?: boolean
}

/** The options of a request by its kind in meta/v1. */
export type OptionsKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'DeleteOptions'

/** Throws ApiError Invalid. */
export function readWriteOptions(query: URLSearchParams, kind: OptionsKind): WriteOptions {
  refuseManager(query.get('fieldManager') ?? '', kind)
  return {
    dryRun: readDryRun(query.getAll('dryRun'), kind),
    fieldValidation: readFieldValidation(query.get('fieldValidation') ?? '', kind),
    fieldManager: query.get('fieldManager') ?? '',
    force: booleanParam(query, 'force'),
  }
}

const maxManagerBytes = 128

/** Throws ApiError Invalid (`apimachinery/pkg/apis/meta/v1/validation`, ValidateFieldManager, 1.36). */
function refuseManager(manager: string, kind: OptionsKind): void {
  const field = 'fieldManager'
  if (Buffer.byteLength(manager) > maxManagerBytes) {
    const message = `Too long: may not be more than ${maxManagerBytes} bytes`
    throw invalidMetaOptions(kind, [{ field, reason: 'FieldValueTooLong', message }])
  }
  if (/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(manager)) return
  const message = `Invalid value: ${JSON.stringify(manager)}: should only contain printable characters`
  throw invalidMetaOptions(kind, [{ field, reason: 'FieldValueInvalid', message }])
}

/** Throws ApiError Invalid (`apimachinery/pkg/apis/meta/v1/validation`, ValidateDryRun, 1.36). */
export function readDryRun(values: readonly string[], kind: OptionsKind): boolean {
  const given = values.filter((value) => value !== '')
  if (given.every((value) => value === 'All')) return given.length > 0
  const message = `Unsupported value: ${JSON.stringify(given)}: supported values: "All"`
  throw invalidMetaOptions(kind, [{ field: 'dryRun', reason: 'FieldValueNotSupported', message }])
}

/** The default of an API server: it warns. */
function readFieldValidation(text: string, kind: OptionsKind): FieldValidationMode {
  if (text === '' || text === 'Warn') return 'Warn'
  if (text === 'Strict' || text === 'Ignore') return text
  const message = `Unsupported value: ${JSON.stringify(text)}: supported values: "", "Ignore", "Strict", "Warn"`
  throw invalidMetaOptions(kind, [{ field: 'fieldValidation', reason: 'FieldValueNotSupported', message }])
}
