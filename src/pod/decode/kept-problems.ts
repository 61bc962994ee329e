import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { keptKinds } from '../kinds/kept-kinds.ts'
import type { KeptKind } from '../kinds/kept-kinds.ts'
import { checkValue } from '../schema/check-value.ts'
import type { FieldProblem } from '../schema/field-path.ts'
import { fillDefaults } from '../schema/fill-defaults.ts'
import { objectMetaSchema } from '../schema/pod-schema.ts'
import { Issues, fieldOf } from '../validation/issues.ts'
import { validateClusterMetadata, validateMetadata } from '../validation/validate-metadata.ts'
import { decodePod } from './decode-pod.ts'
import { dropTemplate } from './decode-object.ts'

/** The problems of an object of a kind that the API keeps for its clients. */
export function keptProblems(kind: KeptKind, given: JsonObject): readonly FieldProblem[] {
  const { schema, validate } = keptKinds[kind]
  const { manifest } = dropTemplate(given)
  const { template = null, ...rest } = manifest
  // A template has the problems of the pod that it describes.
  const own = kind === 'PodTemplate' ? rest : manifest
  const { problems } = checkValue(schema, own, { fieldValidation: 'Strict' })
  const issues = new Issues()
  const filled = { metadata: fillDefaults(objectMetaSchema, own['metadata'] ?? {}) }
  const metadata = fieldOf(filled, 'metadata', objectMetaSchema)
  validateClusterMetadata(kind, own['metadata'], ['metadata'], issues)
  if (metadata !== undefined) validateMetadata(metadata, ['metadata'], issues)
  validate(own, issues)
  return [
    ...problems,
    ...issues.problems,
    ...(kind === 'PodTemplate' ? templateProblems(template ?? {}) : []),
  ]
}

/** Source: ValidatePodTemplateSpec in pkg/apis/core/validation, 1.36. */
function templateProblems(template: Json): readonly FieldProblem[] {
  if (!isJsonObject(template)) {
    const { type } = keptKinds.PodTemplate.schema.fields.template
    return belowTemplate(checkValue(type, template, { fieldValidation: 'Strict' }).problems)
  }
  const { metadata: given } = template
  const metadata = isJsonObject(given) ? given : {}
  const pod = { ...template, apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'template' } }
  return belowTemplate(decodePod(pod, 'Strict').problems)
}

function belowTemplate(problems: readonly FieldProblem[]): readonly FieldProblem[] {
  return problems.map((problem) =>
    Object.assign({}, problem, {
      path: ['template', ...problem.path],
      near: problem.near && ['template', ...problem.near],
    }),
  )
}
