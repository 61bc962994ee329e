import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { ReadEntry } from 'tar/read-entry'
import { Parser } from 'tar/parse'

/** A file in a tar archive with its requested content. */
export interface TarFile {
  readonly path: string
  readonly data: Buffer
}

/** The result of reading a tar archive. */
export type TarEnd =
  /** With its end mark. */
  | { readonly kind: 'complete' }
  /** Between two entries, without an end mark: some programs write none. */
  | { readonly kind: 'unmarked' }
  /** In the middle of an entry. */
  | { readonly kind: 'truncated' }
  /** It is no tar, or not a well-formed one, or a wanted file is too large. */
  | { readonly kind: 'malformed'; readonly message: string }

const blockBytes = 512
/** Of headers that hold long names. */
const maxHeaderBytes = 1024 * 1024

/**
 * Walks through a tar archive (ustar, GNU, pax), checks the digests of files, and hands over those that `wants` names,
 * each of at most `maxBytes`; whatever the size of the others, only these are held in memory. Throws what the source
 * throws.
 */
export async function readTar(
  source: Readable,
  options: {
    readonly wants: (path: string) => boolean
    /** The expected SHA-256 of a file, in hex; undefined for any. */
    readonly digestOf: (path: string) => string | undefined
    readonly maxBytes: number
    readonly onFile: (file: TarFile) => void
  },
): Promise<TarEnd> {
  let end: TarEnd | undefined
  let hasEntry = false
  let isMarked = false
  const fail = (message: string): void => {
    end ??= { kind: 'malformed', message }
  }
  const parser = new Parser({
    maxMetaEntrySize: maxHeaderBytes,
    filter(path, entry) {
      hasEntry = true
      if (!(entry instanceof ReadEntry) || !(entry.type === 'File' || entry.type === 'OldFile')) return false
      if (entry.header.size === undefined) fail('an entry of the tar archive has no valid size')
      if (options.digestOf(path) !== undefined) return true
      if (!options.wants(path)) return false
      if (entry.size > options.maxBytes) fail(`${path} of ${entry.size} bytes is too large`)
      return end === undefined
    },
    onReadEntry(entry) {
      const { path } = entry
      const digest = options.digestOf(path)
      const hash = createHash('sha256')
      const chunks: Buffer[] = []
      entry.on('data', (chunk) => void (digest === undefined ? chunks.push(chunk) : hash.update(chunk)))
      entry.on('end', () => {
        if (entry.remain > 0 || end !== undefined) return
        if (digest === undefined) return options.onFile({ path, data: Buffer.concat(chunks) })
        const found = hash.digest('hex')
        if (found !== digest) fail(`${path} is damaged: its digest is sha256:${found}`)
      })
    },
    onwarn(code, message) {
      if (code === 'TAR_BAD_ARCHIVE') end ??= { kind: 'truncated' }
      else if (hasEntry) fail(`an entry of the tar archive is not valid: ${message}`)
      else fail('it is not a tar archive')
    },
  })
  parser.on('ignoredEntry', (entry: ReadEntry) => {
    if (entry.meta) fail(`a header of ${entry.size} bytes is too large`)
  })
  parser.on('nullBlock', () => {
    if (hasEntry) isMarked = true
    else fail('it is not a tar archive')
  })
  let sizeBytes = 0
  for await (const chunk of source) {
    if (!Buffer.isBuffer(chunk)) continue
    sizeBytes += chunk.length
    // Each byte is taken at once, so that there is nothing to wait for. What follows the end mark tells, of a compressed
    // archive, whether it is whole.
    if (!isMarked) parser.write(chunk)
    if (end !== undefined) return end
  }
  if (isMarked) return { kind: 'complete' }
  parser.end()
  return end ?? { kind: sizeBytes % blockBytes === 0 ? 'unmarked' : 'truncated' }
}
