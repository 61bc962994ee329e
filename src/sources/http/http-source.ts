import { createHash } from 'node:crypto'
import { sleepUnlessAborted } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { parseSourceUrl, showUrl } from '../../base/http.ts'
import { systemRandom } from '../../base/random.ts'
import type { RandomSource } from '../../base/random.ts'
import { firstPace, allowedDelaySeconds, paceRequest } from '../../decide/sources/pace-requests.ts'
import type { Pace } from '../../decide/sources/pace-requests.ts'
import { errorAt, isPodDocument, groupDocuments, warningAt } from '../../pod/objects/document.ts'
import type { Problem, SourceDocument, SourceSnapshot } from '../../pod/objects/document.ts'
import { LastGoodSaver, mergeLastGood, answerDeadline } from '../source.ts'
import type { ReportingSource, SourceOptions, SourceReport } from '../source.ts'
import { asSigned, givesAny, pathInUrl, signatureUrl } from '../verify-manifest.ts'
import type { VerifiedManifest } from '../verify-manifest.ts'
import { getOnce, readHeaders } from './http-get.ts'
import type { HeaderFiles, HttpAnswer, HttpGet, Validators } from './http-get.ts'
import { HttpRoutes } from './http-routes.ts'
import type { Environment, TlsFiles } from './http-routes.ts'

const timeoutMs = 10_000
/** The interval of unconditional requests, which bounds for how long a wrong `ETag` hides a change. */
const wholeEveryMs = 3_600_000
/** How long the last good copy waits for the first response, so that pods don't start from it and change at once. */
const firstAnswerMs = 2_000

/**
 * A URL as a source of pods, asked again and again. Only 200 and 304 count; whatever else happens leaves the pods as
 * they are and is a problem. After a failure the first retries come sooner than the period. A server that supports it
 * delays its response until there is something new.
 */
export function createHttpSource(options: HttpSourceOptions): ReportingSource {
  let loop: HttpLoop | undefined
  return {
    async run(onSnapshot, signal) {
      if (signal.aborted) return
      loop = new HttpLoop(options, onSnapshot)
      await loop.run(signal)
    },
    report: () => loop?.report() ?? { mode: 'poll' },
  }
}

class HttpLoop {
  readonly #options: HttpSourceOptions
  readonly #onSnapshot: (snapshot: SourceSnapshot) => void
  readonly #url: URL
  readonly #allowHttp: boolean
  readonly #routes: HttpRoutes
  readonly #saver: LastGoodSaver
  readonly #location: string
  /** URLs that are shown alike differ in it. */
  readonly #key: string
  #documents: readonly SourceDocument[] = []
  #documentProblems: readonly Problem[] = []
  #failure: Problem | undefined
  #failingSinceMs = 0
  #answeredAtMs: number | undefined
  #isReady = false
  /** The last good copy was kept without Secrets. */
  #lacksSecrets = false
  #validators: Validators | undefined
  /** When the last unconditional request was sent (monotonic). */
  #wholeAtMs = Number.NEGATIVE_INFINITY
  /** The server gave different responses with one `ETag`: from then on requests are unconditional. */
  #lie: Problem | undefined
  #hash = ''
  /** Of the same answer as it was sent. */
  #digest: string | undefined
  /** The digest of the answer whose signature was verified last. */
  #verified: string | undefined
  /** The answer that was verified last. */
  #signed: VerifiedManifest | undefined
  /** The last answer had no good signature. */
  #isUnverified = false
  #published: string | undefined
  #pace: Pace = firstPace
  /** Cancels the request or the wait in flight. */
  #turn = new AbortController()

