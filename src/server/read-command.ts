import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { commandBytesHeader, decodeCommand, mostCommandBytes, mostWordBytes } from '../api/exec-command.ts'
import type { Clock } from '../base/clock.ts'
import { ApiError } from './api-error.ts'

/** A client that sends a command sends all of it at once. */
const receiveMs = 30_000

/**
 * The words of the command that a request is to run, which may stand after its head (see exec-command.ts); takes no
 * byte more from the socket. Throws ApiError for what is no command, or none that Linux could run.
 */
export async function readCommand(
  request: IncomingMessage,
  socket: Duplex,
  query: URLSearchParams,
  clock: Clock,
): Promise<readonly string[]> {
  const announced = request.headers[commandBytesHeader]
  const words =
    announced === undefined
      ? query.getAll('command')
      : decodeCommand(await readExactly(socket, countBytes(String(announced)), clock))
  if (words.length === 0) throw new ApiError(400, 'you must specify at least one command for the container')
  refuseLong(words)
  return words
}

function countBytes(text: string): number {
  const count = /^\d{1,15}$/u.test(text) ? Number(text) : 0
  if (count === 0) throw new ApiError(400, `${commandBytesHeader} must be a whole number, 1 or more`)
  if (count > mostCommandBytes) throw tooLong(count)
  return count
}

async function readExactly(socket: Duplex, count: number, clock: Clock): Promise<Buffer> {
  const over = new AbortController()
  const end = (): void => over.abort()
  const timer = clock.startTimer(receiveMs, end)
  socket.once('end', end)
  socket.once('close', end)
  try {
    const chunks: Buffer[] = []
    for (let received = 0; received < count;) {
      const chunk: unknown = socket.read()
      if (Buffer.isBuffer(chunk)) {
        chunks.push(chunk)
        received += chunk.length
      } else await once(socket, 'readable', { signal: over.signal })
    }
    const bytes = Buffer.concat(chunks)
    if (bytes.length > count) socket.unshift(bytes.subarray(count))
    return bytes.subarray(0, count)
  } catch {
    // The client has ended the connection, or time is up: only what is missing matters to it.
    throw new ApiError(400, `fewer than ${count} bytes of the command came`)
  } finally {
    timer.cancel()
    socket.off('end', end)
    socket.off('close', end)
  }
}

/** What the kernel would refuse: told here, where it can be said which word is too long. */
function refuseLong(words: readonly string[]): void {
  const sizes = words.map((word) => Buffer.byteLength(word))
  const at = sizes.findIndex((bytes) => bytes > mostWordBytes)
  if (at >= 0) {
    throw new ApiError(
      413,
      `word ${at + 1} of the command has ${sizes[at]} bytes, of which Linux takes ${mostWordBytes} at most`,
      'Pass it on standard input (-i), or in a file.',
    )
  }
  // Each has a zero byte at its end, and a pointer.
  const total = sizes.reduce((sum, bytes) => sum + bytes + 9, 0)
  if (total > mostCommandBytes) throw tooLong(total)
}

function tooLong(bytes: number): ApiError {
  return new ApiError(
    413,
    `the command has ${bytes} bytes, of which Linux takes ${mostCommandBytes} at most`,
    'Pass what it works on on standard input (-i), or in a file.',
  )
}
