/** One entry of a tar archive. Paths are relative, with forward slashes, of at most 100 bytes. */
export type TarEntry =
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly data: Uint8Array }
  | { readonly kind: 'directory'; readonly path: string; readonly mode: number }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

const blockBytes = 512
const typeFlags = { file: '0', link: '2', directory: '5' } as const

/** Writes a POSIX ustar archive. Owner root, no times: the same entries give the same bytes. */
export function formatTar(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const data = entry.kind === 'file' ? entry.data : new Uint8Array()
    const padding = Buffer.alloc((blockBytes - (data.length % blockBytes)) % blockBytes)
    return [formatHeader(entry, data.length), data, padding]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)])
}

/** The header block, from POSIX.1-1988 (ustar). */
function formatHeader(entry: TarEntry, sizeBytes: number): Buffer {
  const header = Buffer.alloc(blockBytes)
  const mode = entry.kind === 'link' ? 0o777 : entry.mode
  header.write(checkLength(entry.path), 0)
  header.write(octal(mode, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  header.write(octal(sizeBytes, 12), 124)
  header.write(octal(0, 12), 136)
  // The checksum is taken with its own field full of spaces.
  header.write('        ', 148)
  header.write(typeFlags[entry.kind], 156)
  if (entry.kind === 'link') header.write(checkLength(entry.target), 157)
  header.write('ustar', 257)
  header.write('00', 263)
  header.write('root', 265)
  header.write('root', 297)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`
}

function checkLength(path: string): string {
  if (Buffer.byteLength(path) > 100) throw new RangeError(`too long for a tar header: ${path}`)
  return path
}
