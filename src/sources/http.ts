import { createHash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { PoddError, errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { FieldValidation } from '../pod/schema/check-value.ts'
import type { Problem, SourceDocument, SourceName, SourceSnapshot } from '../pod/objects/document.ts'
import { isObjectDocument, isPodDocument } from '../pod/objects/document.ts'
import type { LastGoodStore } from '../store/last-good.ts'
import type { Environment } from './choose-proxy.ts'
import type { DecodeSource } from './decode-source.ts'
import { isBlank } from './http-blank.ts'
import type { HttpAnswer, Validators } from './http-get.ts'
import { getOnce } from './http-get.ts'
import { HttpRoutes } from './http-routes.ts'
import { LastGoodSaver } from './last-good-saver.ts'
import { mergeLastGood } from './merge-last-good.ts'
import type { Source } from './source.ts'

const timeoutMs = 10_000
/** How long the last good copy waits for the first answer, so that pods don't start from it and change at once. */
const firstAnswerMs = 2_000
const firstRetryMs = 1_000

export interface HttpSourceOptions {
  readonly name: SourceName
  readonly url: string
  /** Sent with every request; several values of one name as they stand. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** From one request to the next. */
  readonly periodMs: number
  readonly clock: Clock
  readonly logger: Logger
  readonly lastGood: LastGoodStore
  readonly decode: DecodeSource
  readonly fieldValidation?: FieldValidation
  /** Where proxies are named; that of this process where nothing is said. */
  readonly env?: Environment
}

/**
 * A URL as a source of pods, asked again and again. Only 200 and 304 count; whatever else happens
 * leaves the pods as they are and is a problem. After a failure it is asked again sooner than after
 * the period, at first.
 */
export function createHttpSource(options: HttpSourceOptions): Source {
  return {
    async run(onSnapshot, signal) {
      if (signal.aborted) return
      const routes = new HttpRoutes(options.env ?? process.env)
      // Loading the client is no delay of the server. A failure is reported by the first request.
      await routes.find(new URL(options.url)).catch(() => undefined)
      const saver = new LastGoodSaver(
        options.lastGood,
        options.name,
        copyKey(options.url),
        options.logger,
        () => {
          loop.publish()
        },
      )
      const loop = new HttpLoop(options, routes, saver, onSnapshot)
      try {
        await loop.run(signal)
      } finally {
        await saver.flush()
        await routes.destroy()
      }
    },
  }
}

/** A URL as it may be shown: without user, password, query and fragment, any of which may be a secret. */
export function showUrl(url: string): string {
  const shown = new URL(url)
  const query = shown.search === '' ? '' : '?…'
  shown.username = ''
  shown.password = ''
  shown.search = ''
  shown.hash = ''
  return `${shown.href}${query}`
}

/** Distinguishes URLs that are shown alike. */
function copyKey(url: string): string {
  return `${showUrl(url)}#${createHash('sha256').update(url).digest('hex').slice(0, 8)}`
}

class HttpLoop {
  readonly #options: HttpSourceOptions
  readonly #routes: HttpRoutes
  readonly #saver: LastGoodSaver
  readonly #onSnapshot: (snapshot: SourceSnapshot) => void
  readonly #url: URL
  readonly #location: string
  #documents: readonly SourceDocument[] = []
  #documentProblems: readonly Problem[] = []
  #failure: Problem | undefined
  #isReady = false
  #validators: Validators | undefined
  #hash = ''
  #published: string | undefined

  constructor(
    options: HttpSourceOptions,
    routes: HttpRoutes,
    saver: LastGoodSaver,
    onSnapshot: (snapshot: SourceSnapshot) => void,
  ) {
    this.#options = options
    this.#routes = routes
    this.#saver = saver
    this.#onSnapshot = onSnapshot
    this.#url = new URL(options.url)
    this.#location = showUrl(options.url)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, periodMs } = this.#options
    const lastGood = await this.#saver.load()
    this.#documents = lastGood?.documents ?? []
    this.#isReady = lastGood?.isComplete === true
    const patience = clock.startTimer(firstAnswerMs, () => {
      if (this.#published !== undefined || signal.aborted) return
      this.#failure = this.#problem('the server has not answered yet')
      this.publish()
    })
    let retryMs = firstRetryMs
    try {
      while (!signal.aborted) {
        const answer = await this.#ask(signal)
        if (signal.aborted) break
        patience.cancel()
        const isTaken = await this.#take(answer).catch((error: unknown) => {
          this.#noteFailure(this.#problem(`the answer cannot be taken: ${errorMessage(error)}`))
          return false
        })
        this.publish()
        const waitMs = isTaken ? periodMs : Math.min(retryMs, periodMs)
        retryMs = isTaken ? firstRetryMs : retryMs * 2
        await clock.sleep(waitMs, signal).catch(() => undefined)
      }
    } finally {
      patience.cancel()
    }
  }

  /** Yields a snapshot, unless it would say what the one before said. */
  publish(): void {
    const problems = [this.#failure, this.#saver.problem(), ...this.#documentProblems].filter(
      (problem) => problem !== undefined,
    )
    const state = JSON.stringify([problems, this.#isReady, this.#hash])
    if (state === this.#published) return
    this.#published = state
    this.#onSnapshot({
      source: this.#options.name,
      location: this.#location,
      ready: this.#isReady,
      pods: this.#documents.filter((document) => isPodDocument(document)),
      objects: this.#documents.filter((document) => isObjectDocument(document)),
      problems,
    })
  }

  async #ask(signal: AbortSignal): Promise<HttpAnswer> {
    const timeout = new AbortController()
    const timer = this.#options.clock.startTimer(timeoutMs, () =>
      timeout.abort(new PoddError('SOURCE_TIMEOUT', `no full answer within ${timeoutMs / 1000} s`)),
    )
    try {
      const get = { url: this.#url, headers: this.#options.headers, validators: this.#validators }
      return await getOnce(this.#routes, get, AbortSignal.any([signal, timeout.signal]))
    } finally {
      timer.cancel()
    }
  }

  /** Gives whether the server answered. */
  async #take(answer: HttpAnswer): Promise<boolean> {
    if (answer.kind === 'failed') this.#noteFailure(this.#problem(answer.message, answer.hint))
    else if (answer.kind === 'unchanged') this.#noteFailure(undefined)
    else if (isBlank(answer.bytes)) this.#noteFailure(this.#problem('the answer is empty', emptyHint))
    else {
      await this.#takeContent(answer.bytes)
      this.#noteFailure(undefined)
      this.#validators = answer.validators
      this.#isReady = true
      this.#saver.save(this.#documents)
      return true
    }
    // A copy that could not be saved is saved again, whatever the server answered.
    if (this.#isReady && this.#saver.problem() !== undefined) this.#saver.save(this.#documents)
    return answer.kind !== 'failed'
  }

  async #takeContent(bytes: Uint8Array): Promise<void> {
    const hash = createHash('sha256').update(bytes).digest('hex')
    if (hash === this.#hash) return
    const { decode, fieldValidation = 'Strict' } = this.#options
    const result = await decode(bytes, { path: this.#location, fieldValidation })
    this.#documents = mergeLastGood(this.#documents, result)
    this.#documentProblems = result.problems
    this.#hash = hash
  }

  #problem(message: string, hint?: string): Problem {
    const kept = this.#documents.filter((document) => isPodDocument(document)).length
    const suffix = kept === 0 ? '' : `; the pods it gave before are kept (${kept})`
    return {
      severity: 'error',
      place: { path: this.#location },
      message: `${message}${suffix}`,
      ...(hint !== undefined && { hint }),
    }
  }

  #noteFailure(problem: Problem | undefined): void {
    const { logger } = this.#options
    const before = this.#failure?.message
    this.#failure = problem
    if (before === problem?.message) return
    if (problem === undefined) logger.info({ path: this.#location }, 'the manifest URL is readable again')
    else logger.error({ path: this.#location, reason: problem.message }, 'cannot read the manifest URL')
  }
}

const emptyHint = 'to run no pods, answer with a List that has no items'
