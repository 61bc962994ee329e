import type { FieldPath, Issues } from '../schema/issues.ts'
import type { ContainerSpec, EnvVar } from '../schema/container-schema.ts'
import { envFromSourceSchema, envVarSourceSchema } from '../schema/container-schema.ts'
import type { Infer } from '../schema/types.ts'
import { list } from '../schema/types.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import { fieldOf } from '../schema/issues.ts'
import { configMapKey, dnsLabel, dnsSubdomain, envVarName, qualifiedName } from './name-rules.ts'
import { cleanPath } from '../../base/text.ts'
import { noBacksteps } from './path-rules.ts'

type ValueFrom = NonNullable<EnvVar['valueFrom']>
type FileKey = NonNullable<ValueFrom['fileKeyRef']>
type FieldRef = NonNullable<ValueFrom['fieldRef']>
type ResourceRef = Pick<NonNullable<ValueFrom['resourceFieldRef']>, 'resource' | 'divisor'>

const resourceFields = ['limits', 'requests'].flatMap((list) =>
  ['cpu', 'ephemeral-storage', 'memory'].map((name) => `${list}.${name}`),
)
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
    for (const [kind, ref] of Object.entries(refs)) {
      if (ref !== undefined) validateObjectName(ref.name, [...at, kind, 'name'], issues)
    }
    oneSource(refs, { names: Object.keys(refs), path: [...path, 'envFrom'], near: at }, issues)
  }
}

function validateVariable(variable: EnvVar, path: FieldPath, issues: Issues): void {
  if (variable.name === '') issues.required([...path, 'name'])
  else issues.name([...path, 'name'], variable.name, envVarName)
  const source = fieldOf(variable, 'valueFrom', envVarSourceSchema)
  if (source === undefined) return
  const at = [...path, 'valueFrom']
  validateSource(source, at, issues)
  const isNone = Object.values(source).every((given) => given === undefined)
  if (variable.value !== '' && !isNone) {
    issues.invalid(at, '', 'may not be specified when `value` is not empty')
  } else oneSource(source, { names: Object.keys(envVarSourceSchema.fields), path: at }, issues)
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
  else issues.name([...path, 'volumeName'], volumeName, dnsLabel)
  if (volume === undefined) issues.notFound([...path, 'volumeName'], volumeName)
  else if (volume.emptyDir === undefined) {
    issues.invalid([...path, 'volumeName'], volumeName, 'referenced volume must be of type emptyDir')
  }
  if (filePath === '') issues.required([...path, 'path'])
  else if (filePath.startsWith('/') || cleanPath(filePath) === '.') {
    issues.refused([...path, 'path'], `${JSON.stringify(filePath)} is no path of a file within the volume`)
  } else noBacksteps(filePath, [...path, 'path'], issues)
  if (key === '') issues.required([...path, 'key'])
  else {
    issues.name([...path, 'key'], key, envVarName)
  }
}

/** Fields of the pod that a file of a downward volume can show. */
export function validateVolumeFieldRef(
  ref: FieldRef,
  path: FieldPath,
  issues: Issues,
  near: FieldPath = path,
): void {
  validateFieldRef(ref, ['metadata.annotations', 'metadata.labels', ...podFields], path, issues, near)
}

/** Source: pkg/apis/core/validation (validateObjectFieldSelector), 1.36. */
function validateFieldRef(
  { apiVersion, fieldPath }: FieldRef,
  supported: readonly string[],
  path: FieldPath,
  issues: Issues,
  near: FieldPath = path,
): void {
  const at = [...path, 'fieldPath']
  const nearAt = [...near, 'fieldPath']
  const subscript = /^metadata\.(labels|annotations)\['(.*)'\]$/s.exec(fieldPath)
  if (fieldPath === '') issues.required(at, undefined, nearAt)
  else if (!['', 'v1'].includes(apiVersion)) {
    const detail = `error converting fieldPath: unsupported pod version: ${apiVersion}`
    issues.invalid(at, fieldPath, detail, [...near, 'apiVersion'])
  } else if (subscript !== null) {
    const [, map, key = ''] = subscript
    issues.name(path, map === 'labels' ? key : key.toLowerCase(), qualifiedName, nearAt)
  } else if (supported.includes(fieldPath)) return
  else if (convertible.has(fieldPath)) issues.unsupported(at, fieldPath, supported, nearAt)
  else {
    const isSubscripted = fieldPath.endsWith("']") && fieldPath.slice(0, -2).indexOf("['") > 0
    const what = isSubscripted ? 'does not support subscript' : 'not supported'
    issues.invalid(at, fieldPath, `error converting fieldPath: field label ${what}: ${fieldPath}`, nearAt)
  }
}

