import { defaulted, object, optional, requiredOrZero, string } from './types.ts'

/** Items of lists that podd refuses; their types are checked nevertheless. */
export const readinessGateSchema = object('PodReadinessGate', { conditionType: requiredOrZero(string) })

export const schedulingGateSchema = object('PodSchedulingGate', { name: requiredOrZero(string) })

export const podResourceClaimSchema = object('PodResourceClaim', {
  name: requiredOrZero(string),
  resourceClaimName: optional(string),
  resourceClaimTemplateName: optional(string),
})

/** Of a container's resources. */
export const resourceClaimSchema = object('ResourceClaim', {
  name: requiredOrZero(string),
  request: defaulted(string, ''),
})

export const volumeDeviceSchema = object('VolumeDevice', {
  name: requiredOrZero(string),
  devicePath: requiredOrZero(string),
})
