/* The directory of image archives: its files, and lists of images among them. */
import { createHash } from 'node:crypto'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode, errorMessage, ifThere } from '../base/errors.ts'
import { readRest } from '../base/read-bounded.ts'
import { mapBounded } from '../base/waits.ts'
import type { ArchiveContent } from '../decide/node/plan-image-archives.ts'
import { parseImageName } from '../pod/values/image-name.ts'

/** A file in the directory of image archives, without its content. */
export interface ArchiveLook {
  readonly name: string
  readonly sizeBytes: number
  readonly modifiedAtMs: number
  /** Changes when the file is replaced, written or touched. */
  readonly fingerprint: string
  /** Why it can be neither an archive nor a list, where that is known without reading it. */
  readonly refusal?: string
}

/** The directory of image archives. */
export interface ArchiveDirectory {
  /** Of its file system; undefined where there is no directory. */
  readonly device: string | undefined
  /** In the order of their names. */
  readonly looks: readonly ArchiveLook[]
}

const archiveName = /\.(?:tar|tar\.gz|tgz|tar\.zst|tzst)$/u
const listName = /\.txt$/u

/** Whether a name is that of a list of images rather than an archive. */
export function isImageList(name: string): boolean {
  return listName.test(name)
}

/**
 * The files of the directory, links followed; dotfiles and directories are skipped. None where there is no directory.
 * Throws the system's errors where it can't be read.
 */
export async function listArchives(directory: string): Promise<ArchiveDirectory> {
  const found = await ifThere(readdir(directory))
  const stats = found && (await ifThere(stat(directory)))
  if (found === undefined || stats === undefined) return { device: undefined, looks: [] }
  const names = found.filter((name) => !name.startsWith('.')).sort()
  const looks = await mapBounded(names, (name) => lookAt(directory, name))
  return { device: String(stats.dev), looks: looks.flatMap((look) => look ?? []) }
}

async function lookAt(directory: string, name: string): Promise<ArchiveLook | undefined> {
  try {
    const stats = await stat(join(directory, name), { bigint: true })
    if (stats.isDirectory()) return undefined
    const look = {
      name,
      sizeBytes: Number(stats.size),
      modifiedAtMs: Number(stats.mtimeNs / 1_000_000n),
      fingerprint: `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`,
    }
    if (!stats.isFile()) return { ...look, refusal: 'it is not a regular file' }
    if (archiveName.test(name) || listName.test(name)) return look
    return { ...look, refusal: 'its name ends in none of .tar, .tar.gz, .tgz, .tar.zst, .tzst and .txt' }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    return { name, sizeBytes: 0, modifiedAtMs: 0, fingerprint: 'unreadable', refusal: errorMessage(error) }
  }
}

const maxListBytes = 1024 * 1024

/** Reads a list of images: a name in each line, comments from `#` on. Throws the system's errors. */
export async function readImageList(path: string): Promise<ArchiveContent> {
  await using file = await open(path)
  const data = await readRest(file, maxListBytes)
  if (data.length > maxListBytes)
    return { kind: 'bad', message: `the list is larger than ${maxListBytes} bytes` }
  return parseImageList(data.toString('utf8'))
}

export function parseImageList(text: string): ArchiveContent {
  const images: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const name = line.replace(/(?:^|\s)#.*$/u, '').trim()
    if (name === '') continue
    const parsed = parseImageName(name)
    if (parsed === undefined)
      return {
        kind: 'bad',
        message: `line ${index + 1}: ${JSON.stringify(name)} is not the name of an image`,
      }
    images.push(parsed.normalized)
  }
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
  // A list that is written in place ends with its last line.
  return { kind: 'archive', images: [...new Set(images)], digest, isMarked: text.endsWith('\n') }
}
