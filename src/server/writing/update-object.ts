import type { ResourceObject } from '../../api/resource.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import { isJsonObject, jsonAt, listOrEmpty, objectOrEmpty, sameData } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { trackUpdate } from '../../decide/writing/apply-manifest.ts'
import type { Updater } from '../../decide/writing/apply-manifest.ts'
import { isOwnCondition, isReleased, judgeUpdate } from '../../decide/writing/judge-update.ts'
import type { UpdateScope } from '../../decide/writing/judge-update.ts'
import { isOwnAnnotation, metadataOf, prepareUpdate } from '../../decide/writing/prepare-object.ts'
import { isWorkloadKind } from '../../pod/objects/workload-kinds.ts'
import { objectNotFound } from '../requests/api-error.ts'
import type { WrittenObject } from '../requests/readers.ts'
import { checkObject } from './create-object.ts'
import type { Written } from './create-object.ts'
import { conflict, findByUid, findShown, findWritten, plain, refuseOther } from './written-kind.ts'
import type { Target, WriteOptions, WrittenKind } from './written-kind.ts'

/**
 * Fields of a spec that podd itself sets, by kind: a client that sends them back doesn't change them. Of a workload these are
 * all that its manifest leaves out.
 */
const derivedFields: Readonly<Record<string, readonly string[]>> = {
  Pod: ['nodeName', 'priority', 'overhead'],
  PersistentVolumeClaim: ['volumeName', 'storageClassName', 'volumeMode'],
}

/**
 * Changes an object. Throws ApiError, or PoddError OBJECT_NOT_KEPT.
 * @param change the changed object, from the current one; throws ApiError
 * @param updater the field manager; undefined for an apply, which names its own
 */
export function updateObject(
  written: WrittenKind,
  target: Target,
  options: WriteOptions,
  scope: UpdateScope,
  change: (shown: JsonObject) => JsonObject,
  updater?: Updater,
): Promise<Written> {
  return written.writer.exclusively(async () => {
    const { kind, reader, writer } = written
    const isGiven = writer.get({ kind: kind.kind, ...target }) === undefined
    if (isGiven && scope === 'ephemeralcontainers') return addDebuggers(written, target, options, change)
    const { kept, shown } = findWritten(written, target)
    const wanted = change(plain(shown))
    refuseOther(kind, wanted, kind.namespaced ? target : { name: target.name })
    refuseStale(kind, shown, wanted)
    if (scope === 'status') return writeStatus(written, kept, shown, wanted, options.dryRun)
    const asWritten = withoutDerived(kept.manifest, shown, wanted)
    const scoped = scope === 'object' ? asWritten : { ...kept.manifest, spec: asWritten['spec'] ?? null }
    const updated = prepareUpdate(kept.manifest, scoped)
    const prepared = updater === undefined ? updated : trackUpdate(plain(shown), updated, updater)
    const more = judgeUpdate(kept.manifest, prepared, scope)
    const { manifest, warnings } = checkObject(kind, prepared, options, more)
    const read = (): ResourceObject | undefined => findByUid(reader, kept.uid)
    if (sameData(manifest, kept.manifest)) return { object: read() ?? manifest, status: 200, warnings }
    if (options.dryRun) return { object: preview(shown, manifest), status: 200, warnings }
    await writer.put(manifest)
    const object = read() ?? manifest
    // A pod is removed when it has ended, a namespace with its content.
    if (kind.kind !== 'Pod' && kind.kind !== 'Namespace' && isReleased(manifest)) {
      await writer.remove(kept)
      await writer.settleNamespace(target.namespace)
    }
    return { object, status: 200, warnings }
  })
}

/**
 * Adds ephemeral containers to a pod that comes from a file or a URL: beside its manifest, which stays as it is. Throws
 * ApiError, or PoddError POD_GONE, RECORD_WRITE.
 */
async function addDebuggers(
  written: WrittenKind,
  target: Target,
  options: WriteOptions,
  change: (shown: JsonObject) => JsonObject,
): Promise<Written> {
  const { kind, reader, writer } = written
  const shown = findShown(written, target)
  if (shown === undefined) throw objectNotFound(kind.resource, reader.list(), target)
  const wanted = change(plain(shown))
  refuseOther(kind, wanted, target)
  refuseStale(kind, shown, wanted)
  const { status: _status, ...rest } = plain(shown)
  const before = prepareUpdate(rest, { ...rest, spec: withoutFound(rest['spec']) })
  const manifest = prepareUpdate(before, { ...before, spec: withoutFound(wanted['spec']) })
  const more = judgeUpdate(before, manifest, 'ephemeralcontainers')
  const checked = checkObject(kind, manifest, options, more)
  const known = namesOf(before)
  const added = listOrEmpty(jsonAt(checked.manifest, 'spec', 'ephemeralContainers')).filter(
    (container): container is JsonObject =>
      isJsonObject(container) && !known.includes(container['name'] ?? null),
  )
  const { warnings } = checked
  if (options.dryRun) return { object: preview(shown, checked.manifest), status: 200, warnings }
  if (added.length > 0) await writer.addDebuggers(shown.metadata.uid, added)
  return { object: findByUid(reader, shown.metadata.uid) ?? shown, status: 200, warnings }
}

