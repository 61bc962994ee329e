import type { Clock } from '../../base/clock.ts'
import { pollUntil } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'

interface PresentImagesOptions {
  /** Asks the runtime: complete names. */
  readonly list: (signal: AbortSignal) => Promise<ReadonlySet<string>>
  readonly clock: Clock
  readonly logger: Logger
}

/** The interval of lists; the runtime is also listed when it is available again. */
const recheckMs = 300_000
/** How long the runtime may take until it lists what was imported. */
const listedMs = 30_000
const listedPollMs = 50

/** The runtime's images, as last listed. */
export class PresentImages {
  readonly #options: PresentImagesOptions
  #known: ReadonlySet<string> | undefined
  #askedAtMs = 0

  constructor(options: PresentImagesOptions) {
    this.#options = options
  }

  /** Complete names; undefined where the runtime doesn't answer, and before it was asked. */
  get known(): ReadonlySet<string> | undefined {
    return this.#known
  }

  forget(): void {
    this.#known = undefined
  }

  /** Asks where nothing is known, or it is old. Never rejects. */
  async refresh(signal: AbortSignal): Promise<void> {
    const isOld = this.#options.clock.monotonicMs() - this.#askedAtMs >= recheckMs
    if (this.#known === undefined || isOld) await this.ask(signal)
  }

  /** Lists the current images; undefined where the runtime doesn't answer. Never rejects. */
  async ask(signal: AbortSignal): Promise<ReadonlySet<string> | undefined> {
    const { clock, list, logger } = this.#options
    try {
      this.#known = await list(signal)
      this.#askedAtMs = clock.monotonicMs()
    } catch (error) {
      this.#known = undefined
      logger.debug({ err: error }, 'image archives wait for the container runtime')
    }
    return this.#known
  }

  /** Resolves when the runtime lists all of these, or after a while. Rejects where it doesn't answer. */
  async untilListed(images: readonly string[], signal: AbortSignal): Promise<void> {
    const { clock, list } = this.#options
    const areListed = async (): Promise<boolean> => {
      const present = await list(signal)
      this.#known = present
      return images.every((image) => present.has(image))
    }
    await pollUntil(clock, areListed, { periodMs: listedPollMs, timeoutMs: listedMs, signal })
  }
}
