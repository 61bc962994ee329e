import { Header } from 'tar/header'
import { Pax } from 'tar/pax'

/** One entry of a tar archive. Paths are relative, with forward slashes. */
export type TarEntry =
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly data: Uint8Array }
  | { readonly kind: 'directory'; readonly path: string; readonly mode: number }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

const blockBytes = 512
const types = { file: 'File', link: 'SymbolicLink', directory: 'Directory' } as const

/** Writes a POSIX archive. Owner root, no times: the same entries give the same bytes. */
export function formatTar(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const data = entry.kind === 'file' ? entry.data : new Uint8Array()
    const names = { path: entry.path, ...(entry.kind === 'link' ? { linkpath: entry.target } : {}) }
    const block = Buffer.alloc(blockBytes)
    const isTooMuch = new Header({
      ...names,
      type: types[entry.kind],
      mode: entry.kind === 'link' ? 0o777 : entry.mode,
      size: data.length,
      uid: 0,
      gid: 0,
      uname: 'root',
      gname: 'root',
      mtime: new Date(0),
    }).encode(block)
    const padding = Buffer.alloc((blockBytes - (data.length % blockBytes)) % blockBytes)
    return [...(isTooMuch ? [new Pax(names).encode()] : []), block, data, padding]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)])
}
