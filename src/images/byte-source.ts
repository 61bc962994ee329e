import type { FileHandle } from 'node:fs/promises'
import type { Readable } from 'node:stream'

/** A sequence of bytes, which a reader reads or skips. Both calls throw what the source throws. */
export interface ByteSource {
  /** The next bytes: `length` of them, fewer only where the source ends. */
  read(length: number): Promise<Buffer>
  /** Skips bytes; false where the source ends before that. */
  skip(length: number): Promise<boolean>
}

/** The bytes of an open regular file; what is skipped is not read. */
export function fileBytes(file: FileHandle, sizeBytes: number): ByteSource {
  let position = 0
  return {
    async read(length) {
      const buffer = Buffer.alloc(Math.min(length, Math.max(0, sizeBytes - position)))
      let filled = 0
      while (filled < buffer.length) {
        const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, position + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      position += filled
      return buffer.subarray(0, filled)
    },
    async skip(length) {
      position += length
      return position <= sizeBytes
    },
  }
}

/** The bytes of a stream; one chunk of it is held at a time. */
export function streamBytes(stream: Readable): ByteSource {
  const chunks = stream[Symbol.asyncIterator]()
  let chunk = Buffer.alloc(0)
  const take = async (length: number): Promise<Buffer | undefined> => {
    while (chunk.length === 0) {
      const step: IteratorResult<unknown> = await chunks.next()
      if (step.done === true) return undefined
      if (step.value instanceof Uint8Array) chunk = Buffer.from(step.value)
    }
    const taken = chunk.subarray(0, length)
    chunk = chunk.subarray(length)
    return taken
  }
  return {
    async read(length) {
      const parts: Buffer[] = []
      for (let missing = length; missing > 0;) {
        const part = await take(missing)
        if (part === undefined) break
        parts.push(part)
        missing -= part.length
      }
      return Buffer.concat(parts)
    },
    async skip(length) {
      for (let missing = length; missing > 0;) {
        const part = await take(missing)
        if (part === undefined) return false
        missing -= part.length
      }
      return true
    },
  }
}
