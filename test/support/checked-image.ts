import { createCipheriv, createHash } from 'node:crypto'
import type { TarEntry } from '../../src/images/tar.ts'
import { formatDockerArchive } from './docker-archive.ts'
import { shellImage } from './oci-image.ts'

const layers = 4
const filesPerLayer = 24
const fileBytes = 128 * 1024

/**
 * An archive of an image with several layers, whose file `/sums` has the digests of all others: a container can tell
 * whether the layers below it are whole (`sha256sum -c /sums`).
 */
export function checkedImage(name: string): Buffer {
  const sums: string[] = []
  const file = (path: string, data: Uint8Array): TarEntry => {
    sums.push(`${createHash('sha256').update(data).digest('hex')}  /${path}\n`)
    return { kind: 'file', path, mode: 0o644, data }
  }
  const contents = Array.from({ length: layers }, (_, layer) =>
    Array.from({ length: filesPerLayer }, (__, index) => {
      const path = `data-${layer}-${index}`
      return file(path, incompressible(`${name} ${path}`))
    }),
  )
  const list: TarEntry = { kind: 'file', path: 'sums', mode: 0o644, data: Buffer.from(sums.join('')) }
  return formatDockerArchive(name, shellImage(name).entries, ...contents, [list])
}

/** The same bytes for the same text. */
function incompressible(text: string): Buffer {
  const key = createHash('sha256').update(text).digest()
  return createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(fileBytes))
}
