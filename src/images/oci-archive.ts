import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { formatTar } from './tar.ts'
import type { TarEntry } from './tar.ts'

/** An image of one layer, to be written by `formatOciArchive`. */
export interface OciImage {
  /** Full reference, with registry and tag (`localhost/podd-pause:1`). */
  readonly name: string
  readonly entries: readonly TarEntry[]
  readonly entrypoint: readonly string[]
  readonly command?: readonly string[]
  /** `NAME=value` each. */
  readonly environment?: readonly string[]
  /** As `USER` in a Dockerfile: a name or a number. */
  readonly user?: string
  /** Node's name of the processor; that of this host where nothing is said. */
  readonly arch?: string
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

const manifestType = 'application/vnd.oci.image.manifest.v1+json'

/** Node's architecture names to those of image configs, where they differ. */
const imageArchitectures: Readonly<Record<string, string>> = { x64: 'amd64', ppc64: 'ppc64le', ia32: '386' }

/**
 * An OCI image layout of these images in a tar, as `ctr images import` and `docker load` take it.
 * Source: OCI image spec 1.0 (image-layout.md, manifest.md, config.md); containerd reads the full
 * name from the annotation `io.containerd.image.name`.
 */
export function formatOciArchive(...images: readonly OciImage[]): Buffer {
  const blobs = new Map<string, Buffer>()
  const add = (mediaType: string, data: Buffer): Descriptor => {
    const digest = sha256(data)
    blobs.set(digest, data)
    return { mediaType, digest, size: data.length }
  }
  const manifests = images.map((image) => {
    const layerTar = formatTar(image.entries)
    const manifest = {
      schemaVersion: 2,
      mediaType: manifestType,
      config: add('application/vnd.oci.image.config.v1+json', json(formatConfig(image, sha256(layerTar)))),
      layers: [add('application/vnd.oci.image.layer.v1.tar+gzip', gzipSync(layerTar))],
    }
    const annotations = {
      'io.containerd.image.name': image.name,
      'org.opencontainers.image.ref.name': image.name,
    }
    return Object.assign(add(manifestType, json(manifest)), { annotations })
  })
  const index = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests }
  return formatTar([
    file('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
    { kind: 'directory', path: 'blobs/', mode: 0o755 },
    { kind: 'directory', path: 'blobs/sha256/', mode: 0o755 },
    ...[...blobs].map(([digest, data]) => file(`blobs/sha256/${digest.slice(7)}`, data)),
    file('index.json', json(index)),
  ])
}

function formatConfig(image: OciImage, diffId: string): object {
  const arch = image.arch ?? process.arch
  return {
    architecture: imageArchitectures[arch] ?? arch,
    ...(arch === 'arm' ? { variant: 'v7' } : {}),
    os: 'linux',
    config: {
      Entrypoint: image.entrypoint,
      ...(image.command === undefined ? {} : { Cmd: image.command }),
      ...(image.user === undefined ? {} : { User: image.user }),
      Env: image.environment ?? ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
    },
    rootfs: { type: 'layers', diff_ids: [diffId] },
  }
}

function file(path: string, data: Uint8Array): TarEntry {
  return { kind: 'file', path, mode: 0o644, data }
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function sha256(data: Uint8Array): string {
  return `sha256:${createHash('sha256').update(data).digest('hex')}`
}
