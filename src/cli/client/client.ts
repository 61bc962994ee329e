import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { WebSocket } from 'ws'
import type { StatusObject } from '../../api/routes.ts'
import type { Clock } from '../../base/clock.ts'
import { parseApiReason } from '../../api/reasons.ts'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import { nodeHttp } from '../../base/node-http.ts'
import { awaitAnswer, daemonSilent } from './await-answer.ts'

/** The daemon answered with an error; `reason` is Kubernetes' (`NotFound`, `BadRequest`, …). */
export class ServerError extends PoddError {
  readonly reason: string

  constructor(reason: string, message: string, hint: string | undefined) {
    super(`API_${parseApiReason(reason) ?? 'InternalError'}`, `Error from server (${reason}): ${message}`, {
      hint,
    })
    this.reason = reason
  }

  /** An error that came in the middle of an answer. */
  static of({ reason, message, details }: StatusObject): ServerError {
    const hint = details?.causes?.[0]?.message
    return new ServerError(reason, message, hint === '' ? undefined : hint)
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

  /** The JSON of one answer. The types are the daemon's word: both ends come from one package. */
  get<T>(path: string, signal: AbortSignal): Promise<T> {
    return this.#await(signal, async (until) => this.#json(await this.#send('GET', path, until)))
  }

  post<T>(path: string, signal: AbortSignal): Promise<T> {
    return this.#await(signal, async (until) => this.#json(await this.#send('POST', path, until)))
  }

  /** Sends a strategic merge patch; gives the JSON of the answer. */
  patch<T>(path: string, patch: object, signal: AbortSignal): Promise<T> {
    const body = { type: 'application/strategic-merge-patch+json', text: JSON.stringify(patch) }
    return this.#await(signal, async (until) => this.#json(await this.#send('PATCH', path, until, body)))
  }

  /**
   * The bytes of an answer as they come, to its end; ends quietly when the signal is aborted. Once the answer has begun
   * it may take any time.
   */
  async *stream(
    path: string,
    signal: AbortSignal,
    method: 'GET' | 'POST' = 'GET',
  ): AsyncGenerator<Uint8Array, void> {
    const response = await this.#await(signal, (until) => this.#send(method, path, until))
    try {
      for await (const chunk of response) if (Buffer.isBuffer(chunk)) yield chunk
    } catch (error) {
      if (signal.aborted) return
      throw this.#failure(error)
    }
  }

  /**
   * The objects of a watch, one for each line; ends quietly when the signal is aborted. Throws PoddError DAEMON_GONE
   * where the daemon ends it, which has no end of its own, and ServerError where the daemon says why.
   */
  async *watch<T>(
    path: string,
    signal: AbortSignal,
    method: 'GET' | 'POST' = 'GET',
  ): AsyncGenerator<T, void> {
    const decoder = new TextDecoder()
    let rest: string[] = []
    for await (const chunk of this.stream(path, signal, method)) {
      const [end = '', ...lines] = decoder.decode(chunk, { stream: true }).split('\n')
      // An object may be larger than many chunks: its pieces are put together once.
      rest.push(end)
      const next = lines.pop()
      if (next === undefined) continue
      const complete = [rest.join(''), ...lines]
      rest = [next]
      for (const line of complete) {
        const parsed: T = JSON.parse(line)
        const error = errorOfLine(parsed)
        if (error !== undefined) throw error
        yield parsed
      }
    }
    if (!signal.aborted) throw this.#gone('has ended')
  }

  /**
   * A WebSocket that speaks this protocol; its messages wait until they are read. Throws ServerError where the
   * daemon refuses.
   */
  async openWebSocket(path: string, protocol: string, signal: AbortSignal): Promise<WebSocket> {
    const { WebSocket } = await import('ws')
    const result = await this.#await(signal, (until) => this.#handshake(WebSocket, path, protocol, until))
    if (!('answer' in result)) return result
    throw toServerError(result.answer.statusCode ?? 0, await readText(result.answer))
  }

  #handshake(
    Socket: typeof WebSocket,
    path: string,
    protocol: string,
    signal: AbortSignal,
  ): Promise<WebSocket | { readonly answer: IncomingMessage }> {
    return new Promise((resolve, reject) => {
      const socket = new Socket(`ws://podd${path}`, {
        createConnection: () => connect(this.socketPath),
        headers: { 'Sec-WebSocket-Protocol': protocol },
        perMessageDeflate: false,
        skipUTF8Validation: true,
      })
      const abort = (): void => {
        socket.terminate()
        reject(new PoddError('INTERRUPTED', 'interrupted', { cause: signal.reason }))
      }
      signal.addEventListener('abort', abort, { once: true })
      const settled = (): void => signal.removeEventListener('abort', abort)
      // The name of SPDY's tunnel has a slash, with which `ws` takes none: it is asked for and taken here.
      socket.once('upgrade', (response) => {
        if (response.headers['sec-websocket-protocol'] === protocol)
          delete response.headers['sec-websocket-protocol']
      })
      socket.once('open', () => {
        settled()
        socket.pause()
        resolve(socket)
      })
      socket.once('unexpected-response', (_request, answer) => {
        settled()
        resolve({ answer })
      })
      socket.on('error', (error) => {
        settled()
        reject(this.#failure(error))
      })
    })
  }

  #await<T>(signal: AbortSignal, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return awaitAnswer({ socketPath: this.socketPath, clock: this.#clock, signal }, ask)
  }

