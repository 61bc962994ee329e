import type { GarbageItem, GarbageReport, ImageVerdict, RemovedImage } from '../../api/images.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { Semaphore } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import {
  findImageByName,
  listImageUsers,
  planImageGarbage,
  usedPercent,
} from '../../decide/node/plan-image-garbage.ts'
import type {
  DiskSpace,
  ImageFacts,
  ImageGarbageMode,
  ImageGarbagePlan,
  ImageGarbagePolicy,
  ImageKept,
  ImageRemoval,
  ImageUse,
} from '../../decide/node/plan-image-garbage.ts'
import type { SmallFile, StateReport } from '../../store/state-report.ts'
import { ImageUses } from './image-uses.ts'

export interface ImageGarbageHost {
  readonly listImages: (signal: AbortSignal) => Promise<readonly cri.Image[]>
  /** All containers of the runtime, including those of other clients. */
  readonly listContainers: (signal: AbortSignal) => Promise<readonly cri.Container[]>
  readonly removeImage: (id: string) => Promise<void>
  /** Where the images are; undefined if the runtime does not report it. */
  readonly imagesPath: (signal: AbortSignal) => Promise<string | undefined>
  readonly readDisk: (path: string) => Promise<DiskSpace>
  /** The image of the pods' sandboxes; undefined where the runtime doesn't say. */
  readonly sandboxImage: (signal: AbortSignal) => Promise<string | undefined>
}

export interface ImageGarbageSetup {
  readonly host: ImageGarbageHost
  readonly policy: ImageGarbagePolicy
  /** Where it is kept when images were used. */
  readonly usesFile: SmallFile
}

interface ImageGarbageEnv extends ImageGarbageSetup {
  readonly report: StateReport
  /** What pods need, as `listNamedImages` gives it; undefined while that isn't known yet. */
  readonly namedImages: () => readonly ImageUse[] | undefined
  readonly clock: Clock
  readonly logger: Logger
}

export interface ImageCollection {
  /** Before it. */
  readonly disk: DiskSpace & { readonly path: string }
  readonly removed: readonly ImageRemoval[]
  readonly kept: readonly ImageKept[]
  readonly failed: readonly { readonly image: ImageFacts; readonly error: unknown }[]
  /** By how much more there was available afterwards; what is removed in a dry run counts as large as the runtime says. */
  readonly freedBytes: number
  /** What had to be available; undefined where the disk was not too full. */
  readonly goalBytes: number | undefined
  /** After it. */
  readonly availableBytes: number
}

interface Gathered {
  readonly images: readonly ImageFacts[]
  readonly uses: readonly ImageUse[]
  readonly path: string
}

/** Removes unused images. One collection at a time. */
export class ImageGarbage {
  readonly #env: ImageGarbageEnv
  readonly #uses: ImageUses
  readonly #turn = new Semaphore(1)

  constructor(env: ImageGarbageEnv) {
    this.#env = env
    const { usesFile, report, clock, logger } = env
    this.#uses = new ImageUses(usesFile, report, clock, logger)
  }

  get host(): ImageGarbageHost {
    return this.#env.host
  }

  /** Records which images exist and are in use; removes nothing. Throws what the runtime's calls throw. */
  look(signal: AbortSignal): Promise<void> {
    return this.#turn.run(async () => void (await this.#gather(signal)), signal)
  }

