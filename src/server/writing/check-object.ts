import type { ServedKind } from '../../api/served-kind.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { decodeObject, decodePod, keptProblems } from '../../pod/decode/decode-pod.ts'
import { isKeptKind, isObjectKind } from '../../pod/objects/object-kinds.ts'
import type { FieldPath, FieldProblem } from '../../pod/schema/issues.ts'
import { formatFieldPath } from '../../pod/schema/issues.ts'
import {
  namespaceProblems,
  readinessGateProblems,
  withoutReadinessGates,
} from '../../decide/writing/check-object.ts'
import { invalid, strictDecoding, wrongType } from './write-errors.ts'
import type { FieldValidationMode } from './write-query.ts'

/** A valid object. */
export interface CheckedObject {
  /** Without unknown fields. */
  readonly manifest: JsonObject
  /** Warnings for the client. */
  readonly warnings: readonly string[]
}

/**
 * Checks an object as an API server does: unknown fields by the request's mode, then what validation says.
 * @throws ApiError BadRequest, Invalid
 */
export function checkObject(
  kind: ServedKind,
  manifest: JsonObject,
  {
    fieldValidation,
    duplicates = [],
    more = [],
  }: {
    readonly fieldValidation: FieldValidationMode
    readonly duplicates?: readonly string[]
    /** Checks of the object against the request's path and name. */
    readonly more?: readonly FieldProblem[]
  },
): CheckedObject {
  const { known, unknown } = splitUnknown(kind.kind, manifest)
  const strange = [
    ...duplicates.map((field) => `duplicate field ${JSON.stringify(field)}`),
    ...unknown.map((path) => `unknown field ${JSON.stringify(formatFieldPath(path))}`),
  ]
  if (strange.length > 0 && fieldValidation === 'Strict') throw strictDecoding(kind, strange)
  const wrongTypes = problemsOf(kind.kind, known).filter(({ reason }) => reason === 'FieldValueTypeInvalid')
  if (wrongTypes.length > 0) throw wrongType(kind, wrongTypes)
  const problems = [...problemsOf(kind.kind, known), ...more]
  const errors = problems.filter(({ severity }) => severity === 'error')
  const { metadata } = known
  const name = isJsonObject(metadata) ? metadata['name'] : undefined
  if (errors.length > 0) throw invalid(kind, typeof name === 'string' ? name : '', errors)
  return { manifest: known, warnings: fieldValidation === 'Ignore' ? [] : strange }
}

function problemsOf(kind: string, manifest: JsonObject): readonly FieldProblem[] {
  if (kind === 'Pod')
    return decodePod(withoutReadinessGates(manifest), 'Strict').problems.concat(
      readinessGateProblems(manifest),
    )
  if (kind === 'Namespace') return namespaceProblems(manifest)
  if (isKeptKind(kind)) return keptProblems(kind, manifest)
  return isObjectKind(kind) ? decodeObject(kind, manifest, 'Strict').problems : []
}

/** An unknown field hides the fields below it: repeats until there is none. */
function splitUnknown(
  kind: string,
  manifest: JsonObject,
): { readonly known: JsonObject; readonly unknown: readonly FieldPath[] } {
  const unknown = problemsOf(kind, manifest).flatMap(({ reason, path }) =>
    reason === 'UnknownField' ? [path] : [],
  )
  const known = unknown.reduce<Json>((value, path) => withoutField(value, path), manifest)
  return { known: isJsonObject(known) ? known : manifest, unknown }
}

function withoutField(value: Json, [step, ...rest]: FieldPath): Json {
  if (Array.isArray(value))
    return value.map((item: Json, index) => (index === step ? withoutField(item, rest) : item))
  if (!isJsonObject(value) || step === undefined) return value
  if (rest.length === 0) return Object.fromEntries(Object.entries(value).filter(([key]) => key !== step))
  const below = value[step]
  return below === undefined ? value : { ...value, [step]: withoutField(below, rest) }
}
