import { createHash } from 'node:crypto'
import { formatTar } from '../../src/images/tar.ts'
import type { TarEntry } from '../../src/images/tar.ts'

/** An image as `docker save` of Docker before 25 writes it: manifest.json, a config, a layer in a directory. */
export function formatDockerArchive(name: string, entries: readonly TarEntry[]): Buffer {
  const layer = formatTar(entries)
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Cmd: ['sleep', '1000000'], Env: ['PATH=/bin'] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
    }),
  )
  const id = sha256(config)
  const manifest = [{ Config: `${id}.json`, RepoTags: [name], Layers: [`${sha256(layer)}/layer.tar`] }]
  const file = (path: string, data: Uint8Array): TarEntry => ({ kind: 'file', path, mode: 0o644, data })
  return formatTar([
    file(`${id}.json`, config),
    { kind: 'directory', path: `${sha256(layer)}/`, mode: 0o755 },
    file(`${sha256(layer)}/layer.tar`, layer),
    file('manifest.json', Buffer.from(JSON.stringify(manifest))),
  ])
}

function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}