  /** What a collection would do now. Throws as `collect`. */
  preview(mode: ImageGarbageMode, signal: AbortSignal): Promise<ImageCollection> {
    return this.#turn.run(async () => {
      const gathered = await this.#gather(signal)
      const disk = await this.#env.host.readDisk(gathered.path)
      const plan = this.#plan(gathered, gathered.images, disk, mode)
      const freedBytes = sizeOf(plan.remove.map(({ image }) => image))
      return {
        disk: { ...disk, path: gathered.path },
        removed: plan.remove,
        kept: plan.keep,
        failed: [],
        freedBytes,
        goalBytes: plan.goalBytes,
        availableBytes: disk.availableBytes + freedBytes,
      }
    }, signal)
  }

  /**
   * Removes images one by one, and looks at the disk and at what pods need after each. One that can't be removed keeps
   * no other from it. Throws PoddError IMAGES_NOT_KNOWN before it is known what pods need; what the runtime's calls
   * throw; and the signal's reason.
   */
  collect(mode: ImageGarbageMode, signal: AbortSignal): Promise<ImageCollection> {
    return this.#turn.run(async () => {
      const { host, logger } = this.#env
      const gathered = await this.#gather(signal)
      const before = await host.readDisk(gathered.path)
      const removed: ImageRemoval[] = []
      const failed: { image: ImageFacts; error: unknown }[] = []
      let images = gathered.images
      let disk = before
      let goalBytes: number | undefined
      let plan: ImageGarbagePlan
      for (;;) {
        signal.throwIfAborted()
        plan = this.#plan(gathered, images, disk, mode, goalBytes)
        goalBytes = plan.goalBytes
        const [next] = plan.remove
        if (next === undefined) break
        const { image } = next
        images = images.filter(({ id }) => id !== image.id)
        try {
          await host.removeImage(image.id)
          removed.push(next)
          logger.info({ image: nameOf(image), id: image.id, reason: next.message }, 'removed an image')
        } catch (error) {
          failed.push({ image, error })
          logger.warn({ image: nameOf(image), id: image.id, err: error }, 'cannot remove an image')
        }
        disk = await host.readDisk(gathered.path)
        // Some file systems take their time to make room.
        const expectedBytes = before.availableBytes + sizeOf(removed.map((each) => each.image))
        disk = { ...disk, availableBytes: Math.max(disk.availableBytes, expectedBytes) }
      }
      const after = await host.readDisk(gathered.path)
      return {
        disk: { ...before, path: gathered.path },
        removed,
        kept: plan.keep,
        failed,
        freedBytes: Math.max(0, after.availableBytes - before.availableBytes),
        goalBytes,
        availableBytes: disk.availableBytes,
      }
    }, signal)
  }

  /** Who needs each image, by its id; those of other clients of the runtime too. Throws what the runtime's calls throw. */
  listUsers(signal: AbortSignal): Promise<ReadonlyMap<string, readonly string[]>> {
    return this.#turn.run(async () => {
      const { images, uses } = await this.#gather(signal)
      return listImageUsers(images, [...uses, ...(this.#env.namedImages() ?? [])])
    }, signal)
  }

  /**
   * Removes one image with all its names. Throws PoddError IMAGE_NOT_FOUND, and IMAGE_IN_USE for the image of the
   * sandboxes, which no pod can do without and nothing pulls; without `force` also IMAGE_IN_USE for others, IMAGE_PINNED, and IMAGES_NOT_KNOWN before it is known what pods need; what the runtime's calls throw.
   */
  remove(name: string, force: boolean, signal: AbortSignal): Promise<RemovedImage> {
    return this.#turn.run(async () => {
      const { host, logger } = this.#env
      const { images, uses, path } = await this.#gather(signal)
      const image = findImageByName(images, name)
      if (image === undefined)
        throw new PoddError('IMAGE_NOT_FOUND', `there is no image ${name}`, { hint: 'See `podd images`.' })
      if (isOfSandboxes(image, uses))
        throw new PoddError('IMAGE_IN_USE', `${nameOf(image)} is the image of the sandboxes of pods`, {
          hint: 'No pod starts without it: it cannot be removed, not with --force either.',
        })
      if (!force) this.#checkRemovable(image, uses)
      const before = await host.readDisk(path)
      await host.removeImage(image.id)
      const after = await host.readDisk(path)
      logger.info({ image: nameOf(image), id: image.id, reason: 'on request' }, 'removed an image')
      const freedBytes = Math.max(0, after.availableBytes - before.availableBytes)
      return { id: image.id, names: image.names, freedBytes }
    }, signal)
  }

  #checkRemovable(image: ImageFacts, uses: readonly ImageUse[]): void {
    const named = this.#env.namedImages()
    if (named === undefined) throw notKnown()
    const users = listImageUsers([image], [...uses, ...named]).get(image.id) ?? []
    if (users.length > 0)
      throw new PoddError('IMAGE_IN_USE', `${nameOf(image)} is used by ${users.join(', ')}`, {
        hint: 'With --force it is removed all the same; a pod that needs it again pulls it.',
      })
    if (image.pinned)
      throw new PoddError('IMAGE_PINNED', `${nameOf(image)} is pinned`, {
        hint: 'Unpin it with `podd images unpin`, or remove it with --force.',
      })
  }

  #plan(
    { uses }: Gathered,
    images: readonly ImageFacts[],
    disk: DiskSpace,
    mode: ImageGarbageMode,
    goalBytes?: number,
  ): ImageGarbagePlan {
    const { clock, namedImages, policy } = this.#env
    const named = namedImages()
    if (named === undefined) throw notKnown()
    const facts = { images, uses: [...uses, ...named], disk, goalBytes }
    return planImageGarbage(facts, policy, mode, clock.monotonicMs())
  }

  async #gather(signal: AbortSignal): Promise<Gathered> {
    const { host, namedImages } = this.#env
    // Containers after images: whatever is made of an image that is listed is seen.
    const images = await host.listImages(signal)
    const containers = await host.listContainers(signal)
    const sandboxImage = await host.sandboxImage(signal)
    const path = await host.imagesPath(signal)
    if (path === undefined)
      throw new PoddError('IMAGES_DISK_UNKNOWN', 'the runtime does not say where its images are')
    const uses = [
      ...containers.flatMap((container) => usedBy(container)),
      ...(sandboxImage === undefined ? [] : [{ image: sandboxImage, by: sandboxes }]),
    ]
    const seen = images.map(({ id, repoTags, repoDigests, size, pinned }) => ({
      id,
      names: [...repoTags, ...repoDigests],
      sizeBytes: size,
      pinned,
    }))
    return { images: await this.#uses.note(seen, [...uses, ...(namedImages() ?? [])]), uses, path }
  }
}

