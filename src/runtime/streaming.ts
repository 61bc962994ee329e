import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { formatTerminalSize, parseOutcome } from '../api/remote-command.ts'
import type { TerminalSize } from '../api/remote-command.ts'
import { errorMessage, PoddError } from '../base/errors.ts'
import type { ErrorCode } from '../base/errors.ts'
import { nodeHttp } from '../base/http.ts'
import type { ExecProcess } from './containerd/exec-process.ts'
import { SpdySession } from './spdy-session.ts'
import type { SpdyStream } from './spdy-session.ts'

/**
 * A process in a container, for as long as podd is joined to it. `ended` gives the exit code of a command, and 0 for the
 * container's own process, once the container has ended; it rejects with PoddError EXEC_FAILED or ATTACH_FAILED. `hangUp`
 * leaves the process as it is: CRI has no call that ends a command.
 */
export type JoinedProcess = Pick<
  ExecProcess,
  'stdout' | 'stderr' | 'ended' | 'write' | 'closeStdin' | 'resize' | 'hangUp'
>

/** What the runtime was asked for by CRI's Exec or Attach. */
interface StreamChoices {
  readonly stdin: boolean
  readonly terminal: boolean
  readonly size?: TerminalSize | undefined
}

/** The runtime answers at once or not at all: it is on this host. */
const connectMs = 30_000
const upgrade = 'SPDY/3.1'
const commandProtocol = 'v4.channel.k8s.io'
const forwardProtocol = 'portforward.k8s.io'
/** The longest message about a failure, in characters. */
const maxStatusChars = 16 * 1024

/**
 * Joins the command that begins with it, at the URL that CRI's Exec has given, or a container's own process at that of
 * Attach. Over SPDY/3.1, the only protocol in which every version of containerd learns that standard input has ended.
 * @param failure the code of the PoddError that is thrown
 */
export async function joinContainer(
  url: string,
  { stdin, terminal, size }: StreamChoices,
  failure: 'EXEC_FAILED' | 'ATTACH_FAILED',
  signal: AbortSignal,
): Promise<JoinedProcess> {
  const connection = await connect(url, commandProtocol, failure, signal)
  const session = new SpdySession(connection, (stream) => stream.destroy())
  const open = (streamtype: string): SpdyStream => session.open({ streamtype })
  const error = open('error')
  const input = stdin ? open('stdin') : undefined
  const stdout = open('stdout')
  const stderr = terminal ? undefined : open('stderr')
  const sizes = terminal ? open('resize') : undefined
  input?.resume()
  sizes?.resume()
  const resize = async (told: TerminalSize): Promise<void> => {
    if (sizes?.writable === true) sizes.write(formatTerminalSize(told))
  }
  if (size !== undefined) await resize(size)
  const ended = readExitCode(error, failure)
  // The runtime has sent all output before its report, and closes its side then.
  const close = async (): Promise<void> => session.close()
  void ended.then(close, close)
  return {
    stdout,
    stderr,
    ended,
    write: (chunk) =>
      new Promise((resolve) => {
        if (input?.writable === true) input.write(chunk, () => resolve())
        else resolve()
      }),
    closeStdin: async () => void input?.end(),
    resize,
    hangUp: close,
  }
}

/**
 * One connection to a port of a sandbox, at the URL that CRI's PortForward has given. The runtime doesn't say that it has
 * connected: where it can't, the connection ends with PoddError PORT_FORWARD_FAILED, which has the runtime's reason. Throws
 * the same where the URL isn't served.
 */
export async function forwardPort(url: string, port: number, signal: AbortSignal): Promise<Duplex> {
  const connection = await connect(url, forwardProtocol, 'PORT_FORWARD_FAILED', signal)
  const session = new SpdySession(connection, (stream) => stream.destroy())
  const about = { port: String(port), requestid: '0' }
  const error = session.open({ streamtype: 'error', ...about })
  error.end()
  const data = session.open({ streamtype: 'data', ...about })
  // One message, in one frame. The ends of both streams follow it, and may be there before the reader is done.
  error.once('data', (text: Buffer) => {
    data.destroy(new PoddError('PORT_FORWARD_FAILED', text.toString('utf8')))
  })
  data.once('close', () => session.close())
  return data
}

type WriteDone = (error?: Error | null) => void

/**
 * A connection that a failed write doesn't end: the end of reading does. A runtime reports how a command ended and closes
 * at once, also while podd still sends. Node would drop, with the socket, what has arrived and wasn't read yet.
 */
class ReadableToTheEnd extends Socket {
  override _write(chunk: unknown, encoding: BufferEncoding, done: WriteDone): void {
    super._write(chunk, encoding, unlessFailed(done))
  }

  override _writev(chunks: { chunk: unknown; encoding: BufferEncoding }[], done: WriteDone): void {
    super._writev?.(chunks, unlessFailed(done))
  }
}

function unlessFailed(done: WriteDone): WriteDone {
  return (error) => {
    if (!error) done()
  }
}

/** @param signal the client's: once connected, whoever has the connection ends it */
function connect(url: string, protocol: string, failure: ErrorCode, signal: AbortSignal): Promise<Duplex> {
  const ends = AbortSignal.any([signal, AbortSignal.timeout(connectMs)])
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      reject(new PoddError(failure, `the runtime's streams: ${errorMessage(cause)}`, { cause }))
    }
    if (ends.aborted) return fail(ends.reason)
    const request = nodeHttp.request(url, {
      method: 'POST',
      createConnection: ({ host, port }) =>
        new ReadableToTheEnd().connect({ host: host ?? 'localhost', port: Number(port) }),
      headers: { Connection: 'Upgrade', Upgrade: upgrade, 'X-Stream-Protocol-Version': protocol },
    })
    const cut = (): void => {
      fail(ends.reason)
      request.destroy()
    }
    request.once('close', () => ends.removeEventListener('abort', cut))
    ends.addEventListener('abort', cut, { once: true })
    request.once('upgrade', (_response, socket, head) => {
      ends.removeEventListener('abort', cut)
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    request.once('response', (response) => {
      response.resume()
      fail(new Error(`the answer was ${response.statusCode ?? 0}`))
    })
    request.on('error', fail)
    request.end()
  })
}

/** All that a stream gives until it ends or breaks. Never rejects. */
async function readText(stream: SpdyStream): Promise<{ readonly text: string; readonly broken?: unknown }> {
  let text = ''
  try {
    for await (const chunk of stream)
      if (Buffer.isBuffer(chunk) && text.length < maxStatusChars) text += chunk.toString('utf8')
    return { text }
  } catch (broken) {
    // The runtime resets its streams once it has reported how the process ended; without a report the caller says so.
    return { text, broken }
  }
}

async function readExitCode(stream: SpdyStream, failure: 'EXEC_FAILED' | 'ATTACH_FAILED'): Promise<number> {
  const { text, broken } = await readText(stream)
  if (text !== '') {
    const outcome = parseOutcome(text)
    if (outcome.kind === 'exited') return outcome.exitCode
    throw new PoddError(failure, outcome.message)
  }
  if (broken === undefined && failure === 'ATTACH_FAILED') return 0
  const why = broken === undefined ? 'no report of how the command ended' : errorMessage(broken)
  throw new PoddError(failure, `the runtime's streams broke: ${why}`, { cause: broken })
}
