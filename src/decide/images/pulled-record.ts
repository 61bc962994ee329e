/* What is remembered of each pulled image, and who may use one that is on the machine. */
import { isImageListed, normalizeImageName, parseImageName } from '../../pod/values/image-name.ts'
import type { PullCredential, SecretCoordinates } from './keyring.ts'

/** An image that podd has pulled, with the credentials used, or that was imported. */
export interface PulledRecord {
  /** The image's id. */
  readonly imageRef: string
  readonly updatedAtMs: number
  /** By registry and repository; podd has not pulled it under other names. */
  readonly access: Readonly<Record<string, PullAccess>>
  /** Registries and repositories under which it was imported: a pull with unknown outcome doesn't restrict it. */
  readonly imported?: readonly string[]
}

/** The pods that may use an image of one name. */
export interface PullAccess {
  /** It was pulled without credentials, or with credentials of the node. */
  readonly allPods: boolean
  /** Sorted by namespace, name and source; empty where all pods may, and where it is unknown who may. */
  readonly secrets: readonly RecordedSecret[]
}

/** A Secret whose credentials a registry has accepted for an image. */
interface RecordedSecret extends SecretCoordinates {
  readonly hash: string
}

/** The credentials with which a pull succeeded; undefined where unknown. */
export type UsedCredential = 'none' | RecordedSecret | undefined

/**
 * The record after a pull, or after a Secret was found to fit; the same record where nothing changes
 * (`pkg/kubelet/images/pullmanager/image_pull_manager.go`, pulledRecordMergeNewCreds, 1.36).
 */
export function mergePulledRecord(
  before: PulledRecord | undefined,
  pull: { readonly imageRef: string; readonly name: string; readonly used: UsedCredential },
  nowMs: number,
): PulledRecord {
  const record = before ?? { imageRef: pull.imageRef, updatedAtMs: nowMs, access: {} }
  const { name, used } = pull
  const known = Object.hasOwn(record.access, name) ? record.access[name] : undefined
  const access = mergeAccess(known, used)
  if (access === known) return record
  return { ...record, updatedAtMs: nowMs, access: { ...record.access, [name]: access } }
}

function mergeAccess(known: PullAccess | undefined, used: UsedCredential): PullAccess {
  if (used === undefined) return known ?? { allPods: false, secrets: [] }
  if (known?.allPods === true) return known
  if (used === 'none') return { allPods: true, secrets: [] }
  const secrets = known?.secrets ?? []
  if (
    secrets.some((secret) => isSameSecret(secret, used) && secret.hash === used.hash) &&
    known !== undefined
  )
    return known
  const { source, namespace, name, hash } = used
  const merged = [
    ...secrets.filter((secret) => !isSameSecret(secret, used)),
    { source, namespace, name, hash },
  ]
  return { allPods: false, secrets: merged.sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1)) }
}

/**
 * The record after an import, which all pods may use, however the image was pulled before; the same record where
 * nothing changes.
 */
export function mergeImported(
  before: PulledRecord | undefined,
  image: { readonly imageRef: string; readonly name: string },
  nowMs: number,
): PulledRecord {
  const { imageRef, name } = image
  const known = before?.imported ?? []
  const all = before?.access ?? {}
  if (before !== undefined && known.includes(name) && !Object.hasOwn(all, name)) return before
  const { [name]: _, ...access } = all
  return { imageRef, updatedAtMs: nowMs, access, imported: [...new Set([...known, name])].sort() }
}

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

/**
 * The most Secrets that are added to a record without a pull (`image_pull_manager.go`, writeRecordWhileMatchingLimit,
 * 1.36).
 */
export const addWhileReadingLimit = 100

/** The name of an image in records: registry and repository; undefined for an invalid name. */
export function accessName(image: string): string | undefined {
  const parsed = parseImageName(image)
  return parsed === undefined ? undefined : `${parsed.registry}/${parsed.repository}`
}

function isSameSecret(a: SecretCoordinates, b: SecretCoordinates): boolean {
  return a.source === b.source && a.namespace === b.namespace && a.name === b.name
}

function orderOf({ namespace, name, source }: SecretCoordinates): string {
  return `${namespace}\0${name}\0${source}`
}

export interface UnknownPull {
  readonly image: string
  /** The id of the image that had this name when the pull began. */
  readonly presentRef?: string
}

export interface SettledPull {
  readonly image: string
  /** The id of the image that has this name; undefined where the pull has left none. */
  readonly imageRef: string | undefined
  /** The pull brought that image: it was not present before. */
  readonly isBrought: boolean
}

/** The results of pulls with unknown outcome, from the images that the runtime lists. */
export function settlePulls(
  pulls: readonly UnknownPull[],
  images: readonly {
    readonly id: string
    readonly repoTags: readonly string[]
    readonly repoDigests: readonly string[]
  }[],
): readonly SettledPull[] {
  if (pulls.length === 0) return []
  const ids = new Map(
    images.flatMap(({ id, repoTags, repoDigests }) =>
      [id, ...repoTags, ...repoDigests].map((name) => [normalizeImageName(name), id] as const),
    ),
  )
  return pulls.map(({ image, presentRef }) => {
    const imageRef = ids.get(normalizeImageName(image))
    return { image, imageRef, isBrought: imageRef !== undefined && imageRef !== presentRef }
  })
}
