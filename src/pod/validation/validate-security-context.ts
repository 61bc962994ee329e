import type { JsonObject } from '../../base/json.ts'
import { jsonAt, listOrEmpty, objectOrEmpty } from '../../base/json.ts'
import { isKnownCapability, sysctlValueProblem } from '../values/kernel-names.ts'
import type { Issues } from '../schema/issues.ts'
import type { SeccompProfile, SecurityContext } from '../schema/container-schema.ts'
import type { PodSecurityContext, PodSpec } from '../schema/pod-schema.ts'
import { localPath } from './path-rules.ts'

const maxId = 2 ** 31 - 1
/** Of the ids that a pod with a user namespace of its own has (src/volumes/pod-directory.ts). */
const maxMappedId = 65_535
/** As the API server writes it. */
const sysctlForm = String.raw`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`
const sysctlPattern = /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/

/**
 * As the API server does, of a container that may gain no privileges yet adds this capability by its full name: the
 * short one of a decoded pod stands for both. `spec` as it was given. Source: pkg/apis/core/validation
 * (ValidateSecurityContext), 1.36.
 */
export function validateSysAdmin(spec: JsonObject, issues: Issues): void {
  for (const key of ['containers', 'initContainers', 'ephemeralContainers'] as const) {
    for (const [index, container] of listOrEmpty(spec[key]).entries()) {
      const context = objectOrEmpty(jsonAt(container, 'securityContext'))
      const added = listOrEmpty(jsonAt(context, 'capabilities', 'add'))
      if (context['allowPrivilegeEscalation'] !== false || !added.includes('CAP_SYS_ADMIN')) continue
      const at = issues.of(key, index, 'securityContext')
      const detail = 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'
      at.invalid(context, detail, at.of('allowPrivilegeEscalation'))
    }
  }
}

/** Source: pkg/apis/core/validation (ValidateSecurityContext), 1.36. */
export function validateSecurityContext(
  context: SecurityContext,
  { hostUsers }: Pick<PodSpec, 'hostUsers'>,
  issues: Issues,
): void {
  const { privileged, allowPrivilegeEscalation, capabilities } = context
  issues.of('runAsUser').range(context.runAsUser, 0, maxId)
  issues.of('runAsGroup').range(context.runAsGroup, 0, maxId)
  for (const field of ['runAsUser', 'runAsGroup'] as const) {
    refuseUnmapped(context[field], hostUsers, issues.of(field))
  }
  if (context.procMount === 'Unmasked' && hostUsers !== false) {
    issues.of('procMount').invalid('Unmasked', '`hostUsers` must be false to use `Unmasked`')
  }
  if (allowPrivilegeEscalation === false) {
    const at = issues.of('allowPrivilegeEscalation')
    if (privileged === true) {
      const detail = 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'
      issues.invalid(context, detail, at)
    }
  }
  for (const list of ['add', 'drop'] as const) {
    for (const [index, name] of (capabilities?.[list] ?? []).entries()) {
      if (isKnownCapability(name)) continue
      const message = `unknown capability ${JSON.stringify(name)}: the runtime ignores it`
      issues.of('capabilities', list, index).warn(message)
    }
  }
  validateProfiles(context, issues)
}

/** Source: pkg/apis/core/validation (ValidatePodSecurityContext), 1.36. */
export function validatePodSecurityContext(
  context: PodSecurityContext,
  { hostUsers }: Pick<PodSpec, 'hostUsers'>,
  issues: Issues,
): void {
  for (const field of ['runAsUser', 'runAsGroup', 'fsGroup'] as const) {
    issues.of(field).range(context[field], 0, maxId)
    refuseUnmapped(context[field], hostUsers, issues.of(field))
  }
  for (const [index, id] of context.supplementalGroups.entries()) {
    issues.of('supplementalGroups', index).range(id, 0, maxId)
    refuseUnmapped(id, hostUsers, issues.of('supplementalGroups', index))
  }
  issues.unique(
    context.sysctls,
    (sysctl) => sysctl.name,
    (index) => issues.of('sysctls', index, 'name'),
  )
  for (const [index, { name, value }] of context.sysctls.entries()) {
    const at = issues.of('sysctls', index, 'name')
    if (name === '') at.required()
    else if (name.length > 253 || !sysctlPattern.test(name)) {
      at.invalid(name, `must have at most 253 characters and match regex ${sysctlForm}`)
    } else {
      const problem = sysctlValueProblem(name, value)
      if (problem !== undefined) {
        const said = `the kernel refuses ${JSON.stringify(value)}: ${name} ${problem}`
        issues.of('sysctls', index, 'value').refused(said)
      }
    }
  }
  validateProfiles(context, issues)
}

/** The runtime can't run a process as an id that the pod's user namespace doesn't map. */
function refuseUnmapped(id: number | undefined, hostUsers: boolean | undefined, issues: Issues): void {
  if (hostUsers !== false || id === undefined || id <= maxMappedId || id > maxId) return
  issues.refused(`a pod with hostUsers: false has the ids 0 to ${maxMappedId}, and ${id} is none of them`)
}

function validateProfiles(
  context: Pick<SecurityContext, 'seccompProfile' | 'appArmorProfile'>,
  issues: Issues,
): void {
  if (context.seccompProfile !== undefined) {
    validateProfile('seccomp', context.seccompProfile, issues.of('seccompProfile'))
  }
  if (context.appArmorProfile !== undefined) {
    validateProfile('AppArmor', context.appArmorProfile, issues.of('appArmorProfile'))
  }
}

function validateProfile(what: string, { type, localhostProfile }: SeccompProfile, issues: Issues): void {
  const at = issues.of('localhostProfile')
  if (type !== 'Localhost') {
    if (localhostProfile !== undefined) {
      at.invalid(localhostProfile, `can only be set when ${what} type is Localhost`)
    }
  } else if (localhostProfile === undefined) {
    at.required(`must be set when ${what} type is Localhost`)
  } else if (what === 'seccomp') localPath(localhostProfile, at)
  else validateAppArmorName(localhostProfile, at)
}

function validateAppArmorName(name: string, issues: Issues): void {
  if (name.trim() !== name) issues.invalid(name, 'must not be padded with whitespace')
  else if (name === '') issues.required('must be set when AppArmor type is Localhost')
  if (Buffer.byteLength(name) > longestProfileName) issues.tooLong(longestProfileName)
}

const longestProfileName = 4095
