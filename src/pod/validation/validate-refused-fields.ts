import { isJsonObject, jsonAt, listOrEmpty } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import {
  podResourceClaimSchema,
  readinessGateSchema,
  resourceClaimSchema,
  schedulingGateSchema,
  volumeDeviceSchema,
  windowsOptionsSchema,
} from '../schema/container-schema.ts'
import { fieldOf } from '../schema/issues.ts'
import type { Issues } from '../schema/issues.ts'
import { bool, fillDefaults, list, object, optional } from '../schema/types.ts'
import type { AnyType, Infer } from '../schema/types.ts'
import { dnsLabel, dnsSubdomain, qualifiedName } from './name-rules.ts'
import type { VolumesByName } from './validate-container.ts'

/**
 * The API server's validation of fields that podd refuses. `volumes` are the valid ones. Source:
 * pkg/apis/core/validation (ValidatePodSpec and what it calls), 1.36.
 */
export function validateRefusedFields(spec: JsonObject, volumes: VolumesByName, issues: Issues): void {
  for (const [index, { conditionType }] of listOf(spec, 'readinessGates', readinessGateSchema).entries()) {
    issues.of('readinessGates', index, 'conditionType').name(conditionType, qualifiedName)
  }
  const gates = listOf(spec, 'schedulingGates', schedulingGateSchema)
  const seen = new Set<string>()
  for (const [index, { name }] of gates.entries()) {
    const at = issues.of('schedulingGates', index)
    at.name(name, qualifiedName)
    if (seen.has(name)) at.duplicate(name)
    seen.add(name)
  }
  if (gates.length > 0 && (spec['nodeName'] ?? '') !== '') {
    issues.of('nodeName').forbidden('cannot be set until all schedulingGates have been cleared')
  }
  const claims = listOf(spec, 'resourceClaims', podResourceClaimSchema)
  validatePodClaims(claims, issues.of('resourceClaims'))
  const names = new Set(claims.map(({ name }) => name))
  const { resources } = spec
  if (isJsonObject(resources) && resources['claims'] !== undefined) {
    const at = issues.of('resources', 'claims')
    at.forbidden('claims may not be set for Resources at pod-level')
    validateClaimNames(resources, names, at)
  }
  for (const field of ['containers', 'initContainers'] as const) {
    for (const [index, container] of listOrEmpty(spec[field]).entries()) {
      if (!isJsonObject(container)) continue
      const at = issues.of(field, index)
      const { resources: own } = container
      if (isJsonObject(own)) validateClaimNames(own, names, at.of('resources', 'claims'))
      validateDevices(container, volumes, at.of('volumeDevices'))
    }
  }
}

/** The items of a list of `owner`; none where it can't be read. */
function listOf<T extends AnyType>(owner: JsonObject, field: string, item: T): readonly Infer<T>[] {
  const given = owner[field]
  if (given === undefined) return []
  return fieldOf({ given: fillDefaults(list(item), given) }, 'given', list(item)) ?? []
}

