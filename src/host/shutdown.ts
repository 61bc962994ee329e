import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'

/** While the host is going down, how often podd asks whether it still is: a shutdown can be called off. */
const askAgainMs = 5000

/**
 * Whether the host is going down: then nothing is started, and what fails is no error. systemd is asked when it counts,
 * before a container starts or stops and after a warning, and its answer holds from the first stop of a unit on. A
 * connection that is kept for logind's signal (`pkg/kubelet/nodeshutdown`, 1.36) would hear nothing of a shutdown that
 * isn't logind's, and nothing at all where no bus runs.
 */
export class HostShutdown {
  readonly #ask: (() => Promise<boolean>) | undefined
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #listeners: (() => void)[] = []
  #isStopping = false
  #looking: Promise<boolean> | undefined

  /** @param ask undefined where there is nobody to ask */
  constructor(ask: (() => Promise<boolean>) | undefined, clock: Clock, logger: Logger) {
    this.#ask = ask
    this.#clock = clock
    this.#logger = logger
  }

  /** By what was heard last. */
  get isStopping(): boolean {
    return this.#isStopping
  }

  /** Calls this whenever the host begins to go down, and when that is called off; it must not throw. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /**
   * Asks whether the host is going down; undefined where there is nobody to ask. Never rejects. Whoever asks while a question
   * is in flight shares its answer, so that a systemd that is busy is asked once. An answer that has come isn't used again: a
   * shutdown kills containers from its first moment on.
   */
  look(): Promise<boolean> | undefined {
    if (this.#ask === undefined) return undefined
    this.#looking ??= this.#look(this.#ask).finally(() => (this.#looking = undefined))
    return this.#looking
  }

  /** The host refused to start something because it is going down. That holds until it is asked again. */
  note(): void {
    this.#set(true)
  }

  async #look(ask: () => Promise<boolean>): Promise<boolean> {
    try {
      this.#set(await ask())
    } catch (error) {
      // It is busy, or going away itself.
      this.#logger.debug({ err: error }, 'cannot ask whether the host is going down')
    }
    return this.#isStopping
  }

  #set(isStopping: boolean): void {
    if (isStopping === this.#isStopping) return
    this.#isStopping = isStopping
    if (isStopping) {
      this.#logger.info({}, 'the host is going down: podd starts nothing')
      this.#watchForEnd()
    } else this.#logger.info({}, 'the host goes on')
    for (const listener of this.#listeners) listener()
  }

  #watchForEnd(): void {
    this.#clock.startTimer(askAgainMs, () => {
      if (this.#ask === undefined) this.#set(false)
      else void this.look()?.then((isStopping) => isStopping && this.#watchForEnd())
    })
  }
}
