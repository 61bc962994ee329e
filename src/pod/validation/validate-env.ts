import type { Issues } from '../schema/issues.ts'
import type { ContainerSpec, EnvVar } from '../schema/container-schema.ts'
import { envVarSourceSchema } from '../schema/container-schema.ts'
import type { Infer } from '../schema/types.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
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
  issues: Issues,
): void {
  for (const [index, variable] of container.env.entries()) {
    const at = issues.of('env', index)
    validateVariable(variable, at)
    const file = variable.valueFrom?.fileKeyRef
    if (file !== undefined) validateFileKey(file, volumes, at.of('valueFrom', 'fileKeyRef'))
  }
  for (const [index, { prefix, configMapRef, secretRef }] of container.envFrom.entries()) {
    const at = issues.of('envFrom', index)
    at.of('prefix').optionalName(prefix, envVarName)
    const refs = { configMapRef, secretRef }
    for (const [kind, ref] of Object.entries(refs)) {
      if (ref !== undefined) at.of(kind, 'name').requiredName(ref.name, dnsSubdomain)
    }
    oneSource(refs, Object.keys(refs), issues.of('envFrom'), at)
  }
}

function validateVariable(variable: EnvVar, issues: Issues): void {
  issues.of('name').requiredName(variable.name, envVarName)
  const source = variable.valueFrom
  if (source === undefined) return
  const at = issues.of('valueFrom')
  validateSource(source, at)
  const isNone = Object.values(source).every((given) => given === undefined)
  if (variable.value !== '' && !isNone) {
    at.invalid('', 'may not be specified when `value` is not empty')
  } else oneSource(source, Object.keys(envVarSourceSchema.fields), at)
}

function validateSource(
  { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef }: Infer<typeof envVarSourceSchema>,
  issues: Issues,
): void {
  if (fieldRef !== undefined) {
    validateFieldRef(fieldRef, envFields, issues.of('fieldRef'))
  }
  if (resourceFieldRef !== undefined) {
    validateResourceRef(resourceFieldRef, issues.of('resourceFieldRef'))
  }
  for (const [kind, ref] of Object.entries({ configMapKeyRef, secretKeyRef })) {
    if (ref === undefined) continue
    issues.of(kind, 'name').requiredName(ref.name, dnsSubdomain)
    issues.of(kind, 'key').requiredName(ref.key, configMapKey)
  }
}

/** Source: pkg/apis/core/validation (validateFileKeySelector, validateFileKeyRefVolumes), 1.36. */
function validateFileKey(
  { volumeName, path: filePath, key }: FileKey,
  volumes: ReadonlyMap<string, VolumeSpec>,
  issues: Issues,
): void {
  const volume = volumes.get(volumeName)
  issues.of('volumeName').requiredName(volumeName, dnsLabel)
  if (volume === undefined) issues.of('volumeName').notFound(volumeName)
  else if (volume.emptyDir === undefined) {
    issues.of('volumeName').invalid(volumeName, 'referenced volume must be of type emptyDir')
  }
  if (filePath === '') issues.of('path').required()
  else if (filePath.startsWith('/') || cleanPath(filePath) === '.') {
    issues.of('path').refused(`${JSON.stringify(filePath)} is no path of a file within the volume`)
  } else noBacksteps(filePath, issues.of('path'))
  if (key === '') issues.of('key').required()
  else {
    issues.of('key').name(key, envVarName)
  }
}

/** Fields of the pod that a file of a downward volume can show. */
export function validateVolumeFieldRef(ref: FieldRef, issues: Issues, near: Issues = issues): void {
  validateFieldRef(ref, ['metadata.annotations', 'metadata.labels', ...podFields], issues, near)
}

/** Source: pkg/apis/core/validation (validateObjectFieldSelector), 1.36. */
function validateFieldRef(
  { apiVersion, fieldPath }: FieldRef,
  supported: readonly string[],
  issues: Issues,
  near: Issues = issues,
): void {
  const at = issues.of('fieldPath')
  const nearAt = near.of('fieldPath')
  const subscript = /^metadata\.(labels|annotations)\['(.*)'\]$/s.exec(fieldPath)
  if (fieldPath === '') at.required(undefined, nearAt)
  else if (!['', 'v1'].includes(apiVersion)) {
    const detail = `error converting fieldPath: unsupported pod version: ${apiVersion}`
    at.invalid(fieldPath, detail, near.of('apiVersion'))
  } else if (subscript !== null) {
    const [, map, key = ''] = subscript
    issues.name(map === 'labels' ? key : key.toLowerCase(), qualifiedName, nearAt)
  } else if (supported.includes(fieldPath)) return
  else if (convertible.has(fieldPath)) at.unsupported(fieldPath, supported, nearAt)
  else {
    const isSubscripted = fieldPath.endsWith("']") && fieldPath.slice(0, -2).indexOf("['") > 0
    const what = isSubscripted ? 'does not support subscript' : 'not supported'
    at.invalid(fieldPath, `error converting fieldPath: field label ${what}: ${fieldPath}`, nearAt)
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
  issues: Issues,
  near: Issues = issues,
): void {
  const at = issues.of('resource')
  if (resource === '') at.required(undefined, near.of('resource'))
  else if (!resourceFields.includes(resource) && !/^(?:limits|requests)\.hugepages-/.test(resource)) {
    at.unsupported(resource, resourceFields, near.of('resource'))
  }
  validateDivisor(resource, divisor, issues.of('divisor'), near.of('divisor'))
}

/** Of a file of a downward volume, which has to name its container. */
export function validateVolumeResourceRef(
  ref: ResourceRef & { readonly containerName?: string },
  issues: Issues,
  near: Issues,
): void {
  if ((ref.containerName ?? '') !== '') {
    validateResourceRef(ref, issues, near)
    return
  }
  issues.of('containerName').required(undefined, near)
  validateDivisor(ref.resource, ref.divisor ?? '0', issues.of('divisor'), near.of('divisor'))
}

function validateDivisor(resource: string, divisor: string, issues: Issues, near: Issues): void {
  const known = divisorsOf(resource)
  if (known === undefined || divisor === '0' || known.includes(divisor)) return
  const name = resource.replace(/^[a-z]+\./, '').replace(/^hugepages-.*/, 'hugepages')
  const words = known === cpuDivisors ? known.join(' and ') : known.join(', ')
  const called = name === 'ephemeral-storage' ? 'local ephemeral storage' : name
  issues.invalid(resource, `only divisor's values ${words} are supported with the ${called} resource`, near)
}

function divisorsOf(resource: string): readonly string[] | undefined {
  if (resource.endsWith('.cpu')) return cpuDivisors
  const isBytes = resourceFields.includes(resource) || /^(?:limits|requests)\.hugepages-/.test(resource)
  return isBytes ? byteDivisors : undefined
}

/** Exactly one of the fields is set. */
function oneSource(sources: object, names: readonly string[], issues: Issues, near?: Issues): void {
  const given = Object.values(sources).filter((source) => source !== undefined)
  if (given.length === 1) return
  const detail =
    given.length === 0
      ? `must specify one of: ${inWords(names)}`
      : 'may not have more than one field specified at a time'
  issues.invalid('', detail, near)
}

/** `a`, `b` or `c` */
function inWords(names: readonly string[]): string {
  const quoted = names.map((name) => `\`${name}\``)
  return [quoted.slice(0, -1).join(', '), quoted.at(-1)].join(' or ')
}
