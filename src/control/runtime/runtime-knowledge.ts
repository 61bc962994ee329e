import type { Clock, Timer } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { RuntimeService } from '../../cri/cri-runtime.ts'
import type { RuntimeFeatures } from '../../pod/state/runtime-features.ts'
import { readRuntimeFeatures } from '../../translate/read-runtime-features.ts'

export interface RuntimeKnowledgeDeps {
  readonly runtime: Pick<RuntimeService, 'version' | 'status'>
  readonly clock: Clock
  readonly logger: Logger
  /** Whether the runtime takes calls. */
  readonly isUp: () => boolean
  /** It has reported its features. */
  readonly onLearnt: () => void
}

const learnAgainMs = 10_000

/** The runtime's features, as it last reported them. */
export class RuntimeKnowledge {
  readonly #deps: RuntimeKnowledgeDeps
  #features: RuntimeFeatures | undefined
  #timer: Timer | undefined

  constructor(deps: RuntimeKnowledgeDeps) {
    this.#deps = deps
  }

  /** Undefined until the runtime has reported them. */
  get features(): RuntimeFeatures | undefined {
    return this.#features
  }

  /**
   * Asks the runtime, again and again until it answers: a runtime that was unavailable may be another version
   * afterwards. Never rejects.
   */
  async learn(): Promise<void> {
    const { runtime, logger, clock, isUp, onLearnt } = this.#deps
    this.#timer?.cancel()
    if (!isUp()) return
    try {
      const [version, status] = await Promise.all([runtime.version({}), runtime.status({ verbose: true })])
      this.#features = readRuntimeFeatures(version, status)
      onLearnt()
    } catch (error) {
      logger.warn({ err: error }, 'cannot read the features of the container runtime')
      this.#timer = clock.startTimer(learnAgainMs, () => void this.learn())
    }
  }

  stop(): void {
    this.#timer?.cancel()
  }
}
