import { isImageListed, parseImageName } from '../../pod/values/image-name.ts'
import type { PullCredential } from './keyring.ts'
import { isSameSecret } from './pulled-record.ts'
import type { PulledRecord, RecordedSecret } from './pulled-record.ts'

export type VerificationPolicy =
  | 'NeverVerify'
  | 'NeverVerifyPreloadedImages'
  | 'NeverVerifyAllowlistedImages'
  | 'AlwaysVerify'

/** When a pod's credentials are verified for an image that is on the machine. */
export interface VerificationRules {
  readonly policy: VerificationPolicy
  /** For `NeverVerifyAllowlistedImages`. */
  readonly allowlist: readonly string[]
}

/** The known history of an image on the machine. */
export interface ImageHistory {
  /** podd may have pulled it, with unknown credentials. */
  readonly maybePulled: boolean
  readonly record: PulledRecord | undefined
}

export type AccessVerdict =
  /** `remember`: a Secret that fits and is to be added to the record. */
  | { readonly kind: 'allowed'; readonly remember?: RecordedSecret }
  /** Only the registry can tell. */
  | { readonly kind: 'must-pull' }

/**
 * Whether a pod may use an image that is on the machine (`pkg/kubelet/images/pullmanager/image_pull_manager.go`,
 * MustAttemptImagePull, 1.36). Unlike there, an image that was imported counts as preloaded although its like was
 * pulled under another name.
 * @param credentials called only where the result depends on them
 */
export function verifyImageAccess(
  rules: VerificationRules,
  image: string,
  history: ImageHistory,
  credentials: readonly PullCredential[],
): AccessVerdict {
  const name = accessName(image) ?? ''
  const all = history.record?.access ?? {}
  const access = Object.hasOwn(all, name) ? all[name] : undefined
  const isImported = history.record?.imported?.includes(name) === true
  const pulled = access !== undefined || (history.maybePulled && !isImported)
  if (!mustVerify(rules, image, pulled)) return { kind: 'allowed' }
  if (access === undefined) return { kind: 'must-pull' }
  if (access.allPods) return { kind: 'allowed' }
  for (const { hash, secret } of credentials) {
    if (secret === undefined) continue
    for (const known of access.secrets) {
      const sameSecret = isSameSecret(known, secret)
      const sameHash = known.hash === hash
      if (sameSecret && sameHash) return { kind: 'allowed' }
      // A Secret may get other credentials, and the same credentials may be in another Secret.
      if (sameSecret || sameHash) return { kind: 'allowed', remember: { ...secret, hash } }
    }
  }
  return { kind: 'must-pull' }
}

/** The name of an image in records: registry and repository; undefined for an invalid name. */
export function accessName(image: string): string | undefined {
  const parsed = parseImageName(image)
  return parsed === undefined ? undefined : `${parsed.registry}/${parsed.repository}`
}

/** `pkg/kubelet/images/pullmanager/image_pull_policies.go`, 1.36. */
function mustVerify({ policy, allowlist }: VerificationRules, image: string, pulled: boolean): boolean {
  switch (policy) {
    case 'NeverVerify':
      return false
    case 'NeverVerifyPreloadedImages':
      return pulled
    case 'NeverVerifyAllowlistedImages':
      return !isImageListed(image, allowlist)
    case 'AlwaysVerify':
      return true
  }
}
