/* Images that nothing uses: which are removed and why the others stay; and who uses an image, by its names. */
import { normalizeImageName } from '../../pod/values/image-name.ts'

/** An image of the runtime. Times are monotonic, so that jumps of the wall clock have no effect. */
export interface ImageFacts {
  readonly id: string
  /** Its tags and digests. */
  readonly names: readonly string[]
  /** As the runtime counts it: for containerd the download size, including layers shared with other images. */
  readonly sizeBytes: number
  readonly pinned: boolean
  /** When it was first seen. */
  readonly firstSeenMs: number
  /** When it was last seen in use; undefined where it never was. */
  readonly lastUsedMs: number | undefined
}

/** A user of an image. */
export interface ImageUse {
  /** A name as written, or an id. */
  readonly image: string
  /** `container default/web main`, `pod default/web`, `cronjob default/backup` … */
  readonly by: string
  /** Nothing has it now, but will: it is removed only where the disk is too full, after all others. */
  readonly isLater?: true
}

/** The disk that holds the images. */
export interface DiskSpace {
  readonly capacityBytes: number
  readonly availableBytes: number
}

export interface ImageGarbageFacts {
  readonly images: readonly ImageFacts[]
  readonly uses: readonly ImageUse[]
  readonly disk: DiskSpace
  /** The bytes that must be available, where space is already being freed; see `ImageGarbagePlan`. */
  readonly goalBytes?: number | undefined
}

/** The kubelet's `imageGC…` settings. */
export interface ImageGarbagePolicy {
  readonly highThresholdPercent: number
  readonly lowThresholdPercent: number
  readonly minimumAgeMs: number
  /** 0: no maximum age. */
  readonly maximumAgeMs: number
}

/**
 * `thresholds`: by the policy. `unused`: all unused images, those younger than the minimum age only with `young`, those that
 * are to be used later only with `later`.
 */
export type ImageGarbageMode =
  | { readonly kind: 'thresholds' }
  | { readonly kind: 'unused'; readonly young: boolean; readonly later?: true }

export interface ImageGarbagePlan {
  /** In the order of removal. The space that each frees is an estimate: the disk is checked after each. */
  readonly remove: readonly ImageRemoval[]
  readonly keep: readonly ImageKept[]
  /** How many bytes must be available; undefined where the disk is not too full. */
  readonly goalBytes: number | undefined
}

export interface ImageRemoval {
  readonly image: ImageFacts
  /** `age`: unused for longer than the maximum age. `space`: the disk is too full. `unused`: it was requested. */
  readonly reason: 'age' | 'space' | 'unused'
  readonly message: string
}

export interface ImageKept {
  readonly image: ImageFacts
  /** `room`: it could be removed, but the disk has space. */
  readonly reason: 'in-use' | 'pinned' | 'young' | 'room'
  readonly message: string
}

/**
 * Which images are removed, and why each of the others is kept: least recently used first, never used ones before all
 * others (`pkg/kubelet/images/image_gc_manager.go`, GarbageCollect and DeleteUnusedImages, 1.36). Unlike the kubelet's,
 * the maximum age of an image that was never used counts from when it was first seen.
 * @param nowMs of the monotonic clock
 */
export function planImageGarbage(
  facts: ImageGarbageFacts,
  policy: ImageGarbagePolicy,
  mode: ImageGarbageMode,
  nowMs: number,
): ImageGarbagePlan {
  const { disk } = facts
  const users = indexUses(facts.uses.filter(({ isLater }) => isLater !== true))
  const laterUsers = indexUses(facts.uses.filter(({ isLater }) => isLater === true))
  const goalBytes = mode.kind === 'unused' ? undefined : (facts.goalBytes ?? computeGoal(disk, policy))
  const remove: ImageRemoval[] = []
  const keep: ImageKept[] = []
  const rest: ImageFacts[] = []
  const later: ImageFacts[] = []
  let availableBytes = Math.min(disk.availableBytes, disk.capacityBytes)
  const take = (image: ImageFacts, reason: ImageRemoval['reason'], message: string): void => {
    remove.push({ image, reason, message })
    availableBytes += image.sizeBytes
  }
  const isAgeLimited = mode.kind === 'thresholds' && policy.maximumAgeMs > 0
  const minimumAgeMs = mode.kind === 'unused' && mode.young ? 0 : policy.minimumAgeMs
  for (const image of facts.images.toSorted(inOrderOfUse)) {
    const user = findUser(image, users)
    const laterUser = findUser(image, laterUsers)
    const ageMs = nowMs - image.firstSeenMs
    if (user !== undefined) keep.push({ image, reason: 'in-use', message: `used by ${user}` })
    else if (image.pinned) keep.push({ image, reason: 'pinned', message: 'pinned' })
    else if (ageMs < minimumAgeMs)
      keep.push({
        image,
        reason: 'young',
        message: `first seen ${formatAge(ageMs)} ago, less than ${formatAge(minimumAgeMs)}`,
      })
    else if (laterUser !== undefined && mode.kind === 'unused' && mode.later !== true)
      keep.push({ image, reason: 'in-use', message: `to be used by ${laterUser}` })
    else if (laterUser !== undefined) later.push(image)
    else if (isAgeLimited && unusedMs(image, nowMs) > policy.maximumAgeMs)
      take(image, 'age', `${unusedFor(image, nowMs)}, longer than ${formatAge(policy.maximumAgeMs)}`)
    else rest.push(image)
  }
  // Checked afterwards, since removals by age have freed space.
  for (const image of [...rest, ...later]) {
    const message = unusedFor(image, nowMs)
    if (mode.kind === 'unused') take(image, 'unused', message)
    else if (goalBytes === undefined || availableBytes >= goalBytes)
      keep.push({ image, reason: 'room', message: `${message}; the disk has space for it` })
    else take(image, 'space', `${message}, and the disk is too full`)
  }
  return { remove, keep, goalBytes }
}

