import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  isAtomicFileTemp,
  putAside,
  readIfExists,
  removeFileDurably,
  writeFileAtomic,
  tryRemove,
  makeDirectory,
} from '../base/atomic-file.ts'
import { errorMessage, ifThere } from '../base/errors.ts'
import { isJsonObject } from '../base/json.ts'
import type { Json } from '../base/json.ts'
import { readState } from '../base/state-file.ts'
import type { Migration } from '../base/state-file.ts'
import type { StateReport, UnreadableState } from './state-report.ts'
import type { PullAccess, PulledRecord } from '../decide/images/pulled-record.ts'

/** The version of both kinds of file. */
export const pullRecordVersion = 1

/** One step for each version before the current one, oldest first. */
export const pullRecordMigrations: readonly Migration[] = []

/** A pull that was begun, and is not known to have ended. */
export interface PullIntent {
  /** The name that pods use. */
  readonly image: string
  /** The id of the image that had this name when the pull began. */
  readonly presentRef?: string
}

/** The loaded records. */
export interface LoadedPulls {
  readonly records: readonly PulledRecord[]
  readonly intents: readonly PullIntent[]
  /** Files that this podd can't read: only their names tell which image they are about. */
  readonly unreadable: readonly UnreadableState[]
}

/**
 * Which images were pulled, and with what: a file for each under `<root-dir>/image-pulls/pulled`, and one for each pull in
 * flight under `pulling`, named after the image. They hold hashes of credentials and never a credential. A file is
 * there after a power cut once the promise of its writing resolves.
 */
export class PullRecordStore {
  readonly #pulled: string
  readonly #pulling: string
  readonly #report: StateReport | undefined

  /** @param report called for each file that can't be read */
  constructor(rootDir: string, report?: StateReport) {
    this.#report = report
    this.#pulled = join(rootDir, 'image-pulls/pulled')
    this.#pulling = join(rootDir, 'image-pulls/pulling')
  }

  /** Throws the system's error. */
  async load(): Promise<LoadedPulls> {
    const unreadable: UnreadableState[] = []
    const records = await readAll(this.#pulled, readRecord, unreadable)
    const intents = await readAll(this.#pulling, readIntent, unreadable)
    for (const state of unreadable) this.#report?.(state)
    return { records, intents, unreadable }
  }

  /** Whether there is a file about this image that can't be read. */
  isUnreadable(imageRef: string, { unreadable }: Pick<LoadedPulls, 'unreadable'>): boolean {
    return unreadable.some(({ path }) => path === this.#recordPath(imageRef))
  }

  /** Throws the system's error (ENOSPC, EROFS, …). */
  async saveRecord(record: PulledRecord): Promise<void> {
    await write(this.#pulled, this.#recordPath(record.imageRef), { version: pullRecordVersion, ...record })
  }

  /** Throws the system's error. */
  async removeRecord(imageRef: string): Promise<void> {
    await removeFileDurably(this.#recordPath(imageRef))
  }

  /** Throws the system's error (ENOSPC, EROFS, …). */
  async saveIntent(intent: PullIntent): Promise<void> {
    await write(this.#pulling, this.#intentPath(intent.image), { version: pullRecordVersion, ...intent })
  }

  /** Throws the system's error. */
  async removeIntent(image: string): Promise<void> {
    await removeFileDurably(this.#intentPath(image))
  }

  /** Puts a file aside that can't be read, before another one takes its place. */
  async putAside(imageRef: string): Promise<void> {
    await putAside(this.#recordPath(imageRef))
  }

  #recordPath(imageRef: string): string {
    return join(this.#pulled, fileName(imageRef))
  }

  #intentPath(image: string): string {
    return join(this.#pulling, fileName(image))
  }
}

function fileName(image: string): string {
  return `sha256-${createHash('sha256').update(image).digest('hex')}.json`
}

async function write(directory: string, path: string, content: object): Promise<void> {
  await makeDirectory(directory, 0o700)
  await writeFileAtomic(path, JSON.stringify(content))
}

async function readAll<T>(
  directory: string,
  read: (content: { readonly [key: string]: Json }) => T | undefined,
  unreadable: UnreadableState[],
): Promise<T[]> {
  const found: T[] = []
  for (const name of (await ifThere(readdir(directory))) ?? []) {
    const path = join(directory, name)
    if (isAtomicFileTemp(name)) {
      await tryRemove(path)
      continue
    }
    if (!/^sha256-[0-9a-f]{64}\.json$/u.test(name)) continue
    try {
      const reading = readState((await readIfExists(path)) ?? '', pullRecordMigrations)
      const value = reading.kind === 'current' ? read(reading.content) : undefined
      if (value !== undefined) found.push(value)
      else
        unreadable.push({
          path,
          message: reading.kind === 'current' ? 'it lacks what it must have' : reading.message,
        })
    } catch (error) {
      unreadable.push({ path, message: errorMessage(error) })
    }
  }
  return found
}

function readIntent({ image, presentRef }: { readonly [key: string]: Json }): PullIntent | undefined {
  if (typeof image !== 'string') return undefined
  return { image, ...(typeof presentRef === 'string' && { presentRef }) }
}

function readRecord(content: { readonly [key: string]: Json }): PulledRecord | undefined {
  const { imageRef, updatedAtMs, access, imported = [] } = content
  if (typeof imageRef !== 'string' || typeof updatedAtMs !== 'number' || !isJsonObject(access))
    return undefined
  if (!Array.isArray(imported)) return undefined
  const names = imported.flatMap((name: Json) => (typeof name === 'string' ? [name] : []))
  const entries = Object.entries(access).map(([name, value]) => [name, readAccess(value)] as const)
  const known = entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  return known.length === entries.length
    ? {
        imageRef,
        updatedAtMs,
        access: Object.fromEntries(known),
        ...(names.length > 0 && { imported: names }),
      }
    : undefined
}

function readAccess(value: Json): PullAccess | undefined {
  if (!isJsonObject(value)) return undefined
  const { allPods, secrets } = value
  if (typeof allPods !== 'boolean' || !Array.isArray(secrets)) return undefined
  const read = secrets.flatMap((secret: Json) => {
    if (!isJsonObject(secret)) return []
    const { source, namespace, name, hash } = secret
    return typeof source === 'string' &&
      typeof namespace === 'string' &&
      typeof name === 'string' &&
      typeof hash === 'string'
      ? [{ source, namespace, name, hash }]
      : []
  })
  return read.length === secrets.length ? { allPods, secrets: read } : undefined
}
