import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { errorMessage, PoddError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { Semaphore } from '../base/waits.ts'
import { commandChunks, commandOutput, runCommand } from '../host/run-command.ts'
import { smallFile } from '../store/state-report.ts'
import type { ImageRecords } from './containerd/image-records.ts'
import type { ContainerdPlaces } from './containerd/process.ts'
import { UnpackedImages } from './containerd/unpacked-images.ts'
import type { ImageUnpacking, UnpackedImagesOptions } from './containerd/unpacked-images.ts'
import type { ContainerdVersion } from './containerd/version.ts'
import type { ContainerdFileOptions } from './embedded-setup.ts'

/** Connects to a containerd by its socket, also to one that has just started; its user closes it. */
export type OpenImageRecords = (socketPath: string) => ImageRecords

export interface EmbeddedImagesOptions {
  readonly places: ContainerdPlaces
  readonly sandboxImage: ContainerdFileOptions['sandboxImage']
  /** Left out, images that a power cut may have damaged are kept. */
  readonly unpacks: Omit<UnpackedImagesOptions, 'file' | 'logger'> | undefined
  /** The running containerd; waits for one that is still starting. Throws PoddError RUNTIME_UNAVAILABLE. */
  readonly whenRunning: () => Promise<ImageImportTarget>
  /** Undefined while none runs. */
  readonly running: () => ImageImportTarget | undefined
  readonly openRecords: OpenImageRecords
  readonly logger: Logger
}

/**
 * The images of podd's own containerd, beyond what CRI can do: imports and exports through its client, pins, and removes
 * images that a power cut has damaged.
 */
export class EmbeddedImages {
  readonly #options: EmbeddedImagesOptions
  /** What is unpacked is synced to the disk once at a time: the next time finds little left to write. */
  readonly #writing = new Semaphore(1)
  readonly #unpacked: UnpackedImages | undefined

  constructor(options: EmbeddedImagesOptions) {
    this.#options = options
    const { places, unpacks, logger } = options
    const file = smallFile(places.unpackRecordPath)
    this.#unpacked = unpacks && new UnpackedImages({ ...unpacks, file, logger })
  }

  /** Tracks pulls over CRI; undefined where containerd syncs layers to the disk itself, or does not run. */
  get unpacking(): ImageUnpacking | undefined {
    const unpacked = this.#unpacked
    const target = this.#options.running()
    if (unpacked === undefined || target === undefined || !needsWriteOut(target)) return undefined
    return {
      begin: () => unpacked.begin(),
      end: (ids) => unpacked.end(ids),
      isUnwritten: (id) => unpacked.isUnwritten(id),
      writeOut: () => this.#writeOut(target),
    }
  }

  /**
   * Prepares a containerd that has just started for pods: removes damaged images and imports the sandbox image. Throws
   * ImageImportError, and PoddError RUNTIME_* where containerd fails.
   */
  async prepare(target: ImageImportTarget): Promise<void> {
    await this.#asking(target, async (records) => {
      await this.#unpacked?.recover({
        writeOut: () => this.#writeOut(target),
        dropUnfinished: () => records.dropUnfinished(),
      })
      await this.#ensureSandboxImage(target, records)
    })
  }

  /**
   * Imports an archive into the image store, pins its images by default, and returns their names. Waits for a
   * containerd that is still starting.
   *
   * @throws PoddError RUNTIME_UNAVAILABLE where containerd is down or does not come up, RUNTIME_* where it fails to pin
   * them; ImageImportError
   */
  async importImages(
    file: ImageFile,
    { pin }: { readonly pin: boolean } = { pin: true },
  ): Promise<readonly string[]> {
    const target = await this.#options.whenRunning()
    const names = await this.#importing(target, () => importImageFile(target, file))
    if (pin) await this.#asking(target, (records) => pinAll(records, names, true))
    return names
  }

  /** An archive of images, as it is read. Throws as `importImages`, and PoddError IMAGE_EXPORT. */
  async *exportImages(names: readonly string[], signal: AbortSignal): AsyncGenerator<Buffer, void> {
    yield* exportImages(await this.#options.whenRunning(), names, signal)
  }

  /**
   * Pins names of images, which excludes them from garbage collection, or unpins them. Throws PoddError RUNTIME_*, of
   * them RUNTIME_NOT_FOUND for the first name that doesn't exist.
   */
  async pinImages(names: readonly string[], pinned: boolean): Promise<void> {
    await this.#asking(await this.#options.whenRunning(), (records) => pinAll(records, names, pinned))
  }

  /** Removes a name of an image, if it exists. Throws PoddError RUNTIME_*. */
  async discardImage(name: string): Promise<void> {
    await this.#asking(await this.#options.whenRunning(), (records) => records.discard(name))
  }

  /** The pinned names. Throws PoddError RUNTIME_*. */
  async pinnedImages(): Promise<readonly string[]> {
    return this.#asking(await this.#options.whenRunning(), (records) => records.pinned())
  }

  async #ensureSandboxImage(target: ImageImportTarget, records: ImageRecords): Promise<void> {
    const { sandboxImage, places } = this.#options
    const { name } = sandboxImage
    if (await records.has(name)) return
    const archive = await sandboxImage.build()
    await this.#importing(target, async () => {
      const names = await importImageBytes(target, archive, places.runDir)
      await records.pin(name)
      return names
    })
  }

  /** Resolves when all that was unpacked before this call is on the disk. Throws HostCommandError. */
  #writeOut(target: ImageImportTarget): Promise<void> {
    return this.#writing.run(() => writeOutLayers(target))
  }

  async #asking<T>(
    { socketPath }: ImageImportTarget,
    ask: (records: ImageRecords) => Promise<T>,
  ): Promise<T> {
    const records = this.#options.openRecords(socketPath)
    try {
      return await ask(records)
    } finally {
      records.close()
    }
  }

  /** Imports an archive and syncs its images to the disk; returns their names. */
  async #importing(
    target: ImageImportTarget,
    work: () => Promise<readonly string[]>,
  ): Promise<readonly string[]> {
    const unpacked = needsWriteOut(target) ? this.#unpacked : undefined
    await unpacked?.begin()
    let names: readonly string[] = []
    try {
      names = await work()
      return names
    } finally {
      await unpacked?.endNamed(names)
    }
  }
}

