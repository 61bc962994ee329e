import type { ResourceObject } from '../../api/resource.ts'
import { formatTime } from '../../base/clock.ts'
import { jsonAt, objectOrEmpty, textsAt } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { finalizersOf } from '../../decide/writing/judge-update.ts'
import { metadataOf } from '../../decide/writing/prepare-object.ts'
import { isWorkloadKind } from '../../pod/objects/workload-kinds.ts'
import type { WorkloadKind } from '../../pod/objects/workload-kinds.ts'
import { ApiError, invalidMetaOptions } from '../requests/api-error.ts'
import { booleanParam, integerParam } from '../requests/route.ts'
import type { WrittenObject } from '../requests/readers.ts'
import type { AskedEnd } from '../../pod/state/pod-record.ts'
import {
  conflict,
  invalid,
  readDryRun,
  findByUid,
  findShown,
  findWritten,
  plain,
  hasEnded,
} from './written-kind.ts'
import type { Target, WrittenKind } from './written-kind.ts'

/** meta/v1 DeleteOptions. */
export interface DeleteOptions {
  readonly dryRun: boolean
  /** Undefined: the object's own. */
  readonly graceSeconds: number | undefined
  readonly uid: string | undefined
  readonly resourceVersion: string | undefined
  /** What the object has made is to stay. */
  readonly orphans: boolean
}

const policies: readonly unknown[] = [undefined, null, '', 'Background', 'Foreground', 'Orphan']

/** Reads the options of a delete from its body, or where there is none from its query. Throws ApiError. */
export function readDeleteOptions(query: URLSearchParams, body: JsonObject | undefined): DeleteOptions {
  if (body === undefined) {
    const policy = query.get('propagationPolicy') ?? undefined
    const isOrphaning = query.has('orphanDependents') ? booleanParam(query, 'orphanDependents') : undefined
    refusePolicy(policy, isOrphaning)
    return {
      dryRun: readDryRun(query.getAll('dryRun'), 'DeleteOptions'),
      graceSeconds: integerParam(query, 'gracePeriodSeconds'),
      uid: undefined,
      resourceVersion: undefined,
      orphans: policy === 'Orphan' || isOrphaning === true,
    }
  }
  const { gracePeriodSeconds, preconditions, propagationPolicy, orphanDependents, kind } = body
  if (kind !== undefined && kind !== '' && kind !== 'DeleteOptions')
    throw new ApiError(400, `no kind ${JSON.stringify(kind)} is known for the options of a delete`)
  if (gracePeriodSeconds !== undefined && gracePeriodSeconds !== null && !isInteger(gracePeriodSeconds))
    throw new ApiError(400, 'gracePeriodSeconds of DeleteOptions must be a whole number')
  refusePolicy(propagationPolicy, orphanDependents)
  const { uid, resourceVersion } = objectOrEmpty(preconditions)
  return {
    dryRun: readDryRun(textsAt(body, 'dryRun'), 'DeleteOptions'),
    graceSeconds: typeof gracePeriodSeconds === 'number' ? gracePeriodSeconds : undefined,
    uid: typeof uid === 'string' ? uid : undefined,
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : undefined,
    orphans: propagationPolicy === 'Orphan' || orphanDependents === true,
  }
}

function isInteger(value: Json): boolean {
  return typeof value === 'number' && Number.isInteger(value)
}

/** Throws ApiError Invalid (`apimachinery/pkg/apis/meta/v1/validation`, ValidateDeleteOptions, 1.36). */
function refusePolicy(policy: Json | undefined, orphanDependents: Json | undefined): void {
  const field = 'propagationPolicy'
  const given = JSON.stringify(policy)
  if (!policies.includes(policy)) {
    const message = `Unsupported value: ${given}: supported values: "Foreground", "Background", "Orphan", "nil"`
    throw invalidMetaOptions('DeleteOptions', [{ field, reason: 'FieldValueNotSupported', message }])
  }
  if (typeof policy !== 'string' || policy === '' || typeof orphanDependents !== 'boolean') return
  const message = `Invalid value: ${given}: orphanDependents and deletionPropagation cannot be both set`
  throw invalidMetaOptions('DeleteOptions', [{ field, reason: 'FieldValueInvalid', message }])
}

