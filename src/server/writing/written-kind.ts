import type { NamespaceObject, PriorityClassObject, RuntimeClassObject } from '../../api/cluster-objects.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Clock } from '../../base/clock.ts'
import type { RandomSource } from '../../base/random.ts'
import { ApiError } from '../requests/api-error.ts'
import { objectNotFound } from '../requests/not-found.ts'
import type { ObjectWriter, WrittenObject } from '../requests/object-writer.ts'
import type { ResourceReader } from '../requests/readers.ts'
import { notWritable } from './write-errors.ts'

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

/**
 * The kept object, and how it is shown.
 * @throws ApiError NotFound; MethodNotAllowed for an object that a source gives
 */
export function findWritten(
  written: WrittenKind,
  target: Target,
): { readonly kept: WrittenObject; readonly shown: ResourceObject } {
  const { kind, reader, writer } = written
  const kept = writer.get({ kind: kind.kind, ...target })
  const shown = kept === undefined ? findShown(written, target) : findByUid(reader, kept.uid)
  if (shown === undefined) throw objectNotFound(kind.resource, reader.list(), target)
  if (kept === undefined) throw notWritable(kind, target.name, shown.metadata.annotations?.['podd.dev/path'])
  return { kept, shown }
}

/** The shown object of this uid; undefined where there is none. */
export function findByUid(reader: WrittenKind['reader'], uid: string): ResourceObject | undefined {
  return reader.list().find(({ metadata }) => metadata.uid === uid)
}

/** An object as plain data. */
export function plain(object: ResourceObject): JsonObject {
  const copy: unknown = JSON.parse(JSON.stringify(object))
  return isJsonObject(copy) ? copy : {}
}

/** Throws ApiError BadRequest where a body doesn't match the kind, name or namespace of the path. */
export function refuseOther(
  kind: ServedKind,
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
    throw new ApiError(
      400,
      'the namespace of the provided object does not match the namespace sent on the request',
    )
  }
  const givenName = metadata['name'] ?? ''
  if (name !== undefined && givenName !== '' && givenName !== name) {
    throw new ApiError(
      400,
      `the name of the object (${typeof givenName === 'string' ? givenName : JSON.stringify(givenName)}) does not match the name on the URL (${name})`,
    )
  }
}
