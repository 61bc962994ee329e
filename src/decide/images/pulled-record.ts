import type { SecretCoordinates } from './keyring.ts'

/** A Secret whose credentials a registry has accepted for an image. */
export interface RecordedSecret extends SecretCoordinates {
  readonly hash: string
}

/** The pods that may use an image of one name. */
export interface PullAccess {
  /** It was pulled without credentials, or with credentials of the node. */
  readonly allPods: boolean
  /** Sorted by namespace, name and source; empty where all pods may, and where it is unknown who may. */
  readonly secrets: readonly RecordedSecret[]
}

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

/** The credentials with which a pull succeeded; undefined where unknown. */
export type UsedCredential = 'none' | RecordedSecret | undefined

/**
 * The most Secrets that are added to a record without a pull (`image_pull_manager.go`, writeRecordWhileMatchingLimit,
 * 1.36).
 */
export const addWhileReadingLimit = 100

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

export function isSameSecret(a: SecretCoordinates, b: SecretCoordinates): boolean {
  return a.source === b.source && a.namespace === b.namespace && a.name === b.name
}

function orderOf({ namespace, name, source }: SecretCoordinates): string {
  return `${namespace}\0${name}\0${source}`
}
