import { objectMetaSchema } from '../schema/pod-schema.ts'
import { ignored, object, string } from '../schema/types.ts'

/** ObjectMeta of kinds that belong to no namespace. */
export const clusterMetaSchema = object('ObjectMeta', {
  ...objectMetaSchema.fields,
  namespace: ignored(string, 'objects of this kind belong to no namespace'),
})