async function pinAll(records: ImageRecords, names: readonly string[], pinned: boolean): Promise<void> {
  for (const name of names) await records.pin(name, pinned)
}

/** An image archive that could not be imported (`IMAGE_IMPORT`). */
export class ImageImportError extends PoddError {
  constructor(message: string, options: { readonly cause?: unknown; readonly hint?: string } = {}) {
    super('IMAGE_IMPORT', message, options)
  }
}

/** Which containerd to import into, and with which `ctr` (of the same version). */
export interface ImageImportTarget {
  readonly ctrPath: string
  readonly socketPath: string
  readonly version: ContainerdVersion
  /** containerd's root directory, where known: the import is then synced to the disk. */
  readonly rootDir?: string
  /** By default containerd's own default. */
  readonly snapshotter?: string
  /** It asks image verifiers, for which it pulls without `sync_fs`. */
  readonly hasVerifiers?: boolean
}

/** Ten minutes, and the time that an SD card takes: it unpacks 1 MB a second. */
const importTimeoutMs = 600_000
const bytesPerMs = 1000

/** A Docker or OCI image archive on this host. */
interface ImageFile {
  readonly path: string
  /** Its tar, where the file is compressed; read once. */
  readonly open?: (() => Readable) | undefined
  /** Ends the import. */
  readonly signal?: AbortSignal | undefined
}

/** Imports an archive and returns the names of its images. */
export async function importImageFile(
  target: ImageImportTarget,
  { path, open, signal }: ImageFile,
): Promise<readonly string[]> {
  const sizeBytes = await checkArchive(path)
  const flags = [...localFlag(target), ...snapshotterFlag(target)]
  const result = await runCommand(
    target.ctrPath,
    [...ctrArgs(target), 'images', 'import', ...flags, open === undefined ? path : '-'],
    { timeoutMs: importTimeoutMs + Math.ceil(sizeBytes / bytesPerMs), inputFrom: open?.(), signal },
  ).catch((error: unknown) => {
    throw new ImageImportError(`cannot import ${path}: ${errorMessage(error)}`, { cause: error })
  })
  if (result.exitCode === null)
    throw new ImageImportError(`cannot import ${path}: it took too long, or was interrupted`)
  if (result.exitCode !== 0) throw new ImageImportError(`cannot import ${path}: ${lastLine(result.stderr)}`)
  const names = parseImportedNames(result.stdout)
  await writeOutLayers(target).catch((error: unknown) => {
    const message = `${path} was imported, but may be lost in a power failure: ${errorMessage(error)}`
    throw new ImageImportError(message, { cause: error })
  })
  if (names.length > 0) return names
  throw new ImageImportError(`${path} holds no image for this host's platform`)
}

