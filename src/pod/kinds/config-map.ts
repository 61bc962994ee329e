import { objectMetaSchema } from '../schema/pod-schema.ts'
import { bool, defaulted, map, object, oneOf, required, string } from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import type { Issues } from '../validation/issues.ts'
import { configMapKey } from '../validation/name-rules.ts'
import { limitSize, validateBase64 } from './config-data.ts'
import { objectKind } from './object-kind.ts'

const configMapSchema = object('ConfigMap', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('ConfigMap')),
  metadata: required(objectMetaSchema),
  immutable: defaulted(bool, false),
  data: defaulted(map(string), {}),
  /** Values in base64 (`[]byte` in the API). */
  binaryData: defaulted(map(string), {}),
})

export type ConfigMap = Infer<typeof configMapSchema>

export const configMapKind = objectKind({
  schema: configMapSchema,
  resource: { plural: 'configmaps', singular: 'configmap', short: ['cm'] },
  scope: 'Namespaced',
  isPerSource: true,
  isSecret: false,
  validate: validateConfigMap,
})

/** Source: ValidateConfigMap in pkg/apis/core/validation, 1.36. */
function validateConfigMap(config: ConfigMap, issues: Issues): void {
  for (const key of Object.keys(config.data)) {
    issues.name(['data', key], key, configMapKey)
    if (Object.hasOwn(config.binaryData, key)) {
      issues.invalid(['data', key], key, 'duplicate of key present in binaryData')
    }
  }
  validateBase64(config.binaryData, ['binaryData'], issues)
  limitSize({ base64: config.binaryData, text: config.data }, ['data'], issues)
}
