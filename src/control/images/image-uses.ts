import type { Clock } from '../../base/clock.ts'
import { isJsonObject, objectOrEmpty } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { Migration } from '../../base/state-file.ts'
import { selectUsedImages } from '../../decide/node/plan-image-garbage.ts'
import type { ImageFacts, ImageUse } from '../../decide/node/plan-image-garbage.ts'
import type { SourceSnapshot } from '../../pod/objects/document.ts'
import { selectVolumeImages } from '../../pod/schema/default-pod.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedContainer } from '../../pod/state/observed.ts'
import type { ContainerHistory } from '../../pod/state/pod-record.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import type { ImageService, RuntimeService } from '../../runtime/cri-runtime.ts'
import { loadState } from '../../store/state-report.ts'
import type { SmallFile, StateReport } from '../../store/state-report.ts'

/** One step for each version before the current one, oldest first. */
const migrations: readonly Migration[] = []

type SeenImage = Pick<ImageFacts, 'id' | 'names' | 'sizeBytes' | 'pinned'>
type Times = Pick<ImageFacts, 'firstSeenMs' | 'lastUsedMs'>

/** What changes only in its times is written this often: a small disk is not to wear out by it. */
const writeMs = 3_600_000

/**
 * Since when podd knows each image, and when it was last in use. Times are of the monotonic clock. The file
 * (`<root-dir>/image-uses.json`) has how long ago they are, so that they outlive podd and the host, whatever the wall
 * clock does: what time passes while podd doesn't run doesn't count. (The kubelet forgets all of this when it ends.)
 */
export class ImageUses {
  readonly #file: SmallFile
  readonly #report: StateReport
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #times = new Map<string, Times>()
  #loaded = false
  /** What was written last, without its times. */
  #written = ''
  #writtenMs = 0

  constructor(file: SmallFile, report: StateReport, clock: Clock, logger: Logger) {
    this.#file = file
    this.#report = report
    this.#clock = clock
    this.#logger = logger
  }

  /** Records that these images exist, and which of them are in use; forgets all others. */
  async note(images: readonly SeenImage[], uses: readonly ImageUse[]): Promise<readonly ImageFacts[]> {
    await this.#load()
    const nowMs = this.#clock.monotonicMs()
    const used = selectUsedImages(images, uses)
    const facts = images.map((image) => {
      const known = this.#times.get(image.id)
      const lastUsedMs = used.has(image.id) ? nowMs : known?.lastUsedMs
      return { ...image, firstSeenMs: known?.firstSeenMs ?? nowMs, lastUsedMs }
    })
    this.#times.clear()
    for (const { id, firstSeenMs, lastUsedMs } of facts) this.#times.set(id, { firstSeenMs, lastUsedMs })
    const state = facts.map(({ id }) => `${id} ${used.has(id)}`).join('\n')
    if (state !== this.#written || nowMs - this.#writtenMs >= writeMs) {
      if (await this.#write(nowMs)) {
        this.#written = state
        this.#writtenMs = nowMs
      }
    }
    return facts
  }

  async #load(): Promise<void> {
    if (this.#loaded) return
    this.#loaded = true
    try {
      const content = await loadState(this.#file, migrations, (found) => found, this.#report)
      const { images } = content ?? {}
      const nowMs = this.#clock.monotonicMs()
      for (const [id, ages] of Object.entries(objectOrEmpty(images))) {
        if (!isJsonObject(ages) || typeof ages['seenForMs'] !== 'number') continue
        const { seenForMs, unusedForMs } = ages
        const lastUsedMs = typeof unusedForMs === 'number' ? nowMs - unusedForMs : undefined
        this.#times.set(id, { firstSeenMs: nowMs - seenForMs, lastUsedMs })
      }
    } catch (error) {
      this.#logger.warn({ err: error, path: this.#file.path }, 'cannot read when images were last used')
    }
  }

  /** Gives whether it is written. Never throws: on a full disk images have to be removed all the more. */
  async #write(nowMs: number): Promise<boolean> {
    const images = Object.fromEntries(
      [...this.#times].map(([id, { firstSeenMs, lastUsedMs }]) => [
        id,
        {
          seenForMs: nowMs - firstSeenMs,
          ...(lastUsedMs !== undefined && { unusedForMs: nowMs - lastUsedMs }),
        },
      ]),
    )
    try {
      await this.#file.write(JSON.stringify({ version: migrations.length + 1, images }))
      return true
    } catch (error) {
      this.#logger.warn({ err: error, path: this.#file.path }, 'cannot write when images were last used')
      return false
    }
  }
}

/** What a pod's worker knows of its images. */
export interface NamingWorker {
  readonly ref: { readonly namespace: string; readonly name: string }
  readonly state: {
    readonly pod: Pod
    readonly observed: { readonly containers: readonly Pick<ObservedContainer, 'image' | 'imageId'>[] }
    readonly record: {
      readonly containers: Readonly<Record<string, Pick<ContainerHistory, 'ended' | 'awaitedImage'>>>
    }
  }
}

/**
 * All images that pods have, had last, or are to have: those of what runs, of what a source wants (in its last good
 * form, where the newest is bad; be it refused, waiting, or fetched for a replacement), and those that a container goes
 * back to while its new image can't be had.
 */
export function listNamedImages(
  workers: Iterable<NamingWorker>,
  snapshots: readonly Pick<SourceSnapshot, 'pods'>[],
): readonly ImageUse[] {
  return [
    ...snapshots.flatMap(({ pods }) =>
      pods.flatMap(({ pod }) => namedBy(pod, `pod ${nameOf(pod.metadata)}`)),
    ),
    ...[...workers].flatMap((worker) => ofWorker(worker)),
  ]
}

function ofWorker({ ref, state: { pod, observed, record } }: NamingWorker): readonly ImageUse[] {
  const by = `pod ${nameOf(ref)}`
  const images = [
    ...observed.containers.flatMap(({ image, imageId }) => [image, imageId]),
    ...Object.values(record.containers).flatMap(({ ended, awaitedImage }) => [
      ended?.image,
      ended?.imageId,
      awaitedImage,
    ]),
  ]
  return [
    ...namedBy(pod, by),
    ...images.flatMap((image) => (image === undefined || image === '' ? [] : [{ image, by }])),
  ]
}

function namedBy(pod: Pod, by: string): readonly ImageUse[] {
  return listPodImages(pod).map((image) => ({ image, by }))
}

export function listPodImages({ spec }: Pod): readonly string[] {
  const wanted = [...spec.initContainers, ...spec.containers, ...selectVolumeImages(spec.volumes)]
  return wanted.map(({ image }) => image)
}

function nameOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`
}

/** Whether a container, running or not, has this image, under whatever name. Throws the runtime's error. */
export async function isImageInUse(
  images: Pick<ImageService, 'imageStatus'>,
  runtime: Pick<RuntimeService, 'listContainers'>,
  image: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { image: found } = await images.imageStatus({ image: { image } }, { signal })
  if (found === null) return false
  const names = new Set(
    [found.id, ...found.repoTags, ...found.repoDigests].map((name) => normalizeImageName(name)),
  )
  const { containers } = await runtime.listContainers({}, { signal })
  return containers.some(({ image: spec, imageId, imageRef }) =>
    [imageId, imageRef, spec?.image ?? '', spec?.userSpecifiedImage ?? ''].some((name) =>
      names.has(normalizeImageName(name)),
    ),
  )
}
