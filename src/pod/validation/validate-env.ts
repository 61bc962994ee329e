import type { FieldPath } from '../schema/field-path.ts'
import type { ContainerSpec, EnvVar } from '../schema/container-schema.ts'
import { envFromSourceSchema, envVarSourceSchema } from '../schema/container-schema.ts'
import type { Infer } from '../schema/types.ts'
import { list } from '../schema/types.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import type { Issues } from './issues.ts'
import { fieldOf } from './issues.ts'
import { configMapKey, dnsSubdomain, envVarName, qualifiedName } from './name-rules.ts'
import { filePathInVolume } from './validate-volumes.ts'

type ValueFrom = NonNullable<EnvVar['valueFrom']>
type FileKey = NonNullable<ValueFrom['fileKeyRef']>
type FieldRef = NonNullable<ValueFrom['fieldRef']>
type ResourceRef = Pick<NonNullable<ValueFrom['resourceFieldRef']>, 'resource' | 'divisor'>

const longestFileKey = 128

const resourceFields = ['cpu', 'memory', 'ephemeral-storage'].flatMap((name) => [
  `limits.${name}`,
  `requests.${name}`,
])
const cpuDivisors = ['1m', '1']
const byteDivisors = ['', 'k', 'M', 'G', 'T', 'P', 'E', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].map(
  (suffix) => `1${suffix}`,
)
const podFields = ['metadata.name', 'metadata.namespace', 'metadata.uid']
const envFields = [
  ...podFields,
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]

/** Source: pkg/apis/core/validation (ValidateEnv, ValidateEnvFrom), 1.36. */
export function validateEnv(
  container: ContainerSpec,
  volumes: ReadonlyMap<string, VolumeSpec>,
  path: FieldPath,
  issues: Issues,
): void {
  for (const [index, variable] of container.env.entries()) {
    const at = [...path, 'env', index]
    validateVariable(variable, at, issues)
    const file = variable.valueFrom?.fileKeyRef
    if (file !== undefined) validateFileKey(file, volumes, [...at, 'valueFrom', 'fileKeyRef'], issues)
  }
  const envFrom = fieldOf(container, 'envFrom', list(envFromSourceSchema)) ?? []
  for (const [index, { prefix, configMapRef, secretRef }] of envFrom.entries()) {
    const at = [...path, 'envFrom', index]
    if (prefix !== '') issues.name([...at, 'prefix'], prefix, envVarName)
    const refs = { configMapRef, secretRef }
    oneSource(refs, at, issues)
    for (const [kind, ref] of Object.entries(refs)) {
      if (ref !== undefined) validateObjectName(ref.name, [...at, kind, 'name'], issues)
    }
  }
}

function validateVariable(variable: EnvVar, path: FieldPath, issues: Issues): void {
  if (variable.name === '') issues.required([...path, 'name'])
  else issues.name([...path, 'name'], variable.name, envVarName)
  const source = fieldOf(variable, 'valueFrom', envVarSourceSchema)
  if (source === undefined) return
  const at = [...path, 'valueFrom']
  if (variable.value !== '') {
    issues.invalid(at, '', 'may not be specified when `value` is not empty')
  }
  oneSource(source, at, issues)
  validateSource(source, at, issues)
}

function validateSource(
  { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef }: Infer<typeof envVarSourceSchema>,
  path: FieldPath,
  issues: Issues,
): void {
  if (fieldRef !== undefined) {
    validateFieldRef(fieldRef, envFields, [...path, 'fieldRef'], issues)
  }
  if (resourceFieldRef !== undefined) {
    validateResourceRef(resourceFieldRef, [...path, 'resourceFieldRef'], issues)
  }
  for (const [kind, ref] of Object.entries({ configMapKeyRef, secretKeyRef })) {
    if (ref === undefined) continue
    validateObjectName(ref.name, [...path, kind, 'name'], issues)
    if (ref.key === '') issues.required([...path, kind, 'key'])
    else issues.name([...path, kind, 'key'], ref.key, configMapKey)
  }
}

/** Source: pkg/apis/core/validation (validateFileKeySelector, validateFileKeyRefVolumes), 1.36. */
function validateFileKey(
  { volumeName, path: filePath, key }: FileKey,
  volumes: ReadonlyMap<string, VolumeSpec>,
  path: FieldPath,
  issues: Issues,
): void {
  const volume = volumes.get(volumeName)
  if (volumeName === '') issues.required([...path, 'volumeName'])
  else if (volume === undefined) issues.notFound([...path, 'volumeName'], volumeName)
  else if (volume.emptyDir === undefined) {
    issues.invalid([...path, 'volumeName'], volumeName, 'referenced volume must be of type emptyDir')
  }
  filePathInVolume(filePath, [...path, 'path'], issues)
  if (key === '') issues.required([...path, 'key'])
  else {
    issues.name([...path, 'key'], key, envVarName)
    if (key.length > longestFileKey) issues.tooLong([...path, 'key'], longestFileKey)
  }
}

/** Fields of the pod that a file of a downward volume can show. */
export function validateVolumeFieldRef(ref: FieldRef, path: FieldPath, issues: Issues): void {
  validateFieldRef(ref, ['metadata.labels', 'metadata.annotations', ...podFields], path, issues)
}

/** Source: pkg/apis/core/validation (validateObjectFieldSelector), 1.36. */
function validateFieldRef(
  { apiVersion, fieldPath }: FieldRef,
  supported: readonly string[],
  path: FieldPath,
  issues: Issues,
): void {
  if (!['', 'v1'].includes(apiVersion)) issues.unsupported([...path, 'apiVersion'], apiVersion, ['v1'])
  const at = [...path, 'fieldPath']
  const subscript = /^metadata\.(labels|annotations)\['(.*)'\]$/s.exec(fieldPath)
  if (fieldPath === '') issues.required(at)
  else if (subscript !== null) {
    const [, map, key = ''] = subscript
    issues.name(at, map === 'labels' ? key : key.toLowerCase(), qualifiedName)
  } else if (!supported.includes(fieldPath)) issues.unsupported(at, fieldPath, supported)
}

/** Source: pkg/apis/core/validation (validateContainerResourceFieldSelector, validateContainerResourceDivisor), 1.36. */
export function validateResourceRef(
  { resource, divisor = '0' }: ResourceRef,
  path: FieldPath,
  issues: Issues,
): void {
  const at = [...path, 'resource']
  if (resource === '') issues.required(at)
  else if (!resourceFields.includes(resource) && !/^(?:limits|requests)\.hugepages-/.test(resource)) {
    issues.unsupported(at, resource, resourceFields)
  }
  const known = resource.endsWith('.cpu') ? cpuDivisors : byteDivisors
  if (divisor === '0' || known.includes(divisor)) return
  const name = resource.replace(/^[a-z]+\./, '')
  const detail = `only divisor's values ${known.join(', ')} are supported with the ${name} resource`
  issues.invalid([...path, 'divisor'], divisor, detail)
}

/** The name of a ConfigMap, Secret or claim. */
export function validateObjectName(name: string, path: FieldPath, issues: Issues): void {
  if (name === '') issues.required(path)
  else issues.name(path, name, dnsSubdomain)
}

/** Exactly one of the fields is set. */
function oneSource(sources: object, path: FieldPath, issues: Issues): void {
  const given = Object.values(sources).filter((source) => source !== undefined)
  if (given.length === 1) return
  const detail =
    given.length === 0
      ? 'must specify one of the sources'
      : 'may not have more than one field specified at a time'
  issues.invalid(path, '', detail)
}