function validatePodClaims(claims: readonly Infer<typeof podResourceClaimSchema>[], issues: Issues): void {
  const seen = new Set<string>()
  for (const [index, claim] of claims.entries()) {
    const { name, resourceClaimName, resourceClaimTemplateName } = claim
    const at = issues.of(index)
    if (name === '') at.of('name').required()
    else if (seen.has(name)) at.of('name').duplicate(name)
    else at.of('name').name(name, dnsLabel)
    seen.add(name)
    if (resourceClaimName !== undefined && resourceClaimTemplateName !== undefined) {
      const detail = 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified'
      at.invalid(claim, detail)
    }
    if (resourceClaimName === undefined && resourceClaimTemplateName === undefined) {
      at.invalid(claim, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`')
    }
    for (const field of ['resourceClaimName', 'resourceClaimTemplateName'] as const) {
      const value = claim[field]
      if (value !== undefined) at.of(field).name(value, dnsSubdomain)
    }
  }
}

function validateClaimNames(resources: JsonObject, known: ReadonlySet<string>, issues: Issues): void {
  const seen = new Set<string>()
  for (const [index, { name, request }] of listOf(resources, 'claims', resourceClaimSchema).entries()) {
    const at = issues.of(index)
    if (name === '') {
      at.required()
      continue
    }
    const key = request === '' ? name : `${name}/${request}`
    if (!seen.has(name) && request !== '') at.of('request').name(request, dnsLabel)
    const isAsked = request === '' && [...seen].some((other) => other.startsWith(`${name}/`))
    if (seen.has(name) || seen.has(key) || isAsked) at.duplicate(key)
    seen.add(key)
    if (!known.has(name)) at.notFound(name)
  }
}

function validateDevices(container: JsonObject, volumes: VolumesByName, issues: Issues): void {
  const mounts = mountsOf(container['volumeMounts'])
  const names = new Set<string>()
  const places = new Set<string>()
  for (const [index, device] of listOf(container, 'volumeDevices', volumeDeviceSchema).entries()) {
    const { name, devicePath } = device
    const at = issues.of(index)
    if (name === '') at.of('name').required()
    if (names.has(name)) at.of('name').invalid(name, 'must be unique')
    const volume = volumes.get(name)
    if (volume === undefined) at.of('name').notFound(name)
    else if (volume.persistentVolumeClaim === undefined && Object.keys(volume).length > 1) {
      const detail = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
      at.of('name').invalid(name, detail)
    }
    if (devicePath === '') at.of('devicePath').required()
    if (places.has(devicePath)) at.of('devicePath').invalid(devicePath, 'must be unique')
    if (devicePath.split('/').includes('..')) {
      at.of('devicePath').invalid(devicePath, "can not contain backsteps ('..')")
    } else places.add(devicePath)
    if (mounts.names.has(name)) at.of('name').invalid(name, 'must not already exist in volumeMounts')
    if (mounts.paths.has(devicePath)) {
      const detail = 'must not already exist as a path in volumeMounts'
      at.of('devicePath').invalid(devicePath, detail)
    }
    if (name !== '') names.add(name)
  }
}

function mountsOf(mounts: Json | undefined): {
  readonly names: ReadonlySet<Json | undefined>
  readonly paths: ReadonlySet<Json | undefined>
} {
  const all = listOrEmpty(mounts).filter((mount) => isJsonObject(mount))
  return {
    names: new Set(all.map(({ name }) => name)),
    paths: new Set(all.map(({ mountPath }) => mountPath)),
  }
}

const contextSchema = object('SecurityContext', { windowsOptions: optional(windowsOptionsSchema) })
const containersSchema = optional(list(object('Container', { securityContext: optional(contextSchema) })))
const windowsSchema = object('PodSpec', {
  securityContext: optional(contextSchema),
  hostNetwork: optional(bool),
  containers: containersSchema,
  initContainers: containersSchema,
  ephemeralContainers: containersSchema,
})

const longestUserName = 256 + 104 + 1
/** Those of ASCII. */
const controlCharacter = /[^\P{Cc}\u0080-\u009F]/u

/**
 * What `spec` says of Windows, with its fields of no effect. Source: pkg/apis/core/validation (validateLinux,
 * validateWindowsHostProcessPod, validateWindowsSecurityContextOptions), 1.36, but for the parts of a user's name.
 */
export function validateWindows(spec: JsonObject, issues: Issues): void {
  const fields = fieldOf({ spec: fillDefaults(windowsSchema, spec) }, 'spec', windowsSchema)
  if (fields === undefined) return
  const isLinux = jsonAt(spec, 'os', 'name') === 'linux'
  const pod = fields.securityContext?.windowsOptions
  if (pod !== undefined) validateOptions(pod, isLinux, issues.of('securityContext', 'windowsOptions'))
  const processes: boolean[] = []
  for (const key of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    for (const [index, { securityContext }] of (fields[key] ?? []).entries()) {
      const at = issues.of(key, index, 'securityContext', 'windowsOptions')
      const own = securityContext?.windowsOptions
      if (own !== undefined) validateOptions(own, isLinux, at)
      processes.push(own?.hostProcess ?? pod?.hostProcess ?? false)
      if (pod?.hostProcess === undefined || own?.hostProcess === undefined) continue
      if (pod.hostProcess !== own.hostProcess) {
        const detail = `pod hostProcess value must be identical if both are specified, was ${pod.hostProcess}`
        at.of('hostProcess').invalid(own.hostProcess, detail)
      }
    }
  }
  if (!processes.includes(true)) return
  if (processes.includes(false)) {
    const detail =
      'If pod contains any hostProcess containers then all containers must be HostProcess containers'
    issues.invalid('', detail)
  }
  if (fields.hostNetwork !== true) {
    const detail = 'hostNetwork must be true if pod contains any hostProcess containers'
    issues.of('hostNetwork').invalid(false, detail)
  }
}

function validateOptions(
  options: Infer<typeof windowsOptionsSchema>,
  isLinux: boolean,
  issues: Issues,
): void {
  if (isLinux) issues.forbidden('windows options cannot be set for a linux pod')
  const { gmsaCredentialSpecName, gmsaCredentialSpec, runAsUserName } = options
  if (gmsaCredentialSpecName !== undefined)
    issues.of('gmsaCredentialSpecName').name(gmsaCredentialSpecName, dnsSubdomain)
  if (gmsaCredentialSpec === '')
    issues.of('gmsaCredentialSpec').invalid('', 'gmsaCredentialSpec cannot be an empty string')
  if (runAsUserName === undefined) return
  const problem = userNameProblem(runAsUserName)
  if (problem !== undefined) issues.of('runAsUserName').invalid(runAsUserName, problem)
}

function userNameProblem(name: string): string | undefined {
  if (name === '') return 'runAsUserName cannot be an empty string'
  if (controlCharacter.test(name)) return 'runAsUserName cannot contain control characters'
  if (name.split('\\').length > 2) return 'runAsUserName cannot contain more than one backslash'
  if (name.endsWith('\\')) return "runAsUserName's User cannot be empty"
  return name.length > longestUserName ? 'runAsUserName is too long' : undefined
}