function namesOf(pod: JsonObject): readonly Json[] {
  return listOrEmpty(jsonAt(pod, 'spec', 'ephemeralContainers')).map(
    (container) => jsonAt(container, 'name') ?? null,
  )
}

/** Without what podd adds where it shows a pod. */
function withoutFound(spec: Json | undefined): Json {
  const found = derivedFields['Pod'] ?? []
  return Object.fromEntries(Object.entries(objectOrEmpty(spec)).filter(([key]) => !found.includes(key)))
}

/**
 * Keeps the conditions that a client writes into a status, and shows them beside podd's own; podd owns the rest. Kinds
 * without a status take none.
 */
async function writeStatus(
  { kind, reader, writer }: WrittenKind,
  kept: WrittenObject,
  shown: ResourceObject,
  wanted: JsonObject,
  dryRun: boolean,
): Promise<Written> {
  const { status } = wanted
  const conditions = listOrEmpty(jsonAt(status, 'conditions')).filter(
    (condition) => isJsonObject(condition) && !isOwnCondition(condition['type']),
  )
  const prepared = prepareUpdate(kept.manifest, { ...kept.manifest, metadata: metadataOf(wanted) })
  const manifest = { ...prepared, status: { conditions } }
  if (kind.kind === 'Pod' && !dryRun && !sameData(manifest, kept.manifest)) await writer.put(manifest)
  const object = findByUid(reader, kept.uid) ?? shown
  return { object: withTold(plain(object), status), status: 200, warnings: [] }
}

/** A written status holds until podd's own replaces it, at once. */
function withTold(object: JsonObject, status: Json | undefined): JsonObject {
  const { message, reason, conditions } = objectOrEmpty(status)
  const found = objectOrEmpty(object['status'])
  const told = {
    ...(Array.isArray(conditions) &&
      Array.isArray(found['conditions']) && {
        conditions: found['conditions'].map((condition: Json) => toldOf(condition, conditions)),
      }),
    ...(typeof message === 'string' && { message }),
    ...(typeof reason === 'string' && { reason }),
  }
  return { ...object, status: { ...found, ...told } }
}

function toldOf(found: Json, told: readonly Json[]): Json {
  const type = jsonAt(found, 'type')
  return told.find((condition) => isJsonObject(condition) && condition['type'] === type) ?? found
}

function withoutDerived(before: JsonObject, shown: ResourceObject, wanted: JsonObject): JsonObject {
  const [kept, seen, spec] = [before['spec'], plain(shown)['spec'], wanted['spec']]
  if (!isJsonObject(kept) || !isJsonObject(seen) || !isJsonObject(spec)) return wanted
  const found = isWorkloadKind(shown.kind) ? Object.keys(seen) : (derivedFields[shown.kind] ?? [])
  const derived = found.filter((key) => kept[key] === undefined && sameData(spec[key], seen[key]))
  const own = Object.entries(spec).filter(([key]) => !derived.some((field) => field === key))
  return { ...wanted, spec: Object.fromEntries(own) }
}

/** The object as it would be shown. */
function preview(shown: ResourceObject, manifest: JsonObject): JsonObject {
  const before = plain(shown)
  const { annotations: written } = metadataOf(manifest)
  const own = Object.entries(shown.metadata.annotations ?? {}).filter(([key]) => isOwnAnnotation(key))
  const annotations = [...Object.entries(objectOrEmpty(written)), ...own]
  return {
    ...before,
    ...manifest,
    metadata: {
      ...metadataOf(manifest),
      ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
      resourceVersion: shown.metadata.resourceVersion ?? '',
    },
    ...(before['status'] === undefined ? {} : { status: before['status'] }),
  }
}

const modified = 'the object has been modified; please apply your changes to the latest version and try again'

/** Throws ApiError Conflict where the client refers to another version, or to another object of that name. */
export function refuseStale(kind: ServedKind, { metadata: shown }: ResourceObject, wanted: JsonObject): void {
  const { resourceVersion = '', uid = '' } = metadataOf(wanted)
  if (resourceVersion !== '' && resourceVersion !== '0' && resourceVersion !== shown.resourceVersion)
    throw conflict(kind, shown.name, modified)
  if (uid !== '' && uid !== shown.uid) {
    const uids = `UID in precondition: ${JSON.stringify(uid)}, UID in object meta: ${shown.uid}`
    throw conflict(kind, shown.name, `Precondition failed: ${uids}`)
  }
}
