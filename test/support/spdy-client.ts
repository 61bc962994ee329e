import { constants, createDeflate } from 'node:zlib'
import { encodeOpen, encodePing, HeaderWriter, spdyDictionary } from '../../src/runtime/spdy-session.ts'

/** What a client sends to open one forwarded connection. */
export function openingFrames(port: number): Buffer {
  const writer = new HeaderWriter()
  const headers = { port: String(port), requestid: '0' }
  return Buffer.concat([
    encodeOpen(1, writer.write({ streamtype: 'error', ...headers }), true),
    encodeOpen(3, writer.write({ streamtype: 'data', ...headers })),
    encodePing(1),
  ])
}

/** Header blocks as Go's clients pack them: one zlib stream with the dictionary, flushed after each. */
export async function deflateBlocks(blocks: readonly (readonly [string, string])[][]): Promise<Buffer[]> {
  const deflate = createDeflate({ dictionary: spdyDictionary(), finishFlush: constants.Z_SYNC_FLUSH })
  let packed: Buffer[] = []
  deflate.on('data', (chunk: Buffer) => packed.push(chunk))
  const found: Buffer[] = []
  for (const pairs of blocks) {
    packed = []
    deflate.write(
      Buffer.concat([
        uint32(pairs.length),
        ...pairs.flat().flatMap((text) => [uint32(text.length), Buffer.from(text)]),
      ]),
    )
    await new Promise<void>((resolve) => {
      deflate.flush(constants.Z_SYNC_FLUSH, () => resolve())
    })
    found.push(Buffer.concat(packed))
  }
  deflate.destroy()
  return found
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
