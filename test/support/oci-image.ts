import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** What a file in a tar archive may be. */
export type TarEntry =
  | {
      readonly kind: 'file'
      readonly path: string
      readonly mode: number
      readonly content: Uint8Array | string
    }
  | { readonly kind: 'dir'; readonly path: string; readonly mode: number }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

const typeFlags = { file: '0', link: '2', dir: '5' } as const

function tarHeader(entry: TarEntry, sizeBytes: number): Buffer {
  const header = Buffer.alloc(512)
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`
  header.write(entry.path, 0, 100)
  header.write(octal(entry.kind === 'link' ? 0o777 : entry.mode, 7), 100)
  header.write(octal(0, 7), 108)
  header.write(octal(0, 7), 116)
  header.write(octal(sizeBytes, 11), 124)
  header.write(octal(0, 11), 136)
  header.write(' '.repeat(8), 148)
  header.write(typeFlags[entry.kind], 156)
  if (entry.kind === 'link') header.write(entry.target, 157, 100)
  header.write('ustar\x0000', 257)
  const checksum = header.reduce((sum, byte) => sum + byte, 0)
  header.write(`${checksum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

/** A tar archive, all of it root's and of 1970, so that equal entries give equal bytes. Paths may have 100 bytes. */
export function tarArchive(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const content = entry.kind === 'file' ? Buffer.from(entry.content) : Buffer.alloc(0)
    const padding = Buffer.alloc((512 - (content.length % 512)) % 512)
    return [tarHeader(entry, content.length), content, padding]
  })
  return Buffer.concat([...parts, Buffer.alloc(1024)])
}

/** `config` of an image, in the words of the OCI image specification. */
export interface ImageConfig {
  readonly Entrypoint?: readonly string[]
  readonly Cmd?: readonly string[]
  readonly Env?: readonly string[]
  readonly User?: string
  readonly WorkingDir?: string
  readonly StopSignal?: string
  readonly Labels?: Readonly<Record<string, string>>
  readonly Volumes?: Readonly<Record<string, object>>
}

export interface TestImage {
  /** In full: `localhost/podd-test/shell:1`. */
  readonly name: string
  readonly files: readonly TarEntry[]
  readonly config: ImageConfig
}

/** An OCI archive of images with one layer each, as `ctr images import` and `podd images import` take it. */
export function ociArchive(images: readonly TestImage[]): Buffer {
  const blobs = new Map<string, Buffer>()
  const addBlob = (mediaType: string, content: Buffer | object) => {
    const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content))
    const hex = createHash('sha256').update(bytes).digest('hex')
    blobs.set(hex, bytes)
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length }
  }
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  const manifests = images.map((image) => {
    const layer = addBlob('application/vnd.oci.image.layer.v1.tar', tarArchive(image.files))
    const config = addBlob('application/vnd.oci.image.config.v1+json', {
      architecture,
      os: 'linux',
      config: image.config,
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
      history: [{ created_by: 'podd test' }],
    })
    const mediaType = 'application/vnd.oci.image.manifest.v1+json'
    const manifest = addBlob(mediaType, { schemaVersion: 2, mediaType, config, layers: [layer] })
    return {
      ...manifest,
      platform: { architecture, os: 'linux' },
      annotations: { 'io.containerd.image.name': image.name },
    }
  })
  const json = (path: string, value: object): TarEntry => ({
    kind: 'file',
    path,
    mode: 0o644,
    content: JSON.stringify(value),
  })
  return tarArchive([
    json('oci-layout', { imageLayoutVersion: '1.0.0' }),
    json('index.json', { schemaVersion: 2, manifests }),
    ...[...blobs].map(([hex, content]): TarEntry => ({
      kind: 'file',
      path: `blobs/sha256/${hex}`,
      mode: 0o644,
      content,
    })),
  ])
}

const busyboxPath = '/usr/bin/busybox'

/** The files of a busybox image: every applet, users, and the directories that programs expect. */
export function busyboxFiles(): TarEntry[] {
  const applets = execFileSync(busyboxPath, ['--list'], { encoding: 'utf8' }).trim().split('\n')
  const dir = (path: string, mode = 0o755): TarEntry => ({ kind: 'dir', path, mode })
  const file = (path: string, content: Uint8Array | string, mode = 0o644): TarEntry => ({
    kind: 'file',
    path,
    mode,
    content,
  })
  return [
    ...['bin/', 'etc/', 'root/', 'usr/', 'usr/bin/', 'var/', 'var/tmp/'].map((path) => dir(path)),
    dir('tmp/', 0o1777),
    file('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n'),
    file('etc/group', 'root:x:0:\nnogroup:x:65534:\n'),
    file('bin/busybox', readFileSync(busyboxPath), 0o755),
    ...applets
      .filter((applet) => applet !== 'busybox')
      .map((applet): TarEntry => ({ kind: 'link', path: `bin/${applet}`, target: 'busybox' })),
  ]
}

const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** A shell with all of busybox; sleeps until told otherwise. */
export const shellImageName = 'localhost/podd-test/shell:1'

export function shellImage(name: string = shellImageName, config: ImageConfig = {}): TestImage {
  return { name, files: busyboxFiles(), config: { Cmd: ['sleep', '1000000'], Env: [path], ...config } }
}

/** What holds a sandbox's namespaces. */
export const pauseImageName = 'localhost/podd-test/pause:1'

export function pauseImage(): TestImage {
  const content = readFileSync('/usr/bin/catatonit')
  return {
    name: pauseImageName,
    files: [{ kind: 'file', path: 'catatonit', mode: 0o755, content }],
    config: { Entrypoint: ['/catatonit', '-P'] },
  }
}
