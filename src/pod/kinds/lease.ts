import type { JsonObject } from '../../base/json.ts'
import { objectMetaSchema } from '../schema/pod-schema.ts'
import { fillDefaults } from '../schema/fill-defaults.ts'
import { dateTime, int32, object, oneOf, optional, required, string } from '../schema/types.ts'
import type { Issues } from '../validation/issues.ts'
import { fieldOf } from '../validation/issues.ts'

const leaseSpecSchema = object('LeaseSpec', {
  holderIdentity: optional(string),
  leaseDurationSeconds: optional(int32),
  acquireTime: optional(dateTime),
  renewTime: optional(dateTime),
  leaseTransitions: optional(int32),
  strategy: optional(oneOf('OldestEmulationVersion')),
  preferredHolder: optional(string),
})

export const leaseSchema = object('Lease', {
  apiVersion: required(oneOf('coordination.k8s.io/v1')),
  kind: required(oneOf('Lease')),
  metadata: required(objectMetaSchema),
  spec: optional(leaseSpecSchema),
})

/** Source: ValidateLeaseSpec in pkg/apis/coordination/validation, 1.36. */
export function validateLease({ spec: given = {} }: JsonObject, issues: Issues): void {
  const spec = fieldOf({ spec: fillDefaults(leaseSpecSchema, given) }, 'spec', leaseSpecSchema)
  const { leaseDurationSeconds = 1, leaseTransitions = 0, strategy, preferredHolder = '' } = spec ?? {}
  if (leaseDurationSeconds <= 0)
    issues.invalid(['spec', 'leaseDurationSeconds'], leaseDurationSeconds, 'must be greater than 0')
  if (leaseTransitions < 0)
    issues.invalid(['spec', 'leaseTransitions'], leaseTransitions, 'must be greater than or equal to 0')
  if (preferredHolder !== '' && strategy === undefined)
    issues.forbidden(['spec', 'preferredHolder'], 'may only be specified if `strategy` is defined')
}
