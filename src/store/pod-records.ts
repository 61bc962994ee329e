import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorMessage, isSystemError } from '../base/errors.ts'
import { isJsonObject } from '../base/json.ts'
import type { PodUid } from '../pod/values/ids.ts'
import type { PodRecord } from '../pod/state/pod-record.ts'
import { isAtomicFileTemp, removeFileDurably, writeFileAtomic } from './atomic-file.ts'

/** A record that couldn't be read; it was put aside under `path`, never deleted. */
export interface UnreadableRecord {
  readonly path: string
  readonly message: string
}

/** A record, and what the runtime writes down of a sandbox and a few containers. */
const roomBytes = 256 * 1024

/**
 * The pods' records: one file each under `<root-dir>/records`, named after the UID. The pod's worker
 * is the only writer of its file.
 */
export class PodRecordStore {
  readonly #directory: string

  constructor(rootDir: string) {
    this.#directory = join(rootDir, 'records')
  }

  /** Reads all records. One that makes no sense or is of a later version is put aside; that, and one that can't be read, is reported. */
  async load(): Promise<{
    readonly records: readonly PodRecord[]
    readonly unreadable: readonly UnreadableRecord[]
  }> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const found = await readdir(this.#directory)
    // A podd that was killed in the middle of a write left them; on a disk that can't be written they stay.
    for (const name of found.filter((candidate) => isAtomicFileTemp(candidate)))
      await rm(join(this.#directory, name), { force: true }).catch(() => undefined)
    const names = found.filter((name) => name.endsWith('.json') && !isAtomicFileTemp(name))
    const records: PodRecord[] = []
    const unreadable: UnreadableRecord[] = []
    for (const name of names.sort()) {
      const path = join(this.#directory, name)
      try {
        const value: unknown = JSON.parse(await readFile(path, 'utf8'))
        if (!isPodRecord(value)) throw new Error('not a pod record of a version this podd knows')
        records.push(value)
      } catch (error) {
        // What the system would not read may be good; the next podd may have more luck.
        const where = isSystemError(error) ? path : await putAside(path)
        unreadable.push({ path: where, message: errorMessage(error) })
      }
    }
    return { records, unreadable }
  }

  /** On disk, and there after a power cut, when the promise resolves. Throws the system's error (ENOSPC, EROFS, …). */
  async save(record: PodRecord): Promise<void> {
    await writeFileAtomic(this.#path(record.uid), JSON.stringify(record))
  }

  /** Whether there is room for another pod's record and its like. Throws the system's error (ENOSPC, EROFS, …) where there isn't. */
  async checkRoom(): Promise<void> {
    const path = join(this.#directory, '.room.tmp')
    try {
      await writeFile(path, Buffer.alloc(roomBytes), { mode: 0o600 })
    } finally {
      await rm(path, { force: true })
    }
  }

  async remove(uid: PodUid): Promise<void> {
    await removeFileDurably(this.#path(uid))
  }

  #path(uid: PodUid): string {
    return join(this.#directory, `${uid}.json`)
  }
}

/** Where the file is now: on a disk that can't be written it stays where it is. */
async function putAside(path: string): Promise<string> {
  const aside = `${path}.unreadable`
  return rename(path, aside).then(
    () => aside,
    () => path,
  )
}

/** Deep enough to be safe to work with: podd is the only writer of these files. */
function isPodRecord(value: unknown): value is PodRecord {
  if (!isJsonObject(value)) return false
  const strings = ['uid', 'namespace', 'name', 'source', 'path'].every(
    (key) => typeof value[key] === 'string',
  )
  const objects = ['manifest', 'conditions', 'containers'].every((key) => isJsonObject(value[key]))
  return value['version'] === 1 && strings && objects && typeof value['acceptedAtMs'] === 'number'
}
