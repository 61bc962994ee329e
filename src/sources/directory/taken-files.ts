import { createHash } from 'node:crypto'
import type { DecodeResult } from '../../pod/decode/decode-documents.ts'
import type { Problem, SourceDocument } from '../../pod/objects/document.ts'
import { documentKey } from '../../pod/objects/document.ts'
import { mergeLastGood } from '../merge-last-good.ts'

/** What a file held when it was last taken. */
interface TakenFile {
  readonly fingerprint: string
  readonly sizeBytes: number
  readonly hash: string
  readonly documents: readonly SourceDocument[]
  readonly problems: readonly Problem[]
}

/** A file's content, read and decoded. */
export interface FileContent {
  readonly hash: string
  readonly result: DecodeResult
}

/** What was taken of each file of the manifest directory, by the files' names; of bad documents the last good form. */
export class TakenFiles {
  readonly #files = new Map<string, TakenFile>()

  /** @param lastGood the last good copy, whose documents have paths in `directory` */
  constructor(directory: string, lastGood: readonly SourceDocument[]) {
    for (const document of lastGood) {
      const name = document.place.path.slice(directory.length + 1)
      const before = this.#files.get(name)?.documents ?? []
      const documents = [...before, document]
      this.#files.set(name, { fingerprint: '', sizeBytes: 0, hash: '', documents, problems: [] })
    }
  }

  names(): readonly string[] {
    return [...this.#files.keys()]
  }

  has(name: string): boolean {
    return this.#files.has(name)
  }

  fingerprint(name: string): string | undefined {
    return this.#files.get(name)?.fingerprint
  }

  /** In the order of the names. */
  documents(): readonly SourceDocument[] {
    return this.#sorted().flatMap((file) => file.documents)
  }

  /** In the order of the names. */
  problems(): readonly Problem[] {
    return this.#sorted().flatMap((file) => file.problems)
  }

  /** Distinguishes what all of them hold. */
  hash(): string {
    const hash = createHash('sha256')
    for (const [name, file] of [...this.#files].sort(([a], [b]) => (a < b ? -1 : 1)))
      hash.update(`${JSON.stringify(name)} ${file.hash}\n`)
    return hash.digest('hex')
  }

  /** Whether the file was taken, and every document in it is good. */
  isGood(name: string): boolean {
    const file = this.#files.get(name)
    return file !== undefined && !hasErrors(file.problems)
  }

  /** What a file of this hash was decoded to, where it was taken with the same one. */
  decoded(name: string, hash: string): DecodeResult | undefined {
    const file = this.#files.get(name)
    if (file?.hash !== hash) return undefined
    return { documents: file.documents, problems: file.problems, heldObjects: [], holdsAll: false }
  }

  /** Whether the content is shorter than what was taken, or has fewer documents. */
  givesLess(name: string, sizeBytes: number, { documents }: DecodeResult): boolean {
    const before = this.#files.get(name)
    if (before === undefined) return false
    return sizeBytes < before.sizeBytes || documents.length < before.documents.length
  }

  /** Whether an object that this file gave would be in no file any more; files that aren't `known` don't count. */
  dropsObjects(name: string, result: DecodeResult, isKnown: (other: string) => boolean): boolean {
    const before = this.#files.get(name)?.documents ?? []
    const kept = new Set(mergeLastGood(before, result).map((document) => documentKey(document)))
    const dropped = before.map((document) => documentKey(document)).filter((key) => !kept.has(key))
    if (dropped.length === 0) return false
    const others = [...this.#files].filter(([other]) => other !== name && isKnown(other))
    const given = new Set(others.flatMap(([, { documents }]) => documents.map((each) => documentKey(each))))
    return dropped.some((key) => !given.has(key))
  }

  /** Gives whether that changed anything but what the file system says of the file. */
  take(name: string, seen: Pick<TakenFile, 'fingerprint' | 'sizeBytes'>, content: FileContent): boolean {
    const before = this.#files.get(name)
    const { fingerprint, sizeBytes } = seen
    const { hash, result } = content
    if (before?.hash === hash) {
      this.#files.set(name, { ...before, fingerprint, sizeBytes })
      return false
    }
    const documents = mergeLastGood(before?.documents ?? [], result)
    this.#files.set(name, { fingerprint, sizeBytes, hash, documents, problems: result.problems })
    return true
  }

  /** Gives whether it was there. */
  drop(name: string): boolean {
    return this.#files.delete(name)
  }

  #sorted(): readonly TakenFile[] {
    return [...this.#files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, file]) => file)
  }
}

export function hasErrors(problems: readonly Problem[]): boolean {
  return problems.some((problem) => problem.severity === 'error')
}