/**
 * Deletes an object; a pod terminates first, and one of a workload is replaced. Returns what to answer. Throws ApiError,
 * OBJECT_NOT_KEPT.
 */
export function deleteObject(
  written: WrittenKind,
  target: Target,
  options: DeleteOptions,
  asked: AskedEnd = 'deleted',
): Promise<unknown> {
  return written.writer.exclusively(async () => {
    const { kind, reader, writer } = written
    if (kind.kind === 'Namespace') refuseStanding(target.name)
    if (options.orphans && isWorkloadKind(kind.kind)) throw goesWithPods(kind.kind)
    const owned = findOwned(written, target)
    if (owned !== undefined) return deleteOwned(written, owned, options, asked)
    const { kept, shown } = findWritten(written, target)
    refusePreconditions(written, shown, options)
    const details = { name: shown.metadata.name, kind: kind.resource, uid: shown.metadata.uid }
    const answer = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
    if (kind.kind === 'Namespace') return options.dryRun ? shown : deleteNamespace(written, kept, shown)
    if (kind.kind !== 'Pod') {
      const isHeld = finalizersOf(kept.manifest).length > 0
      if (!isHeld && !options.dryRun) await writer.remove(kept)
      if (!isHeld || options.dryRun) return answer
      await writer.put(withDeletion(kept.manifest, 0, written.clock.wallMs()))
      return findByUid(reader, kept.uid) ?? shown
    }
    const graceSeconds = graceOf(written, shown, kept.manifest, options.graceSeconds)
    const manifest = withDeletion(kept.manifest, graceSeconds, written.clock.wallMs())
    const { deletionTimestamp = null, deletionGracePeriodSeconds = null } = metadataOf(manifest)
    if (options.dryRun)
      return { ...shown, metadata: { ...shown.metadata, deletionTimestamp, deletionGracePeriodSeconds } }
    await writer.put(withLast(manifest, shown))
    writer.endPod(kept.uid, graceSeconds, asked)
    return findByUid(reader, kept.uid) ?? shown
  })
}

/** The error of a delete that would leave pods, which podd runs for their workload alone. */
function goesWithPods(kind: WorkloadKind): ApiError {
  const made = kind === 'CronJob' ? 'Jobs' : 'pods'
  const message = `Forbidden: the ${made} of a ${kind} go with it, and none were ended: delete it with another policy (kubectl: without --cascade=orphan)`
  return invalidMetaOptions('DeleteOptions', [
    { field: 'propagationPolicy', reason: 'FieldValueForbidden', message },
  ])
}

/** A pod that a workload has made, from whichever source that is: of it there is no document to be changed. */
function findOwned(written: WrittenKind, target: Target): ResourceObject | undefined {
  const { kind, writer } = written
  if (kind.kind !== 'Pod' || writer.get({ kind: kind.kind, ...target }) !== undefined) return undefined
  const shown = findShown(written, target)
  return shown !== undefined && isOwned(shown) ? shown : undefined
}

/** Whether a workload has made it; of objects that were written over the API the owner says nothing. */
export function isOwned({ metadata }: ResourceObject): boolean {
  return 'ownerReferences' in metadata
}

function deleteOwned(
  written: WrittenKind,
  shown: ResourceObject,
  options: DeleteOptions,
  asked: AskedEnd,
): object {
  refusePreconditions(written, shown, options)
  const { uid, name } = shown.metadata
  const own = plain(shown)
  const graceSeconds = graceOf(written, shown, own, options.graceSeconds)
  if (!options.dryRun && !written.writer.endOwned(uid, graceSeconds, asked))
    throw conflict(written.kind, name, 'podd has just started, and does not know yet what runs of it')
  const { deletionTimestamp = null, deletionGracePeriodSeconds = null } = metadataOf(
    withDeletion(own, graceSeconds, written.clock.wallMs()),
  )
  return { ...shown, metadata: { ...shown.metadata, deletionTimestamp, deletionGracePeriodSeconds } }
}

