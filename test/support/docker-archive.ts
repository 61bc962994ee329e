import { createHash } from 'node:crypto'
import { formatTar } from '../../src/images/tar.ts'
import type { TarEntry } from '../../src/images/tar.ts'

/** An image as `docker save` of Docker before 25 writes it: manifest.json, a config, each layer in a directory. */
export function formatDockerArchive(name: string, ...contents: readonly (readonly TarEntry[])[]): Buffer {
  const layers = contents.map((entries) => formatTar(entries))
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Cmd: ['sleep', '1000000'], Env: ['PATH=/bin'] },
      rootfs: { type: 'layers', diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`) },
    }),
  )
  const id = sha256(config)
  const paths = layers.map((layer) => `${sha256(layer)}/layer.tar`)
  const manifest = [{ Config: `${id}.json`, RepoTags: [name], Layers: paths }]
  const file = (path: string, data: Uint8Array): TarEntry => ({ kind: 'file', path, mode: 0o644, data })
  return formatTar([
    file(`${id}.json`, config),
    ...layers.flatMap((layer): readonly TarEntry[] => [
      { kind: 'directory', path: `${sha256(layer)}/`, mode: 0o755 },
      file(`${sha256(layer)}/layer.tar`, layer),
    ]),
    file('manifest.json', Buffer.from(JSON.stringify(manifest))),
  ])
}

function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}
