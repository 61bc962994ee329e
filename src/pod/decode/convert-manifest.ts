import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldProblem } from '../schema/field-path.ts'

/**
 * Converts values of a checked manifest to those that the API server keeps: a negative terminationGracePeriodSeconds is
 * read as 1 (`pkg/apis/core/v1/conversion.go` Convert_v1_Pod_To_core_Pod; the warning is that of
 * `pkg/api/pod/warnings.go`, 1.36). Idempotent.
 */
export function convertManifest(manifest: JsonObject): {
  readonly manifest: JsonObject
  readonly warnings: readonly FieldProblem[]
} {
  const spec = manifest['spec']
  const grace = isJsonObject(spec) ? spec['terminationGracePeriodSeconds'] : undefined
  if (!isJsonObject(spec) || typeof grace !== 'number' || grace >= 0) return { manifest, warnings: [] }
  return {
    manifest: { ...manifest, spec: { ...spec, terminationGracePeriodSeconds: 1 } },
    warnings: [
      {
        severity: 'warning',
        path: ['spec', 'terminationGracePeriodSeconds'],
        message: 'must be >= 0; negative values are invalid and will be treated as 1',
      },
    ],
  }
}