/** Throws ApiError Forbidden (`apiserver/pkg/admission/plugin/namespace/lifecycle`, 1.36). */
function refuseStanding(name: string): void {
  if (name !== 'default' && name !== 'kube-system') return
  const message = `namespaces ${JSON.stringify(name)} is forbidden: this namespace may not be deleted`
  throw new ApiError(403, message, undefined, { name, kind: 'namespaces' })
}

/** Deletes everything written into a namespace; the namespace remains until its last pod has ended. */
async function deleteNamespace(
  { writer, reader, clock }: WrittenKind,
  kept: WrittenObject,
  shown: ResourceObject,
): Promise<unknown> {
  const nowMs = clock.wallMs()
  await writer.put(withDeletion(kept.manifest, 0, nowMs))
  const content = writer.list().filter(({ namespace }) => namespace === kept.name)
  for (const object of content) {
    if (object.kind !== 'Pod') {
      if (finalizersOf(object.manifest).length === 0) await writer.remove(object)
      else await writer.put(withDeletion(object.manifest, 0, nowMs))
      continue
    }
    const graceSeconds = Math.max(0, ownGraceSeconds(object.manifest))
    await writer.put(withDeletion(object.manifest, graceSeconds, nowMs))
    writer.endPod(object.uid, graceSeconds, 'deleted')
  }
  const answer = findByUid(reader, kept.uid) ?? shown
  await writer.settleNamespace(kept.name)
  return answer
}

function ownGraceSeconds(manifest: JsonObject): number {
  const own = jsonAt(manifest, 'spec', 'terminationGracePeriodSeconds')
  return typeof own === 'number' ? own : 30
}

/** The grace period of a pod (`pkg/registry/core/pod/strategy.go`, CheckGracefulDelete, 1.36). */
function graceOf(
  { kind }: WrittenKind,
  shown: ResourceObject,
  manifest: JsonObject,
  asked: number | undefined,
): number {
  const grace = asked ?? ownGraceSeconds(manifest)
  if (!Number.isInteger(grace))
    throw invalid(kind, shown.metadata.name, [
      { severity: 'error', path: ['gracePeriodSeconds'], message: 'Invalid value: must be an integer' },
    ])
  if (hasEnded(shown)) return 0
  return grace < 0 ? 1 : grace
}

/** A second request can only shorten the time that is left (`apiserver/pkg/registry/rest/delete.go`, BeforeDelete, 1.36). */
function withDeletion(manifest: JsonObject, graceSeconds: number, nowMs: number): JsonObject {
  const metadata = metadataOf(manifest)
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata
  const isShorter =
    typeof deletionGracePeriodSeconds === 'number' && graceSeconds >= deletionGracePeriodSeconds
  if (typeof deletionTimestamp === 'string' && isShorter) return manifest
  const begun =
    typeof deletionTimestamp === 'string' && typeof deletionGracePeriodSeconds === 'number'
      ? Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000
      : nowMs
  return {
    ...manifest,
    metadata: {
      ...metadata,
      deletionTimestamp: formatTime(begun + graceSeconds * 1000),
      deletionGracePeriodSeconds: graceSeconds,
    },
  }
}

/** Keeps the last status for an object that finalizers hold, also where podd is killed before the pod has ended. */
function withLast(manifest: JsonObject, shown: ResourceObject): JsonObject {
  const { status } = plain(shown)
  return finalizersOf(manifest).length === 0 || status === undefined ? manifest : { ...manifest, status }
}

function refusePreconditions(
  { kind }: WrittenKind,
  { metadata }: ResourceObject,
  { uid, resourceVersion }: DeleteOptions,
): void {
  const refuse = (what: string, wanted: string, found: string, reason: string): ApiError => {
    const why = `the ${what} in the precondition (${wanted}) does not match the ${what} in record (${found}). The object might have been ${reason}`
    return conflict({ ...kind, resource: kind.kind }, metadata.name, why)
  }
  if (uid !== undefined && uid !== metadata.uid)
    throw refuse('UID', uid, metadata.uid, 'deleted and then recreated')
  const revision = metadata.resourceVersion ?? ''
  if (resourceVersion !== undefined && resourceVersion !== revision)
    throw refuse('ResourceVersion', resourceVersion, revision, 'modified')
}
