import { objectMetaSchema, podSchema } from '../schema/pod-schema.ts'
import { object, oneOf, optional, required } from '../schema/types.ts'

export const podTemplateSchema = object('PodTemplate', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('PodTemplate')),
  metadata: required(objectMetaSchema),
  template: optional(
    object('PodTemplateSpec', { metadata: optional(objectMetaSchema), spec: podSchema.fields.spec }),
  ),
})
