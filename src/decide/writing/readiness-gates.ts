import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldProblem } from '../../pod/schema/issues.ts'
import type { PodCondition, PodStatus } from '../../pod/state/status.ts'
import { Issues } from '../../pod/schema/issues.ts'
import { qualifiedName } from '../../pod/validation/name-rules.ts'

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
  const gates = isJsonObject(spec) ? spec['readinessGates'] : undefined
  if (!Array.isArray(gates)) return []
  gates.forEach((gate: Json, index) => {
    const type = isJsonObject(gate) ? gate['conditionType'] : undefined
    const path = ['spec', 'readinessGates', index, 'conditionType']
    if (typeof type === 'string') issues.name(path, type, qualifiedName)
    else issues.required(path)
  })
  return issues.problems
}

/**
 * The status with the Ready condition that takes the gates into account (`pkg/kubelet/status/generate.go`,
 * GeneratePodReadyCondition, 1.36).
 */
export function gateReadiness(status: PodStatus, spec: JsonObject): PodStatus {
  const gates = spec['readinessGates']
  if (!Array.isArray(gates) || gates.length === 0) return status
  const missing = gates.flatMap((gate: Json) => {
    const type = isJsonObject(gate) ? gate['conditionType'] : undefined
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
