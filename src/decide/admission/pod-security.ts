import { parseImageName } from '../../pod/values/image-name.ts'
import type { FieldPath } from '../../pod/schema/issues.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import type { SecurityPolicy } from '../../pod/validation/security-policy.ts'
import type { Violation } from './pod-security-rules.ts'
import { restrictedRules } from './pod-security-restricted.ts'
import { inContainer, podContainers, podSecurityRules } from './pod-security-rules.ts'

/**
 * Why a source may not have this pod run, naming each rule that it breaks and the setting that would allow it;
 * undefined where it may. The rules are those of the Pod Security Standards (`k8s.io/pod-security-admission/policy`,
 * 1.36, latest).
 * @param settings the path of the policy in the config: `podSecurity.url`
 */
export function podSecurityProblem(
  spec: PodSpec,
  policy: SecurityPolicy,
  settings: string,
): { readonly message: string; readonly at: FieldPath | undefined } | undefined {
  const { level } = policy
  const rules =
    level === 'privileged'
      ? []
      : level === 'baseline'
        ? podSecurityRules(spec, policy)
        : [...podSecurityRules(spec, policy), ...restrictedRules(spec)]
  const images = imageViolations(spec, policy)
  if (rules.length === 0 && images.length === 0) return undefined
  const tell = ({ rule, detail }: Violation): string => `${rule} (${detail})`
  const parts = [
    ...(rules.length === 0
      ? []
      : [`violates PodSecurity "${level}:latest": ${rules.map((violation) => tell(violation)).join(', ')}`]),
    ...images.map((violation) => tell(violation)),
  ]
  const allowing = new Set([...rules, ...images].map(({ exception }) => allowedBy(exception, settings)))
  const message = `forbidden: ${parts.join('; ')}. ${[...allowing].join('; ')}`
  return { message, at: [...rules, ...images][0]?.at }
}

function allowedBy(exception: Violation['exception'], settings: string): string {
  return exception === undefined
    ? `Allowed by a lower ${settings}.level in podd's config`
    : `Allowed by ${settings}.${exception.field}: [${exception.value}]`
}

function imageViolations(spec: PodSpec, { allowedRegistries }: SecurityPolicy): readonly Violation[] {
  if (allowedRegistries.length === 0) return []
  return podContainers(spec).flatMap(({ name, image }) => {
    const { registry, repository } = parseImageName(image) ?? { registry: '', repository: image }
    const from = `${registry}/${repository}`
    if (allowedRegistries.some((allowed) => isWithin(from, allowed))) return []
    return [
      {
        rule: 'image registry',
        detail: `container "${name}" uses an image of ${registry}`,
        exception: { field: 'allowedRegistries' as const, value: registry },
        at: inContainer(spec, name, 'image'),
      },
    ]
  })
}

/** Whether a path is at or below another, compared by whole parts. */
function isWithin(path: string, top: string): boolean {
  const above = top.endsWith('/') ? top.slice(0, -1) : top
  return path === above || path.startsWith(`${above}/`)
}
