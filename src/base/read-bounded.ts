import type { FileHandle } from 'node:fs/promises'
import { constants, readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Clock } from './clock.ts'
import { PoddError, errorCode } from './errors.ts'

const chunkBytes = 64 * 1024
/** How often an empty pipe is polled. */
const pipePollMs = 10
/** How long a pipe may stay without a writer, and how long its writer may stay silent. */
const writerWaitMs = 2000
const silenceMs = 30_000

export interface ReadBounds {
  readonly maxBytes: number
  readonly clock: Clock
}

/**
 * Reads a file that a user named, up to `maxBytes` and one byte, by which the caller learns that it is longer. Reads
 * pipes and devices, too.
 * @throws PoddError NOTHING_TO_READ for a pipe without data; the system's errors
 */
export async function readBounded(path: string, bounds: ReadBounds): Promise<Buffer> {
  // Opening a pipe that has no writer must not block.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const stats = await file.stat()
  const isSlow = !stats.isFile() && !stats.isDirectory()
  return isSlow
    ? await readSlow(file, { ...bounds, isPipe: stats.isFIFO() })
    : await readRest(file, bounds.maxBytes)
}

/**
 * Reads what a file holds at this moment, up to `maxBytes` and one byte: a pipe is not waited for. Throws what the system
 * throws.
 */
export async function readAtOnce(path: string, maxBytes: number): Promise<Buffer> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return await readRest(file, maxBytes)
}

/** The text of a small file, as the kernel has them below /proc; undefined where it can't be read. */
export function readTextIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The caller says what it means that there is none.
    return undefined
  }
}

/** Reads the rest of an open regular file, up to `maxBytes` and one byte. Throws what the system throws. */
export async function readRest(file: FileHandle, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let leftBytes = maxBytes + 1
  while (leftBytes > 0) {
    const chunk = await readChunk(file, leftBytes)
    if (chunk.byteLength === 0) break
    chunks.push(chunk)
    leftBytes -= chunk.byteLength
  }
  return Buffer.concat(chunks)
}

/** Reads a stream, up to `maxBytes` and one byte. */
export async function readStream(
  stream: AsyncIterable<Uint8Array | string>,
  maxBytes: number,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    sizeBytes += bytes.byteLength
    if (sizeBytes > maxBytes) break
  }
  return Buffer.concat(chunks).subarray(0, maxBytes + 1)
}

/** Reads a pipe or a terminal, which may have no data yet. */
async function readSlow(
  file: FileHandle,
  { maxBytes, clock, isPipe }: ReadBounds & { readonly isPipe: boolean },
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let leftBytes = maxBytes + 1
  let lastMs = clock.monotonicMs()
  while (leftBytes > 0) {
    const chunk = await readPipe(file, leftBytes)
    if (chunk !== undefined && chunk.byteLength > 0) {
      chunks.push(chunk)
      leftBytes -= chunk.byteLength
      lastMs = clock.monotonicMs()
      continue
    }
    const hasWriter = chunk === undefined
    if (!hasWriter && (chunks.length > 0 || !isPipe)) break
    const quietMs = clock.monotonicMs() - lastMs
    if (!hasWriter && quietMs >= writerWaitMs)
      throw new PoddError('NOTHING_TO_READ', 'it is a pipe, and no process writes to it')
    if (quietMs >= silenceMs)
      throw new PoddError('NOTHING_TO_READ', `nothing came from it for ${silenceMs / 1000} s`)
    await clock.sleep(pipePollMs)
  }
  return Buffer.concat(chunks)
}

/** Returns an empty buffer at the end or where the pipe has no writer; undefined where there is no data yet. */
async function readPipe(file: FileHandle, maxBytes: number): Promise<Buffer | undefined> {
  try {
    return await readChunk(file, maxBytes)
  } catch (error) {
    if (errorCode(error) === 'EAGAIN') return undefined
    throw error
  }
}

async function readChunk(file: FileHandle, maxBytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.min(chunkBytes, maxBytes))
  const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, null)
  return buffer.subarray(0, bytesRead)
}
