import { formatTime } from '../../base/clock.ts'
import type { JsonObject } from '../../base/json.ts'
import { applyManifest } from '../../decide/writing/apply-manifest.ts'
import type { ApplyConflict } from '../../decide/writing/apply-manifest.ts'
import { metadataOf } from '../../decide/writing/prepare-object.ts'
import { ApiError } from '../requests/api-error.ts'
import { invalidMetaOptions } from '../requests/invalid-options.ts'
import { createObject } from './create-object.ts'
import type { Written } from './create-object.ts'
import { updateObject } from './update-object.ts'
import type { WriteOptions } from './write-query.ts'
import { findShown, refuseOther } from './written-kind.ts'
import type { Target, WrittenKind } from './written-kind.ts'

/** Server-side apply: creates the object, or changes the fields that the manager owns. Throws ApiError. */
export function applyObject(
  written: WrittenKind,
  applied: JsonObject,
  { target, options }: { readonly target: Target; readonly options: WriteOptions },
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
    const fresh = { ...applied, metadata: { ...metadataOf(applied), name: target.name } }
    const { object } = applyManifest({}, { ...apply, applied: fresh })
    return createObject(written, object, { namespace: target.namespace, options })
  }
  const change = (shown: JsonObject): JsonObject => {
    const { object, conflicts } = applyManifest(shown, apply)
    if (conflicts.length > 0) throw conflicting(conflicts)
    return object
  }
  return updateObject(written, { target, options, scope: 'object', change })
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
