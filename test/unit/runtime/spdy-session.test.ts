import { once } from 'node:events'
import { duplexPair } from 'node:stream'
import type { Duplex } from 'node:stream'
import { expect, it } from 'vitest'
import { encodeDataHead, encodeReset, resetStatus, SpdySession } from '../../../src/runtime/spdy-session.ts'
import type { SpdyStream } from '../../../src/runtime/spdy-session.ts'

/** A stream of a session, and the other side of its connection. */
function begin(): {
  readonly stream: SpdyStream
  readonly session: SpdySession
  readonly mine: Duplex
  readonly other: Duplex
} {
  const [mine, other] = duplexPair()
  other.resume()
  const session = new SpdySession(mine, (stream) => stream.destroy())
  return { stream: session.open({ streamtype: 'stdout' }), session, mine, other }
}

const data = (id: number, text: string): Buffer =>
  Buffer.concat([encodeDataHead(id, Buffer.byteLength(text), false), Buffer.from(text)])

async function read(stream: SpdyStream): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

it('has what came before a reset read', async () => {
  const { stream, other } = begin()
  other.write(
    Buffer.concat([data(stream.id, 'the last words'), encodeReset(stream.id, resetStatus.cancelled)]),
  )
  await expect(read(stream)).resolves.toBe('the last words')
  expect(stream.destroyed).toBe(true)
})

it('has what came before the end of the connection read', async () => {
  const { stream, other } = begin()
  other.end(data(stream.id, 'the last words'))
  await once(other, 'finish')
  await expect(read(stream)).resolves.toBe('the last words')
})

it('has what came before the connection was reset read, though a reader of another stream is slow', async () => {
  const { stream, session, other, mine } = begin()
  const report = session.open({ streamtype: 'error' })
  const reading = read(report)
  // As much as a stream buffers: the session waits with what follows.
  for (let part = 0; part < 8; part += 1) other.write(data(stream.id, 'x'.repeat(32 * 1024)))
  other.write(data(report.id, 'the reason'))
  await new Promise((resolve) => setTimeout(resolve, 20))
  mine.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
  stream.resume()
  await expect(reading).resolves.toBe('the reason')
})

it('tells a reader that waits of a reset', async () => {
  const { stream, other } = begin()
  const reading = read(stream)
  other.write(encodeReset(stream.id, resetStatus.cancelled))
  await expect(reading).rejects.toMatchObject({ code: 'ERR_STREAM_PREMATURE_CLOSE' })
})
