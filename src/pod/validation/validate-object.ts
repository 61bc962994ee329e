import { isJsonObject } from '../../base/json.ts'
import type { FieldPath, FieldProblem } from '../schema/field-path.ts'
import type { LocalObject } from '../objects/local-object.ts'
import { objectData } from '../objects/object-data.ts'
import { isPositive } from '../spec/pod-resources.ts'
import type { ConfigMap, PersistentVolumeClaim, Secret } from '../schema/object-schema.ts'
import { Issues } from './issues.ts'
import { configMapKey, dnsLabel } from './name-rules.ts'
import { validateMetadata } from './validate-metadata.ts'
import { validateOverhead } from './validate-resources.ts'

/** What the keys and values of a ConfigMap or Secret may come to (MaxSecretSize). */
const maxDataBytes = 1024 * 1024
/** User-defined classes stop here; above are the system's. */
const highestUserPriority = 1_000_000_000

/** The storage class whose volumes are directories below podd's root. */
export const localStorageClass = 'podd-local'

/** What each type of Secret has to hold; all or one of the keys. */
const secretKeys = new Map<string, { readonly keys: readonly string[]; readonly any?: boolean }>([
  ['kubernetes.io/dockercfg', { keys: ['.dockercfg'] }],
  ['kubernetes.io/dockerconfigjson', { keys: ['.dockerconfigjson'] }],
  ['kubernetes.io/basic-auth', { keys: ['username', 'password'], any: true }],
  ['kubernetes.io/ssh-auth', { keys: ['ssh-privatekey'] }],
  ['kubernetes.io/tls', { keys: ['tls.crt', 'tls.key'] }],
])

/**
 * What Kubernetes' validation refuses in the objects that pods refer to. No complaint about a Secret says
 * what a value of it is. Source: pkg/apis/core/validation (ValidateConfigMap, ValidateSecret,
 * ValidatePersistentVolumeClaimSpec), pkg/apis/node, pkg/apis/scheduling, 1.36.
 */
export function validateObject(object: LocalObject): readonly FieldProblem[] {
  const issues = new Issues()
  validateMetadata({ namespace: 'default', ...object.metadata }, ['metadata'], issues)
  switch (object.kind) {
    case 'ConfigMap':
      validateConfigMap(object, issues)
      break
    case 'Secret':
      validateSecret(object, issues)
      break
    case 'PersistentVolumeClaim':
      validateClaim(object, issues)
      break
    case 'RuntimeClass':
      issues.name(['handler'], object.handler, dnsLabel)
      validateOverhead(object.overhead?.podFixed, ['overhead', 'podFixed'], issues)
      break
    case 'PriorityClass':
      validatePriority(object.metadata.name, object.value, issues)
      break
  }
  return issues.problems
}

function validateConfigMap(object: ConfigMap, issues: Issues): void {
  for (const key of Object.keys(object.data)) {
    issues.name(['data', key], key, configMapKey)
    if (Object.hasOwn(object.binaryData, key)) {
      issues.invalid(['data', key], key, 'duplicate of key present in binaryData')
    }
  }
  validateBase64(object.binaryData, ['binaryData'], issues)
  limitSize(object, ['data'], issues)
}

function validateSecret(object: Secret, issues: Issues): void {
  validateBase64(object.data, ['data'], issues)
  for (const key of Object.keys(object.stringData)) issues.name(['stringData', key], key, configMapKey)
  limitSize(object, ['data'], issues)
  if (object.type === 'kubernetes.io/service-account-token') {
    issues.refused(['type'], 'there is no API server to issue tokens')
  }
  const needed = secretKeys.get(object.type)
  if (needed === undefined) return
  const has = objectData(object)
  const missing = needed.keys.filter((key) => !has.has(key))
  const lacks = needed.any === true ? missing.length === needed.keys.length : missing.length > 0
  if (lacks) for (const key of missing) issues.required(['data', key])
  for (const key of ['.dockercfg', '.dockerconfigjson']) {
    const value = needed.keys.includes(key) ? has.get(key) : undefined
    if (value !== undefined && !isJsonMap(value)) {
      issues.invalid(['data', key], '<secret contents redacted>', 'must be a JSON object')
    }
  }
}

function validateBase64(values: Readonly<Record<string, string>>, path: FieldPath, issues: Issues): void {
  for (const [key, value] of Object.entries(values)) {
    issues.name([...path, key], key, configMapKey)
    if (!isBase64(value)) issues.invalid([...path, key], '…', 'must be base64')
  }
}

/** As Go's decoder reads it: with its padding; line breaks may stand in it. */
function isBase64(value: string): boolean {
  const packed = value.replaceAll(/[\r\n]/g, '')
  return packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed)
}

function limitSize(object: ConfigMap | Secret, path: FieldPath, issues: Issues): void {
  const bytes = [...objectData(object).values()].reduce((sum, value) => sum + value.byteLength, 0)
  if (bytes > maxDataBytes) issues.tooLong(path, maxDataBytes)
}

function isJsonMap(value: Buffer): boolean {
  try {
    return isJsonObject(JSON.parse(value.toString('utf8')))
  } catch {
    return false
  }
}

function validateClaim({ spec }: PersistentVolumeClaim, issues: Issues): void {
  if (spec.accessModes.length === 0) {
    issues.required(['spec', 'accessModes'], 'at least 1 access mode is required')
  }
  if (spec.accessModes.length > 1 && spec.accessModes.includes('ReadWriteOncePod')) {
    issues.forbidden(
      ['spec', 'accessModes'],
      'may not use ReadWriteOncePod with other access modes on the same PersistentVolumeClaim',
    )
  }
  const { storage } = spec.resources.requests
  const at = ['spec', 'resources', 'requests', 'storage']
  if (storage === undefined) issues.required(at)
  else if (!isPositive(storage)) issues.invalid(at, storage, 'must be greater than zero')
  issues.wholeBytes(at, storage)
  issues.wholeBytes(['spec', 'resources', 'limits', 'storage'], spec.resources.limits['storage'])
  const { storageClassName = '' } = spec
  if (storageClassName !== '' && storageClassName !== localStorageClass) {
    issues.refused(
      ['spec', 'storageClassName'],
      `storage class ${JSON.stringify(storageClassName)}: claims are directories of this host; leave it out, or use ${localStorageClass}`,
    )
  }
  if (spec.volumeMode === 'Block') {
    issues.refused(['spec', 'volumeMode'], 'a claim is a directory of this host, and no block device')
  }
}

function validatePriority(name: string, value: number, issues: Issues): void {
  if (name.startsWith('system-')) {
    issues.forbidden(
      ['metadata', 'name'],
      "priority class names with 'system-' prefix are reserved for system use only",
    )
  }
  if (value > highestUserPriority) {
    issues.forbidden(['value'], `maximum allowed value of a user defined priority is ${highestUserPriority}`)
  }
}