/**
 * containerd 1.x, and 2.x that asks image verifiers, leaves unpacked layers to the page cache, but records at once that they
 * are there: they are written to the disk. Throws HostCommandError where that fails.
 */
export async function writeOutLayers(target: ImageImportTarget): Promise<void> {
  const { rootDir } = target
  if (rootDir === undefined || !needsWriteOut(target)) return
  await commandOutput('sync', ['--file-system', rootDir], { timeoutMs: importTimeoutMs })
}

/** Whether what it unpacks is in the page cache alone at first: without `sync_fs`. */
function needsWriteOut({ version, hasVerifiers = false }: ImageImportTarget): boolean {
  return version.major < 2 || hasVerifiers
}

/** Reads the output of `ctr images import`: `unpacking NAME (DIGEST)...done` for each image. */
export function parseImportedNames(output: string): readonly string[] {
  return [...output.matchAll(/^unpacking (\S+) \(sha256:/gm)].flatMap(([, name]) => name ?? [])
}

/** Imports an archive from memory, through a file in a directory of its own, and returns the names of its images. */
async function importImageBytes(
  target: ImageImportTarget,
  archive: Uint8Array,
  tempDir: string,
): Promise<readonly string[]> {
  const directory = await mkdtemp(join(tempDir, 'import-'))
  try {
    const path = join(directory, 'image.tar')
    await writeFile(path, archive)
    return await importImageFile(target, { path })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** The arguments that lead `ctr` to CRI's images. */
function ctrArgs(target: ImageImportTarget): readonly string[] {
  return ['--address', target.socketPath, '--namespace', 'k8s.io']
}

/** The transfer service, which newer versions use by default, reports neither the names nor why it failed. */
function localFlag({ version }: ImageImportTarget): readonly string[] {
  return version.major > 1 || version.minor >= 7 ? ['--local'] : []
}

function snapshotterFlag({ snapshotter }: ImageImportTarget): readonly string[] {
  return snapshotter === undefined ? [] : ['--snapshotter', snapshotter]
}

/** Gives its size in bytes. */
async function checkArchive(path: string): Promise<number> {
  try {
    const info = await stat(path)
    if (info.isFile()) return info.size
  } catch (error) {
    throw new ImageImportError(`cannot read ${path}: ${errorMessage(error)}`, { cause: error })
  }
  throw new ImageImportError(`${path} is not a file`, {
    hint: 'Give an archive made by docker save or podman save.',
  })
}

/** The last line of a command's output: why it failed. */
function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}

/**
 * The images of these names as an OCI archive, which `docker load` takes too, as it is read. Throws PoddError
 * IMAGE_EXPORT, before the first byte where layers are missing.
 */
export async function* exportImages(
  target: ImageImportTarget,
  names: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  for (const name of names) await checkComplete(target, name)
  const args = [...ctrArgs(target), 'images', 'export', ...localFlag(target), '-', ...names]
  try {
    yield* commandChunks(target.ctrPath, args, signal)
  } catch (error) {
    signal.throwIfAborted()
    const message = `cannot export ${names.join(', ')}: ${lastLine(errorMessage(error))}`
    throw new PoddError('IMAGE_EXPORT', message, { cause: error })
  }
}

/** containerd keeps no layers of what it pulled (`discard_unpacked_layers`): they can't be exported. */
async function checkComplete(target: ImageImportTarget, name: string): Promise<void> {
  const which = `name==${JSON.stringify(name)}`
  const args = [...ctrArgs(target), 'images', 'check', ...snapshotterFlag(target), which]
  // Where that can't be determined, the export itself reports it.
  const output = await commandOutput(target.ctrPath, args).catch(() => '')
  const found = parseIncomplete(output, name)
  if (found === undefined) return
  const { present, required } = found
  const message = `cannot export ${name}: containerd has only ${present} of its ${required} blobs; the layers of an image that was pulled are deleted once they are unpacked`
  throw new PoddError('IMAGE_EXPORT', message, {
    hint: 'Only images that were imported can be exported. Copy it from its registry to an archive instead: `skopeo copy docker://NAME docker-archive:FILE.tar:NAME`.',
  })
}

/** What `ctr images check` says: `incomplete (2/3)` of config and layers; undefined where all are there. */
export function parseIncomplete(
  output: string,
  name: string,
): { readonly present: number; readonly required: number } | undefined {
  const line = output.split('\n').find((each) => each.startsWith(`${name} `) || each.startsWith(`${name}\t`))
  const [, present, required] = /\sincomplete \((\d+)\/(\d+)\)/u.exec(line ?? '') ?? []
  return required === undefined ? undefined : { present: Number(present), required: Number(required) }
}
