import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldPath } from '../schema/field-path.ts'
import { fillDefaults } from '../schema/fill-defaults.ts'
import type { Infer } from '../schema/types.ts'
import { bool, list, object, optional } from '../schema/types.ts'
import { windowsOptionsSchema } from '../schema/windows-schema.ts'
import type { Issues } from './issues.ts'
import { fieldOf } from './issues.ts'
import { dnsSubdomain } from './name-rules.ts'

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
export function validateWindows(spec: JsonObject, path: FieldPath, issues: Issues): void {
  const fields = fieldOf({ spec: fillDefaults(windowsSchema, spec) }, 'spec', windowsSchema)
  if (fields === undefined) return
  const isLinux = isJsonObject(spec['os']) && spec['os']['name'] === 'linux'
  const pod = fields.securityContext?.windowsOptions
  if (pod !== undefined) validateOptions(pod, [...path, 'securityContext', 'windowsOptions'], isLinux, issues)
  const processes: boolean[] = []
  for (const key of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    for (const [index, { securityContext }] of (fields[key] ?? []).entries()) {
      const at = [...path, key, index, 'securityContext', 'windowsOptions']
      const own = securityContext?.windowsOptions
      if (own !== undefined) validateOptions(own, at, isLinux, issues)
      processes.push(own?.hostProcess ?? pod?.hostProcess ?? false)
      if (pod?.hostProcess === undefined || own?.hostProcess === undefined) continue
      if (pod.hostProcess !== own.hostProcess) {
        const detail = `pod hostProcess value must be identical if both are specified, was ${pod.hostProcess}`
        issues.invalid([...at, 'hostProcess'], own.hostProcess, detail)
      }
    }
  }
  if (!processes.includes(true)) return
  if (processes.includes(false)) {
    const detail =
      'If pod contains any hostProcess containers then all containers must be HostProcess containers'
    issues.invalid(path, '', detail)
  }
  if (fields.hostNetwork !== true) {
    const detail = 'hostNetwork must be true if pod contains any hostProcess containers'
    issues.invalid([...path, 'hostNetwork'], false, detail)
  }
}

function validateOptions(
  options: Infer<typeof windowsOptionsSchema>,
  path: FieldPath,
  isLinux: boolean,
  issues: Issues,
): void {
  if (isLinux) issues.forbidden(path, 'windows options cannot be set for a linux pod')
  const { gmsaCredentialSpecName, gmsaCredentialSpec, runAsUserName } = options
  if (gmsaCredentialSpecName !== undefined)
    issues.name([...path, 'gmsaCredentialSpecName'], gmsaCredentialSpecName, dnsSubdomain)
  if (gmsaCredentialSpec === '')
    issues.invalid([...path, 'gmsaCredentialSpec'], '', 'gmsaCredentialSpec cannot be an empty string')
  if (runAsUserName === undefined) return
  const problem = userNameProblem(runAsUserName)
  if (problem !== undefined) issues.invalid([...path, 'runAsUserName'], runAsUserName, problem)
}

function userNameProblem(name: string): string | undefined {
  if (name === '') return 'runAsUserName cannot be an empty string'
  if (controlCharacter.test(name)) return 'runAsUserName cannot contain control characters'
  if (name.split('\\').length > 2) return 'runAsUserName cannot contain more than one backslash'
  if (name.endsWith('\\')) return "runAsUserName's User cannot be empty"
  return name.length > longestUserName ? 'runAsUserName is too long' : undefined
}
