import { putAside } from '../../base/atomic-file.ts'
import type { Clock } from '../../base/clock.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { readState } from '../../base/state-file.ts'
import type { Migration } from '../../base/state-file.ts'
import { selectUsedImages } from '../../decide/node/plan-image-garbage.ts'
import type { ImageFacts, ImageUse } from '../../decide/node/plan-image-garbage.ts'
import type { SmallFile, StateReport } from '../../store/state-report.ts'

/** One step for each version before the current one, oldest first. */
const migrations: readonly Migration[] = []

type SeenImage = Pick<ImageFacts, 'id' | 'names' | 'sizeBytes' | 'pinned'>
type Times = Pick<ImageFacts, 'firstSeenMs' | 'lastUsedMs'>

export interface ImageUsesOptions {
  readonly file: SmallFile
  readonly report: StateReport
  readonly clock: Clock
  readonly logger: Logger
}

/** What changes only in its times is written this often: a small disk is not to wear out by it. */
const writeMs = 3_600_000

/**
 * Since when podd knows each image, and when it was last in use. Times are of the monotonic clock. The file
 * (`<root-dir>/image-uses.json`) has how long ago they are, so that they outlive podd and the host, whatever the wall
 * clock does: what time passes while podd doesn't run doesn't count. (The kubelet forgets all of this when it ends.)
 */
export class ImageUses {
  readonly #options: ImageUsesOptions
  readonly #times = new Map<string, Times>()
  #loaded = false
  /** What was written last, without its times. */
  #written = ''
  #writtenMs = 0

  constructor(options: ImageUsesOptions) {
    this.#options = options
  }

  /** Records that these images exist, and which of them are in use; forgets all others. */
  async note(images: readonly SeenImage[], uses: readonly ImageUse[]): Promise<readonly ImageFacts[]> {
    await this.#load()
    const nowMs = this.#options.clock.monotonicMs()
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
    const { file, clock, report, logger } = this.#options
    try {
      const text = await file.read()
      if (text === undefined) return
      const reading = readState(text, migrations)
      if (reading.kind !== 'current')
        return report({ path: await putAside(file.path), message: reading.message })
      const { images } = reading.content
      const nowMs = clock.monotonicMs()
      for (const [id, ages] of Object.entries(isJsonObject(images) ? images : {})) {
        if (!isJsonObject(ages) || typeof ages['seenForMs'] !== 'number') continue
        const { seenForMs, unusedForMs } = ages
        const lastUsedMs = typeof unusedForMs === 'number' ? nowMs - unusedForMs : undefined
        this.#times.set(id, { firstSeenMs: nowMs - seenForMs, lastUsedMs })
      }
    } catch (error) {
      logger.warn({ err: error, path: file.path }, 'cannot read when images were last used')
    }
  }

  /** Gives whether it is written. Never throws: on a full disk images have to be removed all the more. */
  async #write(nowMs: number): Promise<boolean> {
    const images = Object.fromEntries(
      [...this.#times].map(([id, { firstSeenMs, lastUsedMs }]) => [
        id,
        {
          seenForMs: nowMs - firstSeenMs,
          ...(lastUsedMs === undefined ? {} : { unusedForMs: nowMs - lastUsedMs }),
        },
      ]),
    )
    const { file, logger } = this.#options
    try {
      await file.write(JSON.stringify({ version: migrations.length + 1, images }))
      return true
    } catch (error) {
      logger.warn({ err: error, path: file.path }, 'cannot write when images were last used')
      return false
    }
  }
}
