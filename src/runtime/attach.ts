import type { Duplex } from 'node:stream'
import { errorMessage, PoddError } from '../base/errors.ts'
import { nodeHttp } from '../base/http.ts'
import { isJsonObject } from '../base/json.ts'
import { SpdySession } from './spdy-session.ts'
import type { SpdyStream } from './spdy-session.ts'

/** The streams of a container's own process, for as long as one is attached to it. */
export interface AttachedContainer {
  readonly stdout: SpdyStream
  /** Undefined for a terminal, where it is one with stdout. */
  readonly stderr: SpdyStream | undefined
  /** 0 once the container has ended, whatever its exit code. Rejects with PoddError ATTACH_FAILED. */
  readonly ended: Promise<number>
  write(chunk: Uint8Array): Promise<void>
  closeStdin(): Promise<void>
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>
  /** Leaves the container as it is. */
  hangUp(): Promise<void>
}

const protocol = 'v4.channel.k8s.io'
const upgrade = 'SPDY/3.1'
/** The longest message about a failure, in characters. */
const mostStatusBytes = 16 * 1024

/**
 * Attaches to a container at the URL that CRI's Attach has given: over SPDY/3.1, the only protocol in which every
 * version of containerd learns that standard input has ended. Throws PoddError ATTACH_FAILED.
 */
export async function attachContainer(
  url: string,
  { stdin, terminal }: { readonly stdin: boolean; readonly terminal: boolean },
): Promise<AttachedContainer> {
  const session = new SpdySession(await connect(url), (stream) => stream.destroy())
  const open = (streamtype: string): SpdyStream => session.open({ streamtype })
  const error = open('error')
  const input = stdin ? open('stdin') : undefined
  const stdout = open('stdout')
  const stderr = terminal ? undefined : open('stderr')
  const sizes = terminal ? open('resize') : undefined
  input?.resume()
  sizes?.resume()
  return {
    stdout,
    stderr,
    ended: readStatus(error),
    write: (chunk) =>
      new Promise((resolve) => {
        if (input?.writable === true) input.write(chunk, () => resolve())
        else resolve()
      }),
    closeStdin: async () => void input?.end(),
    resize: async ({ columns, rows }) => {
      if (sizes?.writable === true) sizes.write(`${JSON.stringify({ Width: columns, Height: rows })}\n`)
    },
    hangUp: async () => session.close(),
  }
}

function connect(url: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void =>
      reject(new PoddError('ATTACH_FAILED', `the runtime's streams: ${errorMessage(cause)}`, { cause }))
    const request = nodeHttp.request(url, {
      method: 'POST',
      agent: false,
      headers: { Connection: 'Upgrade', Upgrade: upgrade, 'X-Stream-Protocol-Version': protocol },
    })
    request.once('upgrade', (_response, socket, head) => {
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

async function readStatus(stream: SpdyStream): Promise<number> {
  let text = ''
  try {
    for await (const chunk of stream)
      if (Buffer.isBuffer(chunk) && text.length < mostStatusBytes) text += chunk.toString('utf8')
  } catch (error) {
    // The runtime resets its streams once it has reported how the container ended.
    if (text === '')
      throw new PoddError('ATTACH_FAILED', `the runtime's streams broke: ${errorMessage(error)}`, {
        cause: error,
      })
  }
  const message = failureOf(text)
  if (message !== undefined) throw new PoddError('ATTACH_FAILED', message)
  return 0
}

function failureOf(text: string): string | undefined {
  if (text === '') return undefined
  try {
    const status: unknown = JSON.parse(text)
    if (!isJsonObject(status)) return text
    if (status['status'] === 'Success') return undefined
    return typeof status['message'] === 'string' ? status['message'] : text
  } catch {
    // An older protocol's plain text.
    return text
  }
}
