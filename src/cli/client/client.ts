import { existsSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { parse } from 'node:path'
import type { WebSocket } from 'ws'
import { parseApiReason } from '../../api/resource.ts'
import type { ResourceObject, WatchEvent } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { startDeadline } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { isJsonObject, parseJson, jsonAt, objectOrEmpty, objectsAt } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'

/** The daemon answered with an error; `reason` is Kubernetes' (`NotFound`, `BadRequest`, …). */
export class ServerError extends PoddError {
  readonly reason: string

  constructor(reason: string, message: string, hint: string | undefined) {
    super(`API_${parseApiReason(reason) ?? 'InternalError'}`, `Error from server (${reason}): ${message}`, {
      hint,
    })
    this.reason = reason
  }

  /**
   * A Status within a response, or as one.
   * @param statusCode what tells of the error where this is no Status
   */
  static of(status: unknown, statusCode = 0): ServerError {
    const { reason, message, details } = objectOrEmpty(status)
    const [cause] = objectsAt(details, 'causes')
    // A cause about a field repeats the message.
    const hint = cause?.['field'] === undefined ? jsonAt(cause, 'message') : undefined
    return new ServerError(
      typeof reason === 'string' ? reason : String(statusCode),
      typeof message === 'string' ? message : `the answer was ${statusCode}`,
      typeof hint === 'string' && hint !== '' ? hint : undefined,
    )
  }
}

/** Talks to the daemon over its socket; src/api/routes.ts says what there is to ask. */
export class ApiClient {
  readonly socketPath: string
  readonly #clock: Clock

  constructor(socketPath: string, clock: Clock) {
    this.socketPath = socketPath
    this.#clock = clock
  }

  /** The JSON of one response. The types are trusted, as both ends come from one package. */
  get<T>(path: string, signal: AbortSignal): Promise<T> {
    return this.#ask({ method: 'GET', path }, signal)
  }

  /** The daemon's status. */
  status(signal: AbortSignal): Promise<DaemonStatus> {
    return this.get('/podd/v1/status', signal)
  }

  /** As `get`, of a list. Throws PoddError ANSWER_UNREADABLE where the answer is none, as of another program. */
  async getList<T extends { readonly items: readonly unknown[] }>(
    path: string,
    signal: AbortSignal,
  ): Promise<T> {
    const list = await this.get<T | { readonly items?: undefined } | null>(path, signal)
    if (!list?.items) throw this.#unreadable()
    return list
  }

  /** @param object what to create, as JSON */
  post<T>(path: string, signal: AbortSignal, object?: object): Promise<T> {
    const body = object && { type: 'application/json', text: JSON.stringify(object) }
    return this.#ask({ method: 'POST', path, ...(body && { body }) }, signal)
  }

  /** Deletes an object, with these options (meta/v1 DeleteOptions). */
  remove<T>(path: string, options: object, signal: AbortSignal): Promise<T> {
    const body = { type: 'application/json', text: JSON.stringify(options) }
    return this.#ask({ method: 'DELETE', path, body }, signal)
  }

  /** Sends a strategic merge patch; returns the JSON of the response. */
  patch<T>(path: string, patch: object, signal: AbortSignal): Promise<T> {
    const body = { type: 'application/strategic-merge-patch+json', text: JSON.stringify(patch) }
    return this.#ask({ method: 'PATCH', path, body }, signal)
  }

  /** The bytes of a response, which may take any time; ends without an error when the signal is aborted. */
  async *stream(
    path: string,
    signal: AbortSignal,
    method: 'GET' | 'POST' = 'GET',
  ): AsyncGenerator<Uint8Array, void> {
    const response = await this.#await(signal, (until) => this.#send({ method, path }, until))
    try {
      yield* response.chunks()
    } catch (error) {
      if (signal.aborted) return
      throw this.#failure(error)
    }
  }

  /**
   * The objects of a watch; ends without an error when the signal is aborted. Throws PoddError DAEMON_GONE where the
   * daemon ends it, and ServerError where the daemon gives the reason.
   */
  async *watch<T>(
    path: string,
    signal: AbortSignal,
    method: 'GET' | 'POST' = 'GET',
  ): AsyncGenerator<T, void> {
    yield* this.#lines<T>(path, signal, method)
    if (!signal.aborted) throw this.#gone('has ended')
  }

  /**
   * Each change of the objects of a list since its revision. The daemon ends a watch after some time: it is followed by
   * another one, from where it stopped. Otherwise as `watch`.
   */
  async *changes<T extends ResourceObject>(
    list: string,
    revision: string,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>, void> {
    const path = `${list}${list.includes('?') ? '&' : '?'}watch=true&allowWatchBookmarks=true`
    let last = revision
    while (!signal.aborted) {
      let isSilent = true
      const lines = this.#lines<
        WatchEvent<T> | { readonly type: 'BOOKMARK'; readonly object: ResourceObject }
      >(`${path}&resourceVersion=${last}`, signal)
      for await (const line of lines) {
        isSilent = false
        last = line.object.metadata.resourceVersion ?? last
        if (line.type !== 'BOOKMARK') yield line
      }
      // One that lasts has a bookmark each minute: this one was ended by a podd that stops.
      if (isSilent && !signal.aborted) throw this.#gone('has ended')
    }
  }

  /** The objects of a response, one on each line, to its end. */
  async *#lines<T>(
    path: string,
    signal: AbortSignal,
    method: 'GET' | 'POST' = 'GET',
  ): AsyncGenerator<T, void> {
    const decoder = new TextDecoder()
    let rest: string[] = []
    for await (const chunk of this.stream(path, signal, method)) {
      const [end = '', ...lines] = decoder.decode(chunk, { stream: true }).split('\n')
      // An object may span many chunks: its pieces are joined once.
      rest.push(end)
      const next = lines.pop()
      if (next === undefined) continue
      const complete = [rest.join(''), ...lines]
      rest = [next]
      for (const line of complete) {
        const parsed: T = this.#parse(line)
        if (isJsonObject(parsed) && parsed['type'] === 'ERROR') throw ServerError.of(parsed['object'])
        yield parsed
      }
    }
  }

  /** A WebSocket of this protocol; its messages wait for a reader. Throws ServerError where podd refuses. */
  async openWebSocket(path: string, protocol: string, signal: AbortSignal): Promise<WebSocket> {
    const { shakeHands } = await import('./shake-hands.ts')
    const result = await this.#await(signal, (until) =>
      shakeHands(this.socketPath, path, protocol, until).catch(this.#fail),
    )
    if (!('statusCode' in result)) return result
    throw ServerError.of(parseJson(result.text), result.statusCode)
  }

  #ask<T>(request: Request, signal: AbortSignal): Promise<T> {
    return this.#await(signal, async (until) => {
      const answer = await this.#send(request, until)
      const parsed: T = this.#parse(await answer.text().catch(this.#fail))
      return parsed
    })
  }

  /**
   * Waits for `ask` without a time limit, as long as the daemon answers other calls: a stopped or hanging one still
   * accepts connections. Throws PoddError DAEMON_SILENT where it answers no call, and what `ask` throws.
   */
  async #await<T>(signal: AbortSignal, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const silent = new AbortController()
    const answered = new AbortController()
    const checking = (async () => {
      while (!answered.signal.aborted) {
        await this.#clock.sleep(askAfterMs, answered.signal)
        if (!(await this.#isAlive(answered.signal))) silent.abort()
      }
      // Only `answered` rejects the wait; `#isAlive` doesn't throw.
    })().catch(() => {})
    try {
      return await ask(AbortSignal.any([signal, silent.signal]))
    } catch (error) {
      throw silent.signal.aborted && !signal.aborted ? this.#silent(error) : error
    } finally {
      answered.abort()
      await checking
    }
  }

  /** Whether the daemon answers in time, if only by a failed connection: the waiting call reports that. */
  async #isAlive(signal: AbortSignal): Promise<boolean> {
    const asked = new AbortController()
    using deadline = startDeadline(this.#clock, aliveMs)
    const cut = AbortSignal.any([signal, deadline.signal, asked.signal])
    // Only the time limit counts here.
    await sendRequest(this.socketPath, { method: 'GET', path: '/healthz' }, cut).catch(() => {})
    asked.abort()
    return !deadline.signal.aborted
  }

  /** Of any type, as JSON.parse: podd and its daemon are of one package. */
  #parse(text: string): ReturnType<typeof JSON.parse> {
    try {
      return JSON.parse(text)
    } catch (error) {
      throw this.#unreadable(error)
    }
  }

  #unreadable(cause?: unknown): PoddError {
    return new PoddError('ANSWER_UNREADABLE', `the answer from ${this.socketPath} is not podd's`, {
      cause,
      hint: 'Does --socket name the socket of podd?',
    })
  }

  async #send(request: Request, signal: AbortSignal): Promise<Answer> {
    const answer = await sendRequest(this.socketPath, request, signal).catch(this.#fail)
    const { statusCode } = answer
    if (statusCode >= 200 && statusCode < 300) return answer
    const status = parseJson(await answer.text().catch(this.#fail))
    throw ServerError.of((await this.#explainMissing(status, signal)) ?? status, statusCode)
  }

  /** The answer that a pod is not there, with the reason where podd doesn't follow its manifest. */
  async #explainMissing(status: unknown, signal: AbortSignal): Promise<JsonObject | undefined> {
    const { details } = objectOrEmpty(status)
    const { kind, name } = objectOrEmpty(details)
    const isMissing = jsonAt(status, 'reason') === 'NotFound' && kind === 'pods'
    if (!isMissing || typeof name !== 'string') return undefined
    try {
      const path = '/podd/v1/status'
      const answer = await sendRequest(this.socketPath, { method: 'GET', path }, signal)
      const { problems }: DaemonStatus = this.#parse(await answer.text())
      const problem = problems.find(
        ({ severity, object, place }) =>
          severity === 'error' && (object?.split('/').at(-1) === name || parse(place.path).name === name),
      )
      if (problem === undefined) return undefined
      const { place, field, message } = problem
      const at = [place.path, place.line, place.column].filter((part) => part !== undefined).join(':')
      const why = `Its manifest is not followed: ${at}: ${field === undefined ? '' : `${field}: `}${message}`
      return { ...objectOrEmpty(status), details: { ...objectOrEmpty(details), causes: [{ message: why }] } }
    } catch {
      // Whoever may not ask is told the rest.
      return undefined
    }
  }

  readonly #fail = (error: unknown): never => {
    throw this.#failure(error)
  }

  #failure(error: unknown): PoddError {
    if (error instanceof PoddError) return error
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ECONNREFUSED') {
      const hint = `Start it with \`${startCommand()}\`, or in this terminal with \`sudo podd run\`. --socket picks another one.`
      const message = `podd isn't running: no daemon listens at ${this.socketPath}`
      return new PoddError('DAEMON_NOT_RUNNING', message, { cause: error, hint })
    }
    if (code === 'EACCES' || code === 'EPERM') {
      const hint = 'Only root may; try again with sudo.'
      const message = `no permission to connect to podd at ${this.socketPath}`
      return new PoddError('SOCKET_DENIED', message, { cause: error, hint })
    }
    // The backlog of the socket is full.
    if (code === 'EAGAIN') return this.#silent(error)
    return this.#gone(`broke: ${errorMessage(error)}`, error)
  }

  #gone(what: string, cause?: unknown): PoddError {
    return new PoddError('DAEMON_GONE', `the connection to podd at ${this.socketPath} ${what}`, {
      cause,
      hint: 'podd may have been stopped or restarted; try again.',
    })
  }

  /** The error for a daemon that accepts connections and doesn't answer. */
  #silent(cause: unknown): PoddError {
    return new PoddError('DAEMON_SILENT', `podd at ${this.socketPath} does not answer`, {
      cause,
      hint: `It is stopped, hangs, or the host is overloaded. \`fuser ${this.socketPath}\` names the process; ${hasSystemd() ? '`systemctl restart podd` restarts it' : `kill that, and start it again: \`${startCommand()}\``}, and the pods keep running.`,
    })
  }
}

function hasSystemd(): boolean {
  return existsSync('/run/systemd/system')
}

/** Without systemd, what install.sh does. */
function startCommand(): string {
  return hasSystemd() ? 'systemctl start podd' : 'setsid podd run >>/var/log/podd.log 2>&1 &'
}

/** How long a response may take before podd's health is checked, and the interval of these checks. */
const askAfterMs = 5_000
/** The timeout of that check: a busy host makes podd slow. */
const aliveMs = 10_000

interface Request {
  readonly method: string
  readonly path: string
  readonly body?: { readonly type: string; readonly text: string }
}

interface Answer {
  readonly statusCode: number
  /** The body as it comes, once; throws what the connection fails with, or PoddError INTERRUPTED. */
  chunks(): AsyncGenerator<Buffer, void>
  /** All of the body; throws as `chunks`. */
  text(): Promise<string>
}

/**
 * Sends one request over a connection of its own to a unix socket; resolves with the answer once its head is there.
 * Rejects with what the connection failed with, and with PoddError INTERRUPTED once the signal is aborted, which ends the
 * connection also while the body comes.
 */
async function sendRequest(
  socketPath: string,
  { method, path, body }: Request,
  signal: AbortSignal,
): Promise<Answer> {
  if (!/^[\u0021-\u007E]+$/u.test(path)) throw new Error(`no path of a request: ${JSON.stringify(path)}`)
  const orInterrupted = (error: unknown): unknown =>
    signal.aborted ? new PoddError('INTERRUPTED', 'interrupted', { cause: signal.reason }) : error
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    // Node sends no length by itself where the method is DELETE.
    const length = Buffer.byteLength(body?.text ?? '')
    const told = body === undefined ? {} : { 'Content-Type': body.type, 'Content-Length': String(length) }
    const headers = { Host: 'podd', ...told }
    // Loaded with the first request: `--help` needs none.
    process
      .getBuiltinModule('node:http')
      .request({ socketPath, method, path, headers, signal, agent: false }, resolve)
      .on('error', (error) => reject(orInterrupted(error)))
      .end(body?.text)
  })
  async function* chunks(): AsyncGenerator<Buffer, void> {
    try {
      for await (const chunk of response) if (Buffer.isBuffer(chunk)) yield chunk
    } catch (error) {
      throw orInterrupted(error)
    }
  }
  return {
    statusCode: response.statusCode ?? 0,
    chunks,
    async text() {
      const all: Buffer[] = []
      for await (const chunk of chunks()) all.push(chunk)
      return Buffer.concat(all).toString('utf8')
    },
  }
}

/** The status of the daemon at a socket; throws as ApiClient does. */
export function askStatus(socketPath: string, signal: AbortSignal, clock: Clock): Promise<DaemonStatus> {
  return new ApiClient(socketPath, clock).status(signal)
}