  constructor(options: HttpSourceOptions, onSnapshot: (snapshot: SourceSnapshot) => void) {
    this.#options = options
    this.#onSnapshot = onSnapshot
    const { name, env = process.env, tls, allowHttp, lastGood, logger } = options
    const { url, socketPath } = parseSourceUrl(options.url)
    this.#url = url
    // All that goes to a unix socket stays on this host.
    this.#allowHttp = allowHttp === true || socketPath !== undefined
    this.#routes = new HttpRoutes(env, socketPath, tls)
    this.#location = showUrl(options.url)
    this.#key = `${this.#location}#${createHash('sha256').update(options.url).digest('hex').slice(0, 8)}`
    this.#saver = new LastGoodSaver(lastGood, name, this.#key, logger, () => this.publish())
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, periodMs, random = systemRandom } = this.#options
    // Load the client first, so that its load time doesn't count as the server's. The first request reports a failure.
    await this.#routes.find(this.#url).catch(() => undefined)
    const lastGood = await this.#saver.load()
    this.#documents = lastGood?.documents ?? []
    this.#isReady = lastGood?.isComplete === true
    this.#lacksSecrets = lastGood?.lacksSecrets === true
    const patience = clock.startTimer(firstAnswerMs, () => {
      if (this.#published !== undefined || signal.aborted) return
      this.#noteFailure(this.#problem('the server has not answered yet'))
      this.publish()
    })
    const unfollow = this.#options.values?.follow(() => this.#turn.abort())
    try {
      while (!signal.aborted) {
        if (this.#turn.signal.aborted) this.#forgetAnswer()
        const turn = AbortSignal.any([signal, this.#turn.signal])
        const startedMs = clock.monotonicMs()
        const isWhole = this.#isWholeDue(startedMs)
        const isExtra = isWhole && this.#validators !== undefined
        const answer = await this.#ask(isWhole, turn)
        if (signal.aborted) break
        if (turn.aborted) continue
        patience.cancel()
        const hashBefore = this.#hash
        const isTaken = await this.#take(answer).catch((error: unknown) => {
          this.#noteFailure(this.#problem(`the answer cannot be taken: ${errorMessage(error)}`))
          return false
        })
        if (isWhole && isTaken) this.#wholeAtMs = startedMs
        void this.#saver.keep()
        this.publish()
        const outcome = {
          isTaken,
          isRefused: answer.kind === 'failed' && answer.isUnverified === true,
          // An unconditional request is answered at once, also by a server that delays others.
          isChanged: this.#hash !== hashBefore || (isExtra && this.#lie === undefined),
          waits: answer.waits === true,
          tookMs: clock.monotonicMs() - startedMs,
          retryAfterMs: answer.retryAfterMs,
        }
        const { pace, waitMs } = paceRequest(this.#pace, outcome, periodMs, random())
        this.#pace = pace
        if (waitMs > 0) await sleepUnlessAborted(clock, waitMs, turn)
      }
    } finally {
      unfollow?.()
      patience.cancel()
      await this.#saver.flush()
      await this.#options.verifier?.flush()
      await this.#routes.destroy()
    }
  }

  report(): SourceReport {
    const message = this.#failure?.message
    return {
      mode: this.#pace.waits ? 'push' : 'poll',
      hash: this.#hash === '' ? undefined : this.#hash,
      etag: this.#validators?.etag,
      answeredAtMs: this.#answeredAtMs,
      failure: message === undefined ? undefined : { message, sinceMs: this.#failingSinceMs },
    }
  }

  /** Yields a snapshot, unless it equals the previous one. */
  publish(): void {
    const all = [this.#failure, this.#lie, this.#saver.problem(), ...this.#documentProblems]
    const problems = all.filter((problem) => problem !== undefined)
    const state = JSON.stringify([problems, this.#isReady, this.#hash])
    if (state === this.#published) return
    this.#published = state
    const isAnswer = this.#wholeAtMs !== Number.NEGATIVE_INFINITY
    this.#onSnapshot({
      source: this.#options.name,
      location: this.#location,
      ready: this.#isReady,
      isAnswer,
      ...(this.#lacksSecrets && !isAnswer && { lacksSecrets: true }),
      revision: this.#validators?.etag,
      digest: this.#digest,
      ...groupDocuments(this.#documents),
      problems,
    })
  }

  #isWholeDue(nowMs: number): boolean {
    return this.#lie !== undefined || nowMs - this.#wholeAtMs >= wholeEveryMs
  }

  /** The substituted values changed, so the response has to be decoded again. */
  #forgetAnswer(): void {
    this.#turn = new AbortController()
    this.#validators = undefined
    this.#hash = ''
  }

  async #ask(isWhole: boolean, signal: AbortSignal): Promise<HttpAnswer> {
    const { clock, mayHold = true, random = systemRandom } = this.#options
    const waitSeconds = mayHold ? allowedDelaySeconds(this.#pace, random()) : undefined
    const deadlineMs = timeoutMs + (this.#pace.waits && waitSeconds !== undefined ? waitSeconds * 1000 : 0)
    try {
      using deadline = answerDeadline(clock, deadlineMs)
      const { describeHost, headerFiles = {} } = this.#options
      const given = await readHeaders(this.#options.headers, headerFiles)
      const headers = { ...describeHost?.(this.#failure?.message), ...given }
      const get = {
        url: this.#url,
        headers,
        validators: isWhole ? undefined : this.#validators,
        waitSeconds,
        nowMs: clock.wallMs(),
        allowHttp: this.#allowHttp,
      }
      const either = AbortSignal.any([signal, deadline.signal])
      return await this.#verify(await getOnce(this.#routes, get, either), get, either)
    } catch (error) {
      return { kind: 'failed', message: errorMessage(error) }
    }
  }

  /** An answer without a good signature is a failed one. The same content is not verified twice in a row. */
  async #verify(answer: HttpAnswer, get: HttpGet, signal: AbortSignal): Promise<HttpAnswer> {
    const { verifier, url } = this.#options
    if (verifier === undefined || answer.kind !== 'content' || isBlank(answer.bytes)) return answer
    const digest = createHash('sha256').update(answer.bytes).digest('hex')
    if (digest === this.#verified) return answer
    const signaturePlace = showUrl(signatureUrl(url))
    const wanted = { ...get, url: new URL(signatureUrl(get.url.href)), validators: undefined }
    const signature = await getOnce(this.#routes, { ...wanted, waitSeconds: undefined }, signal)
    if (signature.kind !== 'content') {
      const why = signature.kind === 'failed' ? signature.message : 'nothing came'
      const message = `the answer is not taken: the signature ${signaturePlace} is missing: ${why}`
      const hint = 'sign the manifest, and serve both: minisign -Sm FILE'
      return { kind: 'failed', message, hint, isUnverified: true }
    }
    const verified = await verifier.verify({
      content: answer.bytes,
      // Credentials in the URL may change.
      id: this.#options.name,
      name: pathInUrl(get.url),
      signature: signature.bytes,
      signaturePlace,
    })
    if ('message' in verified) {
      const message = `the answer ${verified.message}`
      return { ...verified, kind: 'failed', message, isUnverified: true }
    }
    this.#verified = digest
    this.#signed = verified
    return answer
  }

  /** Returns whether the server answered. */
  async #take(answer: HttpAnswer): Promise<boolean> {
    const isUnverified = answer.kind === 'failed' && answer.isUnverified === true
    // A new manifest may be served a moment before its signature: that is told only where it lasts.
    const isFirst = isUnverified && !this.#isUnverified && this.#isReady
    this.#isUnverified = isUnverified
    if (isFirst) return false
    if (answer.kind === 'failed') this.#noteFailure(this.#problem(answer.message, answer.hint))
    else if (answer.kind === 'unchanged') this.#noteAnswer()
    else if (isBlank(answer.bytes)) this.#noteFailure(this.#problem('the answer is empty', emptyHint))
    else {
      const hashBefore = this.#hash
      await this.#takeContent(answer.bytes)
      this.#noteAnswer()
      if (this.#hash !== hashBefore) this.#checkEtag(answer.validators?.etag)
      this.#validators = answer.validators
      this.#isReady = true
      this.#saver.save(this.#documents)
      return true
    }
    // Saving a copy is retried, whatever the server answered.
    if (this.#isReady && this.#saver.problem() !== undefined) this.#saver.save(this.#documents)
    return answer.kind !== 'failed'
  }

  /** Call it where the response differs from the previous one. */
  #checkEtag(etag: string | undefined): void {
    if (etag === undefined || etag !== this.#validators?.etag || this.#lie !== undefined) return
    const message = `the server gives different answers under the ETag ${etag}: podd asks for the whole answer each time`
    this.#lie = warningAt(this.#location, message, 'make the ETag of what it stands for: a hash')
    const { logger } = this.#options
    logger.warn({ path: this.#location, reason: message }, 'the ETag does not tell answers apart')
  }

  async #takeContent(bytes: Uint8Array): Promise<void> {
    const digest = createHash('sha256').update(bytes).digest('hex')
    // With other values the same text decodes differently.
    const { revision = 0 } = this.#options.values ?? {}
    const hash = revision === 0 ? digest : createHash('sha256').update(`${digest}\n${revision}`).digest('hex')
    if (hash === this.#hash) return
    const { decode, fieldValidation = 'Strict' } = this.#options
    const decoded = await decode(bytes, { path: this.#location, fieldValidation })
    const result = asSigned(decoded, this.#signed)
    this.#documents = mergeLastGood(this.#documents, result)
    this.#documentProblems = result.problems
    if (givesAny(result)) {
      this.#signed?.accept()
    }
    this.#hash = hash
    this.#digest = digest
  }

  #problem(message: string, hint?: string): Problem {
    const kept = this.#documents.filter((document) => isPodDocument(document)).length
    const suffix = kept === 0 ? '' : `; the pods it gave before are kept (${kept})`
    return errorAt(this.#location, `${message}${suffix}`, hint)
  }

  #noteAnswer(): void {
    this.#answeredAtMs = this.#options.clock.wallMs()
    this.#noteFailure(undefined)
  }

  #noteFailure(problem: Problem | undefined): void {
    const { logger, clock } = this.#options
    const before = this.#failure?.message
    if (this.#failure === undefined) this.#failingSinceMs = clock.wallMs()
    this.#failure = problem
    if (before === problem?.message) return
    if (problem === undefined) logger.info({ path: this.#location }, 'the manifest URL is readable again')
    else logger.error({ path: this.#location, reason: problem.message }, 'cannot read the manifest URL')
  }
}

const emptyHint = 'to run no pods, answer with a List that has no items'

/** Nothing but blanks, comments, document markers and nulls: what a server sends that has lost its files. */
export function isBlank(bytes: Uint8Array): boolean {
  if (bytes.byteLength > 64 * 1024) return false
  const text = new TextDecoder().decode(bytes)
  return text.split('\n').every((line) => isBlankLine(line))
}

function isBlankLine(line: string): boolean {
  const isMarked = line.startsWith('---') || line.startsWith('...')
  const rest = (isMarked ? line.slice(3) : line).trimStart()
  const word = nullWords.find((candidate) => rest.startsWith(candidate)) ?? ''
  const behind = rest.slice(word.length).trimStart()
  return behind === '' || behind.startsWith('#')
}

const nullWords: readonly string[] = ['null', 'Null', 'NULL', '~']

export interface HttpSourceOptions extends SourceOptions {
  /** `http:`, `https:`, or `unix:///SOCKET:/PATH`. */
  readonly url: string
  /** Whether redirects may lead from this host to another unencrypted; by default they may not. */
  readonly allowHttp?: boolean
  /** Sent with every request; several values of one name stay separate. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** Headers whose values are read from files with every request: paths by names. */
  readonly headerFiles?: HeaderFiles
  readonly tls?: TlsFiles
  /**
   * Headers by which each request tells the server of this host; those of `headers` come before them.
   * @param failure why the URL could not be read last
   */
  readonly describeHost?: ((failure: string | undefined) => HttpGet['headers']) | undefined
  /** The period of requests, where the server doesn't delay responses. */
  readonly periodMs: number
  /** Whether the server may delay a response until there is something new; by default it may. */
  readonly mayHold?: boolean
  readonly random?: RandomSource
  /** The environment with the proxy settings; by default this process's. */
  readonly env?: Environment
}
