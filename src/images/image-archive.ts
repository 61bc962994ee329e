/* Which images are in an archive, compressed or not. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import type { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { errorCode, errorMessage, isSystemError } from '../base/errors.ts'
import { jsonAt, listOrEmpty, objectOrEmpty } from '../base/json.ts'
import type { ArchiveContent } from '../decide/node/plan-image-archives.ts'
import { normalizeImageName } from '../pod/values/image-name.ts'
import type { TarEnd, TarFile } from './read-tar.ts'

/** An index names each image in some hundred bytes. */
const maxIndexBytes = 16 * 1024 * 1024
const indexFiles: readonly string[] = ['index.json', 'manifest.json']

/**
 * Reads which images are in an archive: an OCI image layout or the output of `docker save`, as a tar, compressed with
 * gzip or zstd or not at all; and whether the blobs of a layout have the digests that they are named after: an import
 * replaces an image of the same name before it finds a damaged layer. Throws the system's errors where the file can't be
 * read.
 */
export async function readImageArchive(path: string): Promise<ArchiveContent> {
  const compression = await detectCompression(path)
  const files = new Map<string, Buffer>()
  const options = {
    wants: (name: string) => indexFiles.includes(plainPath(name)),
    digestOf: (name: string) =>
      /^blobs\/sha256\/(?<hex>[0-9a-f]{64})$/u.exec(plainPath(name))?.groups?.['hex'],
    maxBytes: maxIndexBytes,
    onFile: ({ path: name, data }: TarFile) => void files.set(plainPath(name), data),
  }
  const stream = compression === 'none' ? createReadStream(path) : decompress(path, compression)
  try {
    const { readTar } = await import('./read-tar.ts')
    return toReading(await readTar(stream, options), files)
  } catch (error) {
    if (isSystemError(error)) throw error
    if (errorCode(error) === 'Z_BUF_ERROR') return incomplete
    return { kind: 'bad', message: `it cannot be decompressed (${compression}): ${errorMessage(error)}` }
  } finally {
    stream.destroy()
  }
}

const incomplete: ArchiveContent = { kind: 'incomplete', message: 'it ends in the middle' }

function toReading(end: TarEnd, files: ReadonlyMap<string, Buffer>): ArchiveContent {
  if (end.kind === 'malformed') return { kind: 'bad', message: end.message }
  if (end.kind === 'truncated') return incomplete
  const isMarked = end.kind === 'complete'
  const indexes = [...files].toSorted(([one], [other]) => (one < other ? -1 : 1))
  if (indexes.length === 0)
    return isMarked
      ? {
          kind: 'bad',
          message: 'it holds neither an index.json (OCI layout) nor a manifest.json (docker save)',
        }
      : incomplete
  try {
    const images = indexes.flatMap(([name, data]) => readNames(name, JSON.parse(data.toString('utf8'))))
    if (images.length === 0)
      return { kind: 'bad', message: 'it names none of its images: save them by their full names' }
    const hash = createHash('sha256')
    for (const [name, data] of indexes) hash.update(`${name} ${data.length}\n`).update(data)
    return { kind: 'archive', images: [...new Set(images)], digest: `sha256:${hash.digest('hex')}`, isMarked }
  } catch (error) {
    return { kind: 'bad', message: `its index is not valid JSON: ${errorMessage(error)}` }
  }
}

/** The names under which containerd imports what an index lists. */
function readNames(file: string, index: unknown): readonly string[] {
  if (file === 'manifest.json')
    return listOrEmpty(index).flatMap((entry) =>
      listOrEmpty(jsonAt(entry, 'RepoTags')).flatMap((tag) => named(tag)),
    )
  return listOrEmpty(jsonAt(index, 'manifests')).flatMap((manifest) => {
    const annotations = objectOrEmpty(jsonAt(manifest, 'annotations'))
    const name = annotations['io.containerd.image.name']
    if (name !== undefined) return named(name)
    const reference = annotations['org.opencontainers.image.ref.name']
    // A tag alone names no image.
    return typeof reference === 'string' && /[/:@]/u.test(reference) ? named(reference) : []
  })
}

function named(name: unknown): readonly string[] {
  return typeof name === 'string' && name !== '' ? [normalizeImageName(name)] : []
}

function plainPath(path: string): string {
  return path.replace(/^\.\//u, '')
}

/** The compression of an archive, by its first bytes. */
export type Compression = 'none' | 'gzip' | 'zstd'

/** Throws what the system throws. */
async function detectCompression(path: string): Promise<Compression> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
  const magic = buffer.toString('hex', 0, bytesRead)
  if (magic.startsWith('1f8b')) return 'gzip'
  return magic === '28b52ffd' ? 'zstd' : 'none'
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
function decompress(path: string, compression: Exclude<Compression, 'none'>): Readable {
  const decompressor = compression === 'gzip' ? createGunzip() : createZstdDecompress()
  return pipeline(createReadStream(path), decompressor, () => undefined)
}
