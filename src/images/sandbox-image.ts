/* The image of the sandbox's own process, made of a program of this host; and images as archives. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { PoddError } from '../base/errors.ts'
import { findExecutable } from '../host/run-command.ts'
import { formatTar } from './tar.ts'
import type { TarEntry } from './tar.ts'

/**
 * The reference of the sandbox image that podd makes. The registry part `localhost` keeps a runtime
 * that has lost the image from asking anyone on the network for it.
 */
export const sandboxImageName = 'localhost/podd-pause:1'

interface PauseProgram {
  readonly name: string
  readonly path: string
  readonly entrypoint: readonly string[]
}

/**
 * Programs that hold a pod's namespaces open and reap orphaned processes, best first: catatonit's pause mode, and a
 * waiting shell. Both must be static, since the image has nothing else.
 */
const pausePrograms: readonly PauseProgram[] = [
  { name: 'catatonit', path: 'pause', entrypoint: ['/pause', '-P'] },
  {
    name: 'busybox',
    path: 'busybox',
    entrypoint: [
      '/busybox',
      'sh',
      '-c',
      'trap "exit 0" TERM INT; while :; do /busybox sleep 3600 & wait "$!"; done',
    ],
  },
]

/** The path of a pause program on this host, or undefined; `podd doctor` uses it too. */
export async function findPauseProgram(
  find: (name: string) => string | undefined = findExecutable,
): Promise<{ readonly hostPath: string; readonly data: Buffer; readonly program: PauseProgram } | undefined> {
  for (const program of pausePrograms) {
    const hostPath = find(program.name)
    if (hostPath === undefined) continue
    const data = await readFile(hostPath)
    if (isStaticElf(data)) return { hostPath, data, program }
  }
  return undefined
}

/**
 * The sandbox image as an archive that containerd imports, made from a program of this host. Throws PoddError SANDBOX_IMAGE
 * where no program can be the sandbox's first process.
 */
export async function buildSandboxImage(find?: (name: string) => string | undefined): Promise<Buffer> {
  const found = await findPauseProgram(find)
  if (found === undefined)
    throw new PoddError('SANDBOX_IMAGE', 'cannot make the sandbox image: no static pause program', {
      hint: 'Install the package catatonit, or busybox-static.',
    })
  const { data, program } = found
  return formatOciArchive({
    name: sandboxImageName,
    entries: [{ kind: 'file', path: program.path, mode: 0o755, data }],
    entrypoint: program.entrypoint,
  })
}

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
      // Not compressed: the archive goes over a local socket, and Node's zlib would take 1.5 MiB of podd for good.
      layers: [add('application/vnd.oci.image.layer.v1.tar', layerTar)],
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

/** Program header type of the dynamic loader's path. */
const typeInterp = 3

/**
 * Whether a program is an ELF that needs no dynamic loader, so that it runs in an image by itself.
 * Source: elf(5); 32 and 64 bits, both byte orders.
 */
export function isStaticElf(data: Uint8Array): boolean {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  if (data.length < 64 || view.getUint32(0) !== 0x7f454c46) return false
  const is64 = view.getUint8(4) === 2
  const little = view.getUint8(5) === 1
  const tableOffset = is64 ? Number(view.getBigUint64(32, little)) : view.getUint32(28, little)
  const entryBytes = view.getUint16(is64 ? 54 : 42, little)
  const count = view.getUint16(is64 ? 56 : 44, little)
  if (count === 0 || tableOffset + count * entryBytes > data.length) return false
  return !Array.from({ length: count }, (_, index) =>
    view.getUint32(tableOffset + index * entryBytes, little),
  ).includes(typeInterp)
}
