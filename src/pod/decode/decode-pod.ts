import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldValidation } from '../schema/check-value.ts'
import { checkValue } from '../schema/check-value.ts'
import { convertManifest } from './convert-manifest.ts'
import { dropClusterFields } from './drop-cluster-fields.ts'
import { mergeProblems } from './merge-problems.ts'
import type { FieldPath, FieldProblem } from '../schema/field-path.ts'
import { formatFieldPath } from '../schema/field-path.ts'
import { podFromManifest } from './pod-from-manifest.ts'
import type { Pod } from '../schema/pod-schema.ts'
import { podSchema } from '../schema/pod-schema.ts'
import { validatePod } from '../validation/validate-pod.ts'

/** The result of decoding: a Pod with warnings, or the errors. */
export interface DecodedPod {
  readonly accepted: { readonly pod: Pod; readonly manifest: JsonObject } | undefined
  readonly problems: readonly FieldProblem[]
}

/**
 * One Pod's manifest, of kind Pod, checked, validated and defaulted. Paths in problems are relative to the manifest.
 */
export function decodePod(given: JsonObject, fieldValidation: FieldValidation): DecodedPod {
  const { manifest: own, dropped, isDump, originalPath } = dropClusterFields(given)
  const { value, whole, ...checked } = checkValue(podSchema, own, { fieldValidation })
  const toGiven = (problem: FieldProblem): FieldProblem => ({
    ...problem,
    path: originalPath(problem.path),
    ...(problem.near && { near: originalPath(problem.near) }),
  })
  const found = [...checked.problems, ...ignoredWarnings(checked.ignored, dropped, { isDump, what: 'a pod' })]
  const asked = isJsonObject(whole) ? convertManifest(whole) : { manifest: {}, warnings: [] }
  const pod = podFromManifest(asked.manifest)
  const problems = mergeProblems(found, checked.meant, [
    ...asked.warnings,
    ...validatePod(pod, asked.manifest, checked.problems),
  ])
  const manifest = isJsonObject(value) ? convertManifest(value).manifest : undefined
  const isBad = manifest === undefined || problems.some((problem) => problem.severity === 'error')
  return {
    accepted: isBad ? undefined : { pod, manifest },
    problems: problems.map((problem) => toGiven(problem)),
  }
}

/** Fields that a cluster wrote get one warning together; each ignored field that a user wrote gets its own. */
export function ignoredWarnings(
  ignored: readonly { readonly path: FieldPath; readonly reason: string }[],
  dropped: readonly string[],
  { isDump, what }: { readonly isDump: boolean; readonly what: string },
): readonly FieldProblem[] {
  const isClusters = (path: FieldPath): boolean => isDump || path[0] !== 'spec'
  const clusters = ignored.filter(({ path }) => isClusters(path))
  const names = [...clusters.map(({ path }) => formatFieldPath(path)), ...dropped]
  const together: FieldProblem[] =
    names.length === 0
      ? []
      : [
          {
            severity: 'warning',
            path: clusters[0]?.path ?? [],
            message: `dropped what a cluster writes into ${what}: ${names.join(', ')}`,
          },
        ]
  const single = ignored
    .filter(({ path }) => !isClusters(path))
    .map(({ path, reason }): FieldProblem => ({
      severity: 'warning',
      path,
      message: `has no effect: ${reason}`,
    }))
  return [...together, ...single]
}
