import { isJsonObject } from '../../base/json.ts'
import { objectMetaSchema } from '../schema/pod-schema.ts'
import { bool, defaulted, map, object, oneOf, required, string } from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import type { Issues } from '../validation/issues.ts'
import { configMapKey } from '../validation/name-rules.ts'
import { dataOf, limitSize, validateBase64 } from './config-data.ts'
import { objectKind } from './object-kind.ts'

const secretSchema = object('Secret', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('Secret')),
  metadata: required(objectMetaSchema),
  immutable: defaulted(bool, false),
  /** Values in base64 (`[]byte` in the API). */
  data: defaulted(map(string), {}),
  stringData: defaulted(map(string), {}),
  type: defaulted(string, 'Opaque'),
})

export type Secret = Infer<typeof secretSchema>

export const secretKind = objectKind({
  schema: secretSchema,
  resource: { plural: 'secrets', singular: 'secret', short: [] },
  scope: 'Namespaced',
  isPerSource: true,
  isSecret: true,
  validate: validateSecret,
})

interface NeededKeys {
  readonly keys: readonly string[]
  /** One of them is enough. */
  readonly any?: true
  readonly notEmpty?: true
}

/** The keys that each type of Secret requires. */
const secretKeys = new Map<string, NeededKeys>([
  ['kubernetes.io/dockercfg', { keys: ['.dockercfg'] }],
  ['kubernetes.io/dockerconfigjson', { keys: ['.dockerconfigjson'] }],
  ['kubernetes.io/basic-auth', { keys: ['username', 'password'], any: true }],
  ['kubernetes.io/ssh-auth', { keys: ['ssh-privatekey'], notEmpty: true }],
  ['kubernetes.io/tls', { keys: ['tls.crt', 'tls.key'] }],
])

/** Source: ValidateSecret in pkg/apis/core/validation, 1.36. */
function validateSecret(secret: Secret, issues: Issues): void {
  const given = { base64: secret.data, text: secret.stringData }
  validateBase64(secret.data, ['data'], issues)
  for (const key of Object.keys(secret.stringData)) {
    issues.name(['data', key], key, configMapKey, ['stringData', key])
  }
  limitSize(given, ['data'], issues)
  if (secret.type === 'kubernetes.io/service-account-token') {
    issues.refused(['type'], 'there is no API server to issue tokens')
  }
  const needed = secretKeys.get(secret.type)
  if (needed === undefined) return
  const has = dataOf(given)
  const missing = needed.keys.filter(
    (key) => !has.has(key) || (needed.notEmpty && has.get(key)?.length === 0),
  )
  const lacks = needed.any === true ? missing.length === needed.keys.length : missing.length > 0
  if (lacks) for (const key of missing) issues.required(['data', key])
  for (const key of ['.dockercfg', '.dockerconfigjson']) {
    const value = needed.keys.includes(key) ? has.get(key) : undefined
    if (value !== undefined && !isMapOrNull(value)) {
      issues.invalid(['data', key], '<secret contents redacted>', 'must be a JSON object')
    }
  }
}

/** As Go reads a map. */
function isMapOrNull(value: Buffer): boolean {
  try {
    const json: unknown = JSON.parse(value.toString('utf8'))
    return json === null || isJsonObject(json)
  } catch {
    // It is not JSON.
    return false
  }
}
