import type { FieldPath } from '../schema/field-path.ts'
import type { ContainerSpec } from '../schema/container-schema.ts'
import type { Issues } from './issues.ts'

const maxRules = 20
const maxExitCodes = 255

/** Source: pkg/apis/core/validation (validateContainerRestartPolicy), 1.36. */
export function validateRestartRules(
  { restartPolicy, restartPolicyRules }: ContainerSpec,
  path: FieldPath,
  issues: Issues,
): void {
  if (restartPolicyRules.length === 0) return
  const at = [...path, 'restartPolicyRules']
  if (restartPolicy === undefined) {
    issues.required([...path, 'restartPolicy'], 'must specify restartPolicy when restart rules are used')
  }
  if (restartPolicyRules.length > maxRules) {
    issues.tooMany(at, restartPolicyRules.length, maxRules)
  }
  for (const [index, { exitCodes }] of restartPolicyRules.entries()) {
    const rulePath = [...at, index, 'exitCodes']
    if (exitCodes === undefined) {
      issues.required(rulePath, 'must be specified')
      continue
    }
    const { values } = exitCodes
    if (values.length > maxExitCodes) issues.tooMany([...rulePath, 'values'], values.length, maxExitCodes)
  }
}