  async #json<T>(response: IncomingMessage): Promise<T> {
    const parsed: T = JSON.parse(await readText(response))
    return parsed
  }

  async #send(
    method: string,
    path: string,
    signal: AbortSignal,
    body?: { readonly type: string; readonly text: string },
  ): Promise<IncomingMessage> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = nodeHttp.request(
        {
          // An agent would look first whether the name of the host is an address, with large regular expressions.
          createConnection: () => connect(this.socketPath),
          method,
          path,
          signal,
          headers: { host: 'podd', ...(body !== undefined && { 'content-type': body.type }) },
        },
        resolve,
      )
      request.on('error', (error) => reject(this.#failure(error)))
      request.end(body?.text)
    })
    const { statusCode = 0 } = response
    if (statusCode >= 200 && statusCode < 300) return response
    throw toServerError(statusCode, await readText(response))
  }

  #failure(error: unknown): PoddError {
    const code = errorCode(error)
    if (code === 'ABORT_ERR') return new PoddError('INTERRUPTED', 'interrupted', { cause: error })
    if (code === 'ENOENT' || code === 'ECONNREFUSED') {
      return new PoddError(
        'DAEMON_NOT_RUNNING',
        `podd isn't running: no daemon listens at ${this.socketPath}`,
        {
          cause: error,
          hint: 'Start it with `systemctl start podd`, or in this terminal with `sudo podd run`. --socket picks another one.',
        },
      )
    }
    if (code === 'EACCES' || code === 'EPERM') {
      return new PoddError('SOCKET_DENIED', `you may not talk to podd at ${this.socketPath}`, {
        cause: error,
        hint: 'Only root may; try again with sudo.',
      })
    }
    // More wait for it to take their connections than the kernel keeps.
    if (code === 'EAGAIN') return daemonSilent(this.socketPath, error)
    return this.#gone(`broke: ${errorMessage(error)}`, error)
  }

  #gone(what: string, cause?: unknown): PoddError {
    return new PoddError('DAEMON_GONE', `the connection to podd at ${this.socketPath} ${what}`, {
      cause,
      hint: 'podd may have been stopped or restarted; try again.',
    })
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) if (Buffer.isBuffer(chunk)) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

/** A watch that can't go on ends with a line of its own, which says why. */
function errorOfLine(line: unknown): ServerError | undefined {
  if (!isJsonObject(line) || line['type'] !== 'ERROR') return undefined
  return toServerError(0, JSON.stringify(line['object']))
}

function toServerError(statusCode: number, text: string): ServerError {
  const status = parseObject(text)
  const reason = status?.['reason']
  const message = status?.['message']
  const details = status?.['details']
  const causes = isJsonObject(details) && Array.isArray(details['causes']) ? details['causes'] : []
  const [cause]: unknown[] = causes
  // One that is about a field says what the message says.
  const isHint = isJsonObject(cause) && cause['field'] === undefined
  const hint = isHint && typeof cause['message'] === 'string' ? cause['message'] : ''
  return new ServerError(
    typeof reason === 'string' ? reason : String(statusCode),
    typeof message === 'string' ? message : `the answer was ${statusCode}`,
    hint === '' ? undefined : hint,
  )
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed: unknown = JSON.parse(text)
    return isJsonObject(parsed) ? parsed : undefined
  } catch {
    // No Status of the API: the status code has to do.
    return undefined
  }
}