/** What uses the image that each sandbox is made of. */
const sandboxes = 'the sandboxes of pods'

function isOfSandboxes(image: ImageFacts, uses: readonly ImageUse[]): boolean {
  const users = listImageUsers(
    [image],
    uses.filter(({ by }) => by === sandboxes),
  )
  return (users.get(image.id) ?? []).length > 0
}

function notKnown(): PoddError {
  return new PoddError('IMAGES_NOT_KNOWN', 'it is not known yet which images pods need', {
    hint: 'Wait until the runtime runs and every source was read; `podd status` shows both.',
  })
}

/** A container that has ended counts as well: it may be started again. */
function usedBy({ image, imageRef, imageId, labels, id }: cri.Container): readonly ImageUse[] {
  const pod = labels['io.kubernetes.pod.name']
  const name = labels['io.kubernetes.container.name']
  const namespace = labels['io.kubernetes.pod.namespace']
  const by = pod === undefined ? `container ${id}` : `container ${namespace}/${pod} ${name}`
  return [image?.image, imageRef, imageId].flatMap((used) =>
    used === undefined || used === '' ? [] : [{ image: used, by }],
  )
}

function sizeOf(images: readonly ImageFacts[]): number {
  return images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
}

export function nameOf({ names, id }: Pick<ImageFacts, 'names' | 'id'>): string {
  return names[0] ?? id
}

/** Why what should have been removed was not, in a few words; undefined where all was. */
export function describeFailures({ failed }: ImageCollection): string | undefined {
  if (failed.length === 0) return undefined
  return failed.map(({ image, error }) => `${nameOf(image)}: ${errorMessage(error)}`).join('; ')
}

export function toGarbageReport(
  collection: ImageCollection,
  items: readonly GarbageItem[],
  dryRun: boolean,
): GarbageReport {
  const { disk, removed, kept, failed, freedBytes } = collection
  return {
    dryRun,
    images: {
      disk: { ...disk, usedPercent: usedPercent(disk) },
      removed: removed.map(({ image, reason, message }) => verdict(image, reason, message)),
      failed: failed.map(({ image, error }) => verdict(image, 'failed', errorMessage(error))),
      kept: kept.map(({ image, reason, message }) => verdict(image, reason, message)),
      freedBytes,
    },
    items,
  }
}

function verdict({ id, names, sizeBytes }: ImageFacts, reason: string, message: string): ImageVerdict {
  return { id, names, sizeBytes, reason, message }
}
