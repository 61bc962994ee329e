import { jsonAt } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { windowsOptionsSchema } from '../schema/container-schema.ts'
import type { Issues } from '../schema/issues.ts'
import { bool, list, object, optional, readAs } from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
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
export function validateWindows(spec: JsonObject, issues: Issues): void {
  const fields = readAs(windowsSchema, spec)
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
