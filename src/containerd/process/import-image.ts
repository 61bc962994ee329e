import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { commandOutput, runCommand } from '../../host/run-command.ts'
import type { ContainerdVersion } from './containerd-version.ts'

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
}

/** Ten minutes, and the time that an SD card takes: it unpacks 1 MB a second. */
const importTimeoutMs = 600_000
const bytesPerMs = 1000

/** A Docker or OCI image archive on this host. */
export interface ImageFile {
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
  const result = await runCommand(
    target.ctrPath,
    [...ctrArgs(target), 'images', 'import', ...importFlags(target), open === undefined ? path : '-'],
    { timeoutMs: importTimeoutMs + Math.ceil(sizeBytes / bytesPerMs), inputFrom: open?.(), signal },
  ).catch((error: unknown) => {
    throw new ImageImportError(`cannot import ${path}: ${errorMessage(error)}`, { cause: error })
  })
  if (result.exitCode === null)
    throw new ImageImportError(`cannot import ${path}: it took too long, or was interrupted`)
  if (result.exitCode !== 0) throw new ImageImportError(`cannot import ${path}: ${lastLine(result.stderr)}`)
  const names = parseImportedNames(result.stdout)
  await writeOutLayers(target).catch((error: unknown) => {
    throw new ImageImportError(
      `${path} was imported, but may be lost in a power failure: ${errorMessage(error)}`,
      {
        cause: error,
      },
    )
  })
  if (names.length > 0) return names
  throw new ImageImportError(`${path} holds no image for this host's platform`)
}

/**
 * containerd 1.x leaves unpacked layers to the page cache, but records at once that they are there: they are written
 * to the disk. Throws HostCommandError where that fails.
 */
export async function writeOutLayers(target: ImageImportTarget): Promise<void> {
  const { rootDir } = target
  if (rootDir === undefined || !needsWriteOut(target)) return
  await commandOutput('sync', ['--file-system', rootDir], { timeoutMs: importTimeoutMs })
}

/** Whether what it unpacks is in the page cache alone at first: it has no `sync_fs`. */
export function needsWriteOut({ version }: Pick<ImageImportTarget, 'version'>): boolean {
  return version.major < 2
}

/** Reads the output of `ctr images import`: `unpacking NAME (DIGEST)...done` for each image. */
export function parseImportedNames(output: string): readonly string[] {
  return [...output.matchAll(/^unpacking (\S+) \(sha256:/gm)].flatMap(([, name]) => name ?? [])
}

/** Imports an archive from memory, through a file in a directory of its own, and returns the names of its images. */
export async function importImageBytes(
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
export function ctrArgs(target: ImageImportTarget): readonly string[] {
  return ['--address', target.socketPath, '--namespace', 'k8s.io']
}

/** The transfer service, which newer versions use by default, reports neither the names nor why it failed. */
export function hasLocalTransfers({ version }: ImageImportTarget): boolean {
  return version.major > 1 || version.minor >= 7
}

function importFlags(target: ImageImportTarget): readonly string[] {
  const { snapshotter } = target
  return [
    ...(hasLocalTransfers(target) ? ['--local'] : []),
    ...(snapshotter === undefined ? [] : ['--snapshotter', snapshotter]),
  ]
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
export function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}
