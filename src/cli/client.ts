import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { PoddError, errorCode, errorMessage } from '../base/errors.ts'
import { isJsonObject } from '../base/json.ts'
import { nodeHttp } from '../base/node-http.ts'

/** The daemon answered with an error; `reason` is Kubernetes' (`NotFound`, `BadRequest`, …). */
export class ServerError extends PoddError {
  readonly reason: string

  constructor(reason: string, message: string, hint: string | undefined) {
    super(`API_${reason}`, `Error from server (${reason}): ${message}`, { hint })
    this.reason = reason
  }
}

/** Talks to the daemon over its socket; src/api/routes.ts says what there is to ask. */
export class ApiClient {
  readonly socketPath: string

  constructor(socketPath: string) {
    this.socketPath = socketPath
  }

  /** The JSON of one answer. The types are the daemon's word: both ends come from one package. */
  async get<T>(path: string, signal: AbortSignal): Promise<T> {
    return this.#json(await this.#send('GET', path, signal))
  }

  async post<T>(path: string, signal: AbortSignal): Promise<T> {
    return this.#json(await this.#send('POST', path, signal))
  }

  /** The bytes of an answer as they come, to its end; ends quietly when the signal is aborted. */
  async *stream(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const response = await this.#send('GET', path, signal)
    try {
      for await (const chunk of response) if (Buffer.isBuffer(chunk)) yield chunk
    } catch (error) {
      if (signal.aborted) return
      throw this.#failure(error)
    }
  }

  /**
   * The objects of a watch, one for each line; ends quietly when the signal is aborted. Throws PoddError DAEMON_GONE
   * where the daemon ends it, which has no end of its own.
   */
  async *watch<T>(path: string, signal: AbortSignal): AsyncGenerator<T, void> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of this.stream(path, signal)) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const parsed: T = JSON.parse(line)
        yield parsed
      }
    }
    if (!signal.aborted) throw this.#gone('has ended')
  }

  /**
   * A connection that speaks another protocol from its first byte on; its two directions end apart from each other.
   * Throws ServerError where the daemon refuses.
   */
  async upgrade(path: string, protocol: string, signal: AbortSignal): Promise<Duplex> {
    const result = await new Promise<Duplex | { readonly answer: IncomingMessage }>((resolve, reject) => {
      const request = nodeHttp.request({
        createConnection: () => connect({ path: this.socketPath, allowHalfOpen: true }),
        method: 'POST',
        path,
        signal,
        headers: { host: 'podd', connection: 'Upgrade', upgrade: protocol },
      })
      request.once('upgrade', (_response, socket, head) => {
        if (head.length > 0) socket.unshift(head)
        resolve(socket)
      })
      request.once('response', (answer) => resolve({ answer }))
      request.on('error', (error) => reject(this.#failure(error)))
      request.end()
    })
    if (!('answer' in result)) return result
    throw toServerError(result.answer.statusCode ?? 0, await readText(result.answer))
  }

  async #json<T>(response: IncomingMessage): Promise<T> {
    const parsed: T = JSON.parse(await readText(response))
    return parsed
  }

  async #send(method: string, path: string, signal: AbortSignal): Promise<IncomingMessage> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = nodeHttp.request(
        { socketPath: this.socketPath, method, path, signal, agent: false, headers: { host: 'podd' } },
        resolve,
      )
      request.on('error', (error) => reject(this.#failure(error)))
      request.end()
    })
    const { statusCode = 0 } = response
    if (statusCode >= 200 && statusCode < 300) return response
    throw toServerError(statusCode, await readText(response))
  }

  #failure(error: unknown): PoddError {
    const code = errorCode(error)
    if (code === 'ABORT_ERR') return new PoddError('INTERRUPTED', 'interrupted', { cause: error })
    if (code === 'ENOENT' || code === 'ECONNREFUSED') {
      return new PoddError('DAEMON_NOT_RUNNING', `podd isn't running: nobody answers at ${this.socketPath}`, {
        cause: error,
        hint: 'Start it with `systemctl start podd`, or in this terminal with `sudo podd run`. --socket picks another one.',
      })
    }
    if (code === 'EACCES' || code === 'EPERM') {
      return new PoddError('SOCKET_DENIED', `you may not talk to podd at ${this.socketPath}`, {
        cause: error,
        hint: 'Only root may; try again with sudo.',
      })
    }
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

function toServerError(statusCode: number, text: string): ServerError {
  const status = parseObject(text)
  const reason = status?.['reason']
  const message = status?.['message']
  const details = status?.['details']
  const causes = isJsonObject(details) && Array.isArray(details['causes']) ? details['causes'] : []
  const [cause]: unknown[] = causes
  const hint = isJsonObject(cause) && typeof cause['message'] === 'string' ? cause['message'] : ''
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
    return undefined
  }
}