function computeGoal(disk: DiskSpace, policy: ImageGarbagePolicy): number | undefined {
  if (disk.capacityBytes <= 0 || usedPercent(disk) < policy.highThresholdPercent) return undefined
  return Math.floor((disk.capacityBytes * (100 - policy.lowThresholdPercent)) / 100)
}

/** How full a disk is, in whole percent, as the kubelet counts it: blocks reserved for root count as used. */
export function usedPercent({ capacityBytes, availableBytes }: DiskSpace): number {
  return 100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes)
}

function inOrderOfUse(one: ImageFacts, other: ImageFacts): number {
  const byUse = (one.lastUsedMs ?? -Infinity) - (other.lastUsedMs ?? -Infinity)
  // For two images that were never used the difference is NaN.
  const order = Number.isNaN(byUse) || byUse === 0 ? one.firstSeenMs - other.firstSeenMs : byUse
  if (order !== 0) return order
  // Not `localeCompare`: ICU's tables for it are 2 MiB.
  return one.id < other.id ? -1 : 1
}

function unusedMs(image: ImageFacts, nowMs: number): number {
  return nowMs - (image.lastUsedMs ?? image.firstSeenMs)
}

function unusedFor(image: ImageFacts, nowMs: number): string {
  return `unused for ${formatAge(unusedMs(image, nowMs))}`
}

/** `45s`, `3m`, `26h`, `9d`: the largest unit that gives at least two, in whole numbers. */
function formatAge(durationMs: number): string {
  const seconds = Math.max(0, Math.floor(durationMs / 1000))
  if (seconds < 120) return `${seconds}s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`
}

/** The ids of the images in use. */
export function selectUsedImages(
  images: readonly Pick<ImageFacts, 'id' | 'names'>[],
  uses: readonly ImageUse[],
): ReadonlySet<string> {
  const users = indexUses(uses)
  return new Set(images.flatMap((image) => (findUser(image, users) === undefined ? [] : [image.id])))
}

/** The users of each image, without duplicates, by image id. */
export function listImageUsers(
  images: readonly Pick<ImageFacts, 'id' | 'names'>[],
  uses: readonly ImageUse[],
): ReadonlyMap<string, readonly string[]> {
  const users = new Map<string, Set<string>>()
  for (const { image, by } of uses)
    for (const name of new Set([image, normalizeImageName(image)]))
      users.set(name, (users.get(name) ?? new Set()).add(by))
  return new Map(
    images.map(({ id, names }) => {
      const known = [id, ...names, ...names.map((name) => normalizeImageName(name))]
      const all = new Set<string>()
      for (const name of known) for (const by of users.get(name) ?? []) all.add(by)
      return [id, [...all]]
    }),
  )
}

/** The users of images, by id and by complete name. */
function indexUses(uses: readonly ImageUse[]): ReadonlyMap<string, string> {
  return new Map(
    uses.flatMap(({ image, by }) => [[image, by] as const, [normalizeImageName(image), by] as const]),
  )
}

function findUser(
  image: Pick<ImageFacts, 'id' | 'names'>,
  users: ReadonlyMap<string, string>,
): string | undefined {
  for (const name of [image.id, ...image.names]) {
    const user = users.get(name) ?? users.get(normalizeImageName(name))
    if (user !== undefined) return user
  }
  return undefined
}

/** The image of this name, id, or unique id prefix (at least 12 digits). */
export function findImageByName<T extends Pick<ImageFacts, 'id' | 'names'>>(
  images: readonly T[],
  wanted: string,
): T | undefined {
  const complete = normalizeImageName(wanted)
  const named = images.find(({ id, names }) =>
    [id, ...names].some((name) => name === wanted || normalizeImageName(name) === complete),
  )
  if (named !== undefined) return named
  const start = /^(?:sha256:)?(?<digits>[0-9a-f]{12,64})$/u.exec(wanted)?.groups?.['digits']
  if (start === undefined) return undefined
  const [found, other] = images.filter(({ id }) => id.startsWith(`sha256:${start}`))
  return other === undefined ? found : undefined
}
