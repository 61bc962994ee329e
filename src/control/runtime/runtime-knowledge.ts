import type { Clock, Timer } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { apiVersionProblem } from '../../runtime/cri-client.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import type { RuntimeFeatures } from '../../pod/state/observed.ts'
import { readNetworkProblem, readRuntimeFeatures, readRuntimeProblem } from '../../translate/observe.ts'

export interface RuntimeKnowledgeDeps {
  readonly runtime: Pick<RuntimeService, 'version' | 'status'>
  readonly clock: Clock
  readonly logger: Logger
  /** Whether the runtime takes calls. */
  readonly isUp: () => boolean
  /** It has reported its features. */
  readonly onLearnt: () => void
  /** `problem` or `networkProblem` has changed. */
  readonly onReadiness: () => void
}

const learnAgainMs = 10_000
/** How often a runtime that is not ready is asked: there is no event for it (the kubelet's `updateRuntimeUp` asks as often). */
const notReadyMs = 5000
/** How often one that is ready is asked; that it isn't any more shows earlier where a sandbox can't be made. */
const readyMs = 60_000

/** What the runtime last reported of itself: its features, and what it is not ready for. */
export class RuntimeKnowledge {
  readonly #deps: RuntimeKnowledgeDeps
  #features: RuntimeFeatures | undefined
  #timer: Timer | undefined
  #problem: string | undefined
  #networkProblem: string | undefined
  readonly #learnt = Promise.withResolvers<void>()

  constructor(deps: RuntimeKnowledgeDeps) {
    this.#deps = deps
  }

  /** Undefined until the runtime has reported them. */
  get features(): RuntimeFeatures | undefined {
    return this.#features
  }

  /** Why the runtime can't be used although it answers: it is not ready, or speaks another API. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Why it can't make sandboxes with a network of their own, and what to do; undefined where it can. */
  get networkProblem(): string | undefined {
    return this.#networkProblem
  }

  /** Resolves when the runtime was asked for the first time. */
  get asked(): Promise<void> {
    return this.#learnt.promise
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
      this.#note(apiVersionProblem(version) ?? readRuntimeProblem(status), readNetworkProblem(status))
      onLearnt()
      this.#lookLater()
    } catch (error) {
      logger.warn({ err: error }, 'cannot read the features of the container runtime')
      this.#timer = clock.startTimer(learnAgainMs, () => void this.learn())
    } finally {
      this.#learnt.resolve()
    }
  }

  /** Asks again whether the runtime is ready. Never rejects. */
  async look(): Promise<void> {
    const { runtime, logger, isUp } = this.#deps
    // It is asked for everything when it is back.
    if (this.#features === undefined || !isUp()) return
    // What it says of its network's configuration stands in the long answer.
    if (this.#problem !== undefined || this.#networkProblem !== undefined) return this.learn()
    try {
      const status = await runtime.status({})
      if ((readRuntimeProblem(status) ?? readNetworkProblem(status)) !== undefined) return await this.learn()
    } catch (error) {
      logger.debug({ err: error }, 'cannot ask the container runtime whether it is ready')
    }
    this.#lookLater()
  }

  #lookLater(): void {
    const isReady = this.#problem === undefined && this.#networkProblem === undefined
    this.#timer?.cancel()
    this.#timer = this.#deps.clock.startTimer(isReady ? readyMs : notReadyMs, () => void this.look())
  }

  #note(problem: string | undefined, network: string | undefined): void {
    const isNews = this.#problem !== problem || this.#networkProblem !== network
    this.#problem = problem
    this.#networkProblem = network
    if (isNews) this.#deps.onReadiness()
  }

  stop(): void {
    this.#timer?.cancel()
  }
}
