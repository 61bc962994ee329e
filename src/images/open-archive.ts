import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import type { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'

/** The compression of an archive, by its first bytes. */
export type Compression = 'none' | 'gzip' | 'zstd'

/** Throws what the system throws. */
export async function detectCompression(path: string): Promise<Compression> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    const magic = buffer.toString('hex', 0, bytesRead)
    if (magic.startsWith('1f8b')) return 'gzip'
    return magic === '28b52ffd' ? 'zstd' : 'none'
  } finally {
    await file.close()
  }
}

/** How to read the tar in a compressed archive; undefined for a file that isn't compressed, or can't be read. */
export async function openCompressed(path: string): Promise<(() => Readable) | undefined> {
  try {
    // Opening a pipe would wait for a writer.
    if (!(await stat(path)).isFile()) return undefined
    const compression = await detectCompression(path)
    return compression === 'none' ? undefined : () => decompress(path, compression)
  } catch {
    // The import reports why the archive can't be read.
    return undefined
  }
}

/**
 * The tar in a compressed archive, as it is read; little of it is in memory at a time. An error of the file or of what
 * it holds ends the stream. Destroying the stream closes the file.
 */
export function decompress(path: string, compression: Exclude<Compression, 'none'>): Readable {
  const decompressor = compression === 'gzip' ? createGunzip() : createZstdDecompress()
  return pipeline(createReadStream(path), decompressor, () => undefined)
}
