import { claimSpecSchema } from '../schema/claim-schema.ts'
import { objectMetaSchema } from '../schema/pod-schema.ts'
import { any, ignored, map, object, oneOf, required } from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import { validateClaimSpec } from '../validation/validate-claim.ts'
import { objectKind } from './object-kind.ts'

const persistentVolumeClaimSchema = object('PersistentVolumeClaim', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('PersistentVolumeClaim')),
  metadata: required(objectMetaSchema),
  spec: required(claimSpecSchema),
  status: ignored(map(any), 'written by a control plane'),
})

export type PersistentVolumeClaim = Infer<typeof persistentVolumeClaimSchema>

export const persistentVolumeClaimKind = objectKind({
  schema: persistentVolumeClaimSchema,
  resource: { plural: 'persistentvolumeclaims', singular: 'persistentvolumeclaim', short: ['pvc'] },
  scope: 'Namespaced',
  isPerSource: false,
  isSecret: false,
  validate: ({ spec }, issues, manifest) => validateClaimSpec(spec, manifest['spec'], ['spec'], issues),
})
