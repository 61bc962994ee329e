import { createHash } from 'node:crypto'
import type { DecodeResult } from '../../pod/decode/decode-documents.ts'
import { documentKey, groupDocuments } from '../../pod/objects/document.ts'
import type { Problem, SourceDocument } from '../../pod/objects/document.ts'
import { mergeLastGood } from '../source.ts'

/** The content of a file when it was last taken. */
interface TakenFile {
  readonly fingerprint: string
  readonly sizeBytes: number
  readonly hash: string
  readonly documents: readonly SourceDocument[]
  readonly problems: readonly Problem[]
}

/** A file's content, read and decoded. */
export interface FileContent {
  /** Another one while it has no good signature. */
  readonly hash: string
  readonly result: DecodeResult
  /** It lacks a good signature, and is not decoded. */
  readonly isUnverified?: boolean
}

/**
 * The documents taken from each file of the manifest directory, by file name; bad documents in their last good form.
 */
export class TakenFiles {
  readonly #files = new Map<string, TakenFile>()
  /** In which files each object is. */
  readonly #givers = new Map<string, Set<string>>()
  /** Of those with problems, by name. */
  readonly #problems = new Map<string, readonly Problem[]>()
  readonly #unverified = new Set<string>()
  /** Undefined where they have to be listed again. */
  #lists: DocumentLists | undefined

  /** @param lastGood the last good copy, whose documents have paths in `directory` */
  constructor(directory: string, lastGood: readonly SourceDocument[]) {
    const byName = Map.groupBy(lastGood, ({ place }) => place.path.slice(directory.length + 1))
    for (const [name, documents] of byName)
      this.#set(name, { fingerprint: '', sizeBytes: 0, hash: '', documents, problems: [] })
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
  documents(): DocumentLists {
    this.#lists ??= listDocuments(inOrderOfNames(this.#files).flatMap((file) => file.documents))
    return this.#lists
  }

  /** In the order of the names. */
  problems(): readonly Problem[] {
    return inOrderOfNames(this.#problems).flat()
  }

  /** A hash of the content of all files. */
  hash(): string {
    const hash = createHash('sha256')
    for (const [name, file] of [...this.#files].sort(([a], [b]) => (a < b ? -1 : 1)))
      hash.update(`${JSON.stringify(name)} ${file.hash}\n`)
    return hash.digest('hex')
  }

  /** The files that lack a good signature. */
  get unverified(): ReadonlySet<string> {
    return this.#unverified
  }

  /** Whether the file has given documents, those of its last good form among them. */
  hasGiven(name: string): boolean {
    return (this.#files.get(name)?.documents.length ?? 0) > 0
  }

  /** Whether the file was taken, and every document in it is good. */
  isGood(name: string): boolean {
    const file = this.#files.get(name)
    return file !== undefined && !hasErrors(file.problems)
  }

  /** The result of decoding a file, where it was taken with this hash. */
  decoded(name: string, hash: string): DecodeResult | undefined {
    const file = this.#files.get(name)
    if (file?.hash !== hash) return undefined
    return { documents: file.documents, problems: file.problems, heldObjects: [], holdsAll: false }
  }

  /** Whether the content is shorter than the taken one, or has fewer documents. */
  givesLess(name: string, sizeBytes: number, { documents }: DecodeResult): boolean {
    const before = this.#files.get(name)
    if (before === undefined) return false
    return sizeBytes < before.sizeBytes || documents.length < before.documents.length
  }

  /** Whether an object of this file would no longer be in any file; files that aren't `known` don't count. */
  dropsObjects(name: string, result: DecodeResult, isKnown: (other: string) => boolean): boolean {
    const before = this.#files.get(name)?.documents ?? []
    const kept = new Set(mergeLastGood(before, result).map((document) => documentKey(document)))
    const dropped = before.map((document) => documentKey(document)).filter((key) => !kept.has(key))
    const isGiven = (key: string): boolean =>
      [...(this.#givers.get(key) ?? [])].some((other) => other !== name && isKnown(other))
    return dropped.some((key) => !isGiven(key))
  }

  /** Returns whether anything changed beside the file's metadata. */
  take(name: string, seen: Pick<TakenFile, 'fingerprint' | 'sizeBytes'>, content: FileContent): boolean {
    const before = this.#files.get(name)
    const { fingerprint, sizeBytes } = seen
    const { hash, result, isUnverified = false } = content
    if (before?.hash === hash) {
      this.#set(name, { ...before, fingerprint, sizeBytes })
      return false
    }
    const documents = mergeLastGood(before?.documents ?? [], result)
    const { problems } = result
    this.#set(name, { fingerprint, sizeBytes, hash, documents, problems })
    if (isUnverified) this.#unverified.add(name)
    else this.#unverified.delete(name)
    if (problems.length > 0) this.#problems.set(name, problems)
    else this.#problems.delete(name)
    this.#lists = this.#lists && before && replaceDocuments(this.#lists, before.documents, documents)
    return true
  }

  /** Returns whether it existed. */
  drop(name: string): boolean {
    this.#problems.delete(name)
    this.#unverified.delete(name)
    this.#lists = undefined
    this.#forget(name)
    return this.#files.delete(name)
  }

  #set(name: string, file: TakenFile): void {
    const before = this.#files.get(name)
    this.#files.set(name, file)
    if (before?.documents === file.documents) return
    this.#forget(name, before)
    for (const document of file.documents) {
      const key = documentKey(document)
      const givers = this.#givers.get(key)
      if (givers === undefined) this.#givers.set(key, new Set([name]))
      else givers.add(name)
    }
  }

  /** Its objects are no longer in it. */
  #forget(name: string, file = this.#files.get(name)): void {
    for (const document of file?.documents ?? []) {
      const key = documentKey(document)
      const givers = this.#givers.get(key)
      givers?.delete(name)
      if (givers?.size === 0) this.#givers.delete(key)
    }
  }
}

function inOrderOfNames<T>(byName: ReadonlyMap<string, T>): readonly T[] {
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value)
}

export function hasErrors(problems: readonly Problem[]): boolean {
  return problems.some((problem) => problem.severity === 'error')
}

/** Documents in their order, and the same by what they are. */
export interface DocumentLists extends ReturnType<typeof groupDocuments> {
  readonly all: readonly SourceDocument[]
}

export function listDocuments(all: readonly SourceDocument[]): DocumentLists {
  return { all, ...groupDocuments(all) }
}

/**
 * The lists with `after` in the place of `before`, which stand in them one after the other, without a look at the others;
 * undefined where these are not as many, or of other kinds.
 */
export function replaceDocuments(
  lists: DocumentLists,
  before: readonly SourceDocument[],
  after: readonly SourceDocument[],
): DocumentLists | undefined {
  const [was, is] = [listDocuments(before), listDocuments(after)]
  const all = replaceRun(lists.all, was.all, is.all)
  const pods = replaceRun(lists.pods, was.pods, is.pods)
  const objects = replaceRun(lists.objects, was.objects, is.objects)
  return all === undefined || pods === undefined || objects === undefined ? undefined : { all, pods, objects }
}

function replaceRun<T>(
  list: readonly T[],
  before: readonly T[],
  after: readonly T[],
): readonly T[] | undefined {
  if (before.length !== after.length) return undefined
  const [first] = before
  if (first === undefined) return list
  const at = list.indexOf(first)
  return at === -1 ? undefined : list.toSpliced(at, after.length, ...after)
}
