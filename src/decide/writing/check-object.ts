/* Rules for what is written over the API alone: namespaces, and the readiness gates of pods. */
import { isJsonObject, jsonAt, listOrEmpty, objectOrEmpty, textEntries } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { clusterMetaSchema } from '../../pod/objects/object-kinds.ts'
import { checkValue } from '../../pod/schema/check-value.ts'
import { Issues } from '../../pod/schema/issues.ts'
import type { FieldProblem } from '../../pod/schema/issues.ts'
import { any, ignored, list, map, object, oneOf, required, string } from '../../pod/schema/types.ts'
import type { PodCondition, PodStatus } from '../../pod/state/status.ts'
import { dnsLabel, qualifiedName } from '../../pod/validation/name-rules.ts'
import { validateClusterMetadata, validateMetadata } from '../../pod/validation/validate-metadata.ts'

const byServer = 'podd sets it itself'

const namespaceSchema = object('Namespace', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('Namespace')),
  metadata: required(clusterMetaSchema),
  spec: ignored(object('NamespaceSpec', { finalizers: ignored(list(string), byServer) }), byServer),
  status: ignored(map(any), byServer),
})

/** The problems of a written namespace (`pkg/apis/core/validation`, ValidateNamespace, 1.36). */
export function namespaceProblems(manifest: JsonObject): readonly FieldProblem[] {
  const metadata = withoutTemplate(manifest['metadata'])
  const { problems } = checkValue(namespaceSchema, { ...manifest, metadata }, { fieldValidation: 'Strict' })
  const issues = new Issues()
  const name = jsonAt(metadata, 'name')
  if (typeof name === 'string') issues.of('metadata', 'name').name(name, dnsLabel)
  const { labels, annotations } = objectOrEmpty(metadata)
  const texts = { labels: textEntries(labels), annotations: textEntries(annotations) }
  // The name has a stricter rule, and was already reported.
  validateMetadata({ name: 'checked', namespace: 'default', ...texts }, issues.of('metadata'))
  validateClusterMetadata('Namespace', metadata, issues.of('metadata'))
  return [...problems, ...issues.problems]
}

/** A name's template stands beside the name. */
function withoutTemplate(metadata: Json | undefined): Json {
  if (!isJsonObject(metadata)) return metadata ?? null
  const { generateName: _template, ...rest } = metadata
  return rest
}

/**
 * The manifest for the sync loop, without readiness gates: they delay no container, and only for pods written over the
 * API can a client set their conditions.
 */
export function withoutReadinessGates(manifest: JsonObject): JsonObject {
  const { spec } = manifest
  if (!isJsonObject(spec) || spec['readinessGates'] === undefined) return manifest
  const { readinessGates: _gates, ...rest } = spec
  return { ...manifest, spec: rest }
}

/** The problems of a pod's readiness gates (`pkg/apis/core/validation`, validateReadinessGates, 1.36). */
export function readinessGateProblems({ spec }: JsonObject): readonly FieldProblem[] {
  const issues = new Issues()
  listOrEmpty(jsonAt(spec, 'readinessGates')).forEach((gate, index) => {
    const type = jsonAt(gate, 'conditionType')
    const at = issues.of('spec', 'readinessGates', index, 'conditionType')
    if (typeof type === 'string') at.name(type, qualifiedName)
    else at.required()
  })
  return issues.problems
}

/**
 * The status with the Ready condition that takes the gates into account (`pkg/kubelet/status/generate.go`,
 * GeneratePodReadyCondition, 1.36).
 */
export function gateReadiness(status: PodStatus, spec: JsonObject): PodStatus {
  const missing = listOrEmpty(spec['readinessGates']).flatMap((gate) => {
    const type = jsonAt(gate, 'conditionType')
    if (typeof type !== 'string') return []
    const found = status.conditions.find((condition) => condition.type === type)
    if (found === undefined)
      return [`corresponding condition of pod readiness gate ${JSON.stringify(type)} does not exist.`]
    if (found.status === 'True') return []
    return [`the status of pod readiness gate ${JSON.stringify(type)} is not "True", but ${found.status}`]
  })
  if (missing.length === 0) return status
  const gated = (condition: PodCondition): PodCondition =>
    condition.type === 'Ready' && condition.status === 'True'
      ? { ...condition, status: 'False', reason: 'ReadinessGatesNotReady', message: missing.join(', ') }
      : condition
  return { ...status, conditions: status.conditions.map((condition) => gated(condition)) }
}
