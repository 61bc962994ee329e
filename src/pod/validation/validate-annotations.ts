import type { Json } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldPath } from '../schema/field-path.ts'
import type { Pod } from '../schema/pod-schema.ts'
import { fillDefaults } from '../schema/fill-defaults.ts'
import { tolerationSchema } from '../schema/scheduling-schema.ts'
import { list as listOf } from '../schema/types.ts'
import type { Issues } from './issues.ts'
import { fieldOf } from './issues.ts'
import { localPath } from './path-rules.ts'
import { validateTolerations } from './validate-scheduling.ts'

const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/'
const seccompPrefixes = [
  'seccomp.security.alpha.kubernetes.io/pod',
  'container.seccomp.security.alpha.kubernetes.io/',
]

const tolerationListSchema = listOf(tolerationSchema)

/**
 * Annotations by which a pod requests something that podd would not give it. A profile that a field requests too, as the
 * API server writes it into both, is accepted.
 */
export function validateAnnotations(
  { metadata, spec }: Pod,
  { nodeName }: { readonly nodeName?: Json | undefined },
  path: FieldPath,
  issues: Issues,
): void {
  const confined = confinedContainers(spec)
  const isPodConfined = spec.securityContext?.appArmorProfile !== undefined
  for (const [key, value] of Object.entries(metadata.annotations)) {
    const at = [...path, key]
    if (/^kubernetes\.io\/(?:in|e)gress-bandwidth$/.test(key)) {
      issues.refused(at, 'the network of pods has no limits of bandwidth')
    } else if (key.startsWith('cdi.k8s.io/')) {
      issues.refused(at, 'podd hands out no devices: mount them by a hostPath, into a privileged container')
    } else if (key.startsWith(appArmorPrefix)) {
      if (!isPodConfined && !confined.has(key.slice(appArmorPrefix.length))) {
        issues.refused(at, 'deprecated in Kubernetes: set securityContext.appArmorProfile')
      }
    } else if (key === 'kubernetes.io/config.mirror') {
      if ((nodeName ?? '') === '')
        issues.invalid(at, value, 'must set spec.nodeName if mirror pod annotation is set')
    } else if (key === 'scheduler.alpha.kubernetes.io/tolerations') {
      validateTolerationList(key, value, path, issues)
    } else if (key === 'controller.kubernetes.io/pod-deletion-cost') {
      if (!isInt32(value)) issues.invalid(at, value, 'must be a 32bit integer')
    } else if (seccompPrefixes.some((prefix) => key.startsWith(prefix))) {
      validateSeccomp(value, at, issues)
    }
  }
}

/** Source: pkg/apis/core/validation (ValidateTolerationsInPodAnnotations), 1.36. */
function validateTolerationList(key: string, value: string, path: FieldPath, issues: Issues): void {
  if (value === '') return
  const given = parseJson(value)
  const items = Array.isArray(given) ? given : undefined
  const list = fieldOf(
    { items: items?.map((item: Json) => (isJsonObject(item) ? fillDefaults(tolerationSchema, item) : item)) },
    'items',
    tolerationListSchema,
  )
  if (list !== undefined) validateTolerations(list, [...path, key], issues)
  else if (given !== null) issues.invalid(path, key, 'is no list of tolerations', [...path, key])
}

function parseJson(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text)
    return value
  } catch {
    // No JSON is no list either.
    return undefined
  }
}

/** Source: pkg/apis/core/validation (ValidateSeccompProfile), 1.36. */
function validateSeccomp(profile: string, path: FieldPath, issues: Issues): void {
  const local = 'localhost/'
  if (profile.startsWith(local)) localPath(profile.slice(local.length), path, issues)
  else if (!['runtime/default', 'docker/default', 'unconfined'].includes(profile)) {
    issues.invalid(path, profile, 'must be a valid seccomp profile')
  }
  issues.warn(path, 'has no effect, in Kubernetes since 1.27: set securityContext.seccompProfile')
}

/** Zeros at its beginning are taken of a negative one alone (`pkg/apis/core/helper`, GetDeletionCostFromPodAnnotations, 1.36). */
function isInt32(text: string): boolean {
  const value = Number(text)
  return /^(?:0|[1-9]\d*|-\d+)$/.test(text) && value < 2 ** 31 && value >= -(2 ** 31)
}

/** The names of containers with an AppArmor profile of their own. */
function confinedContainers(spec: Pod['spec']): ReadonlySet<string> {
  const all = [...spec.containers, ...spec.initContainers, ...spec.ephemeralContainers]
  const confined = all.filter(({ securityContext }) => securityContext?.appArmorProfile !== undefined)
  return new Set(confined.map(({ name }) => name))
}