/** Source: pkg/apis/core/pods (ConvertDownwardAPIFieldLabel), 1.36. */
const convertible: ReadonlySet<string> = new Set([
  ...envFields,
  'metadata.annotations',
  'metadata.labels',
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
  'spec.host',
])

/** Source: pkg/apis/core/validation (validateContainerResourceFieldSelector, validateContainerResourceDivisor), 1.36. */
export function validateResourceRef(
  { resource, divisor = '0' }: ResourceRef,
  path: FieldPath,
  issues: Issues,
  near: FieldPath = path,
): void {
  const at = [...path, 'resource']
  if (resource === '') issues.required(at, undefined, [...near, 'resource'])
  else if (!resourceFields.includes(resource) && !/^(?:limits|requests)\.hugepages-/.test(resource)) {
    issues.unsupported(at, resource, resourceFields, [...near, 'resource'])
  }
  validateDivisor(resource, divisor, [...path, 'divisor'], issues, [...near, 'divisor'])
}

/** Of a file of a downward volume, which has to name its container. */
export function validateVolumeResourceRef(
  ref: ResourceRef & { readonly containerName?: string },
  path: FieldPath,
  issues: Issues,
  near: FieldPath,
): void {
  if ((ref.containerName ?? '') !== '') {
    validateResourceRef(ref, path, issues, near)
    return
  }
  issues.required([...path, 'containerName'], undefined, near)
  validateDivisor(ref.resource, ref.divisor ?? '0', [...path, 'divisor'], issues, [...near, 'divisor'])
}

function validateDivisor(
  resource: string,
  divisor: string,
  path: FieldPath,
  issues: Issues,
  near: FieldPath,
): void {
  const known = divisorsOf(resource)
  if (known === undefined || divisor === '0' || known.includes(divisor)) return
  const name = resource.replace(/^[a-z]+\./, '').replace(/^hugepages-.*/, 'hugepages')
  const words = known === cpuDivisors ? known.join(' and ') : known.join(', ')
  const called = name === 'ephemeral-storage' ? 'local ephemeral storage' : name
  issues.invalid(
    path,
    resource,
    `only divisor's values ${words} are supported with the ${called} resource`,
    near,
  )
}

function divisorsOf(resource: string): readonly string[] | undefined {
  if (resource.endsWith('.cpu')) return cpuDivisors
  const isBytes = resourceFields.includes(resource) || /^(?:limits|requests)\.hugepages-/.test(resource)
  return isBytes ? byteDivisors : undefined
}

/** Of a ConfigMap or Secret that variables come from; the API server checks none of those that volumes come from. */
function validateObjectName(name: string, path: FieldPath, issues: Issues): void {
  if (name === '') issues.required(path)
  else issues.name(path, name, dnsSubdomain)
}

/** Exactly one of the fields is set. */
function oneSource(
  sources: object,
  {
    names,
    path,
    near,
  }: { readonly names: readonly string[]; readonly path: FieldPath; readonly near?: FieldPath },
  issues: Issues,
): void {
  const given = Object.values(sources).filter((source) => source !== undefined)
  if (given.length === 1) return
  const detail =
    given.length === 0
      ? `must specify one of: ${inWords(names)}`
      : 'may not have more than one field specified at a time'
  issues.invalid(path, '', detail, near)
}

/** `a`, `b` or `c` */
function inWords(names: readonly string[]): string {
  const quoted = names.map((name) => `\`${name}\``)
  return [quoted.slice(0, -1).join(', '), quoted.at(-1)].join(' or ')
}
