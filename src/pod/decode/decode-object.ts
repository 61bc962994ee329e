import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldValidation } from '../schema/check-value.ts'
import { checkValue } from '../schema/check-value.ts'
import { ignoredWarnings } from './decode-pod.ts'
import { mergeProblems } from './merge-problems.ts'
import type { FieldProblem } from '../schema/field-path.ts'
import { objectKinds, validateObject } from '../kinds/object-kinds.ts'
import type { LocalObject, ObjectKind } from '../kinds/object-kinds.ts'
import { objectFromManifest } from '../objects/local-object.ts'

/** The result of decoding: an object with warnings, or the errors. */
export interface DecodedObject {
  readonly accepted: { readonly object: LocalObject; readonly manifest: JsonObject } | undefined
  readonly problems: readonly FieldProblem[]
}

/** One manifest of a kind that pods refer to, checked, validated and defaulted. */
export function decodeObject(
  kind: ObjectKind,
  given: JsonObject,
  fieldValidation: FieldValidation,
): DecodedObject {
  const { schema, isSecret } = objectKinds[kind]
  const { manifest: own, template } = dropTemplate(given)
  const { value, whole, ...checked } = checkValue(schema, own, { fieldValidation })
  const found = [
    ...checked.problems.map((problem) => (isSecret ? redact(problem) : problem)),
    ...ignoredWarnings(checked.ignored, template, { isDump: isDump(given), what: 'an object' }),
  ]
  const looked = isJsonObject(whole) ? whole : { kind }
  const object = objectFromManifest(looked)
  const problems = mergeProblems(found, checked.meant, validateObject(object, looked))
  if (!isJsonObject(value) || problems.some((problem) => problem.severity === 'error')) {
    return { accepted: undefined, problems }
  }
  return { accepted: { object, manifest: value }, problems }
}

/** The template of a name, which a dump has beside the name. */
export function dropTemplate(given: JsonObject): { manifest: JsonObject; template: readonly string[] } {
  const { metadata } = given
  if (!isJsonObject(metadata) || typeof metadata['name'] !== 'string' || metadata['name'] === '')
    return { manifest: given, template: [] }
  const { generateName } = metadata
  if (typeof generateName !== 'string' || generateName === '') return { manifest: given, template: [] }
  return {
    manifest: { ...given, metadata: { ...metadata, generateName: null } },
    template: ['metadata.generateName'],
  }
}

function isDump({ metadata }: JsonObject): boolean {
  if (!isJsonObject(metadata)) return false
  return ['uid', 'resourceVersion', 'managedFields'].some((key) => (metadata[key] ?? '') !== '')
}

/** Removes quoted values from problems about Secrets. */
function redact(problem: FieldProblem): FieldProblem {
  const [top] = problem.path
  const isMeta = top === 'apiVersion' || top === 'kind' || top === 'metadata'
  if (isMeta || !problem.message.startsWith('Invalid value')) return problem
  const isEntry = problem.path.length > 1
  return {
    severity: problem.severity,
    path: problem.path,
    reason: problem.reason,
    message: isEntry ? 'Invalid value: must be a string' : 'Invalid value: not of the right type',
    hint: isEntry ? 'put quotes around it' : undefined,
  }
}
