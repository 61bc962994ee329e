import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, mayPass } from '../../base/errors.ts'
import { signatureSuffix } from '../../base/minisign.ts'
import { unreadable } from '../../pod/decode/decode-documents.ts'
import type { DecodeResult } from '../../pod/decode/decode-documents.ts'
import { errorAt } from '../../pod/objects/document.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { DecodeUnavailable } from '../decode-source.ts'
import { kustomizationFault } from '../kustomization.ts'
import { readUnchanged } from '../read-manifest-file.ts'
import type { FileContent as BuiltContent, FileLook } from '../read-manifest-file.ts'
import { longestRemovalMs } from '../source.ts'
import type { OtherFiles } from '../source.ts'
import { asSigned, givesAny, readSignature } from '../verify-manifest.ts'
import type { SourceOptions } from '../source.ts'
import { hasErrors } from './taken-files.ts'
import type { FileContent, TakenFiles } from './taken-files.ts'

/** A new file of up to so many bytes is read at each of its changes. */
const smallBytes = 16_384

/** The files that changed and aren't taken yet, by name: which are being read, and when each is due. */
export class PendingFiles {
  readonly files = new Map<string, PendingFile>()
  readonly #clock: Clock
  readonly #known: Pick<TakenFiles, 'has' | 'givesLess'>
  readonly #reading = new Set<string>()
  /** Monotonic time of the last change of a name in the directory. */
  #movedAtMs = -Infinity

  constructor(clock: Clock, known: Pick<TakenFiles, 'has' | 'givesLess'>) {
    this.#clock = clock
    this.#known = known
  }

  /** A name in the directory was added, removed or changed. */
  noteMove(): void {
    this.#movedAtMs = this.#clock.monotonicMs()
  }

  beginRead(name: string): void {
    this.#reading.add(name)
  }

  endRead(name: string): void {
    this.#reading.delete(name)
  }

  get readingCount(): number {
    return this.#reading.size
  }

  get isSettling(): boolean {
    return [...this.files.values()].some(({ failure }) => failure === undefined)
  }

  /** Whether podd itself is reading or decoding one, or will retry a read that the system can't do for now. */
  get isReading(): boolean {
    const nowMs = this.#clock.monotonicMs()
    if (this.#reading.size > 0) return true
    return [...this.files.values()].some(({ failure }) => holdsRemovals(failure, nowMs))
  }

  /** What is known of these files to one that is missing. */
  get state(): OtherFiles {
    if (this.isReading) return 'unknown'
    return this.files.size > 0 ? 'settling' : 'settled'
  }

  /** The files to read or take now. */
  due(): readonly (readonly [name: string, file: PendingFile])[] {
    return [...this.files].filter(
      ([name, file]) =>
        (this.waitMs(name, file) <= 0 || this.#mayBeReadEarly(name, file)) && !this.#reading.has(name),
    )
  }

  /** A small new file is read at once, since its content may show that it is whole; others are read once they are quiet. */
  #mayBeReadEarly(name: string, { look, read, failure }: PendingFile): boolean {
    const sizeBytes = sizeOf(look)
    const isSmall = sizeBytes > 0 && sizeBytes <= smallBytes
    return isSmall && read === undefined && failure === undefined && !this.#known.has(name)
  }

  /** Milliseconds until each file that isn't being read is due; Infinity where that depends on other files. */
  waitsMs(): readonly number[] {
    return [...this.files].flatMap(([name, file]) =>
      this.#reading.has(name) ? [] : [this.waitMs(name, file)],
    )
  }

  /** Milliseconds until a file is due; Infinity where that depends on other files. */
  waitMs(name: string, pending: PendingFile): number {
    const nowMs = this.#clock.monotonicMs()
    const ownMs = this.#ownWaitMs(name, pending, nowMs)
    if (pending.read?.dropsObjects !== true) return ownMs
    return Math.max(ownMs, this.#othersWaitMs(name, pending, nowMs))
  }

  /** A document that a file drops may be in another one that isn't decoded yet; podd's own reads are waited for. */
  #othersWaitMs(name: string, { changedAtMs }: PendingFile, nowMs: number): number {
    const unknown = [...this.files].filter(
      ([other, file]) =>
        other !== name && (file.read === undefined || this.#ownWaitMs(other, file, nowMs) > 0),
    )
    if (unknown.length === 0) return 0
    if (unknown.some(([other, { failure }]) => this.#reading.has(other) || holdsRemovals(failure, nowMs)))
      return Infinity
    return Math.max(0, changedAtMs + longestRemovalMs - nowMs)
  }

  #ownWaitMs(name: string, pending: PendingFile, nowMs: number): number {
    const { look, read, failure, isWrittenInPlace, changedAtMs } = pending
    if (failure !== undefined) return Math.max(0, failure.retryAtMs - nowMs)
    const sizeBytes = sizeOf(look)
    return computeSettleWait({
      sizeBytes,
      isWrittenInPlace,
      isNew: !this.#known.has(name),
      quietMs: nowMs - changedAtMs,
      directoryQuietMs: nowMs - this.#movedAtMs,
      ...(read !== undefined && {
        content: {
          hasErrors: hasErrors(read.result.problems),
          isUnverified: read.isUnverified === true,
          endsCleanly: read.endsCleanly,
          isBraced: read.isBraced,
          dropsObjects: read.dropsObjects,
          givesLess: this.#known.givesLess(name, sizeBytes, read.result),
        },
      }),
    })
  }
}

export interface ReadContent extends FileContent {
  readonly endsCleanly: boolean
  /** See isBraced. */
  readonly isBraced: boolean
}

/** A file that changed and isn't taken yet. */
export interface PendingFile {
  readonly look: Exclude<FileLook, { readonly kind: 'missing' }>
  readonly isWrittenInPlace: boolean
  /** Monotonic time of its last change. */
  readonly changedAtMs: number
  /** Why the system could not read or decode it, whatever its content. */
  readonly failure?: ReadFailure
  /** Its content, once it was read. */
  readonly read?: ReadContent & {
    readonly dropsObjects: boolean
    /** It was read before the file was quiet: whether it is still the same has to be seen before it is taken. */
    readonly isEarly: boolean
  }
}

export function sizeOf(look: PendingFile['look']): number {
  return look.kind === 'file' ? look.sizeBytes : 0
}

/** Quiet time after which a file that is written in place counts as written. */
export const settleMs = 5
/** The same for one that looks half-written. */
export const suspiciousMs = 400

/**
 * How long the directory has to be quiet before a file is taken that drops objects: they may be moving to another file,
 * as when two files are swapped by renames.
 */
export const movingMs = 250

/** The facts by which a file in the directory counts as whole. */
export interface FileFacts {
  readonly sizeBytes: number
  /** False where it came by a rename, which makes it whole at once. */
  readonly isWrittenInPlace: boolean
  /** No version of it was taken before. */
  readonly isNew: boolean
  /** Since its last change. */
  readonly quietMs: number
  /** Since the last change of any name in the directory. */
  readonly directoryQuietMs: number
  readonly content?: {
    readonly hasErrors: boolean
    /** It lacks a good signature, which may be about to come. */
    readonly isUnverified: boolean
    readonly endsCleanly: boolean
    /** See isBraced. */
    readonly isBraced: boolean
    /** Fewer bytes, or fewer objects, than the version before. */
    readonly givesLess: boolean
    /** An object of the version before is no longer in any file. */
    readonly dropsObjects: boolean
  }
}

/**
 * For how many milliseconds to wait before the file is taken; 0 for now. Node learns of writes from Linux but not of
 * closes, so a file that is written in place counts as whole after a short quiet time, and after a longer one when it
 * is empty, doesn't parse, ends in the middle of a line or at the end of a page, or gives less than before: as a file
 * does whose writer stopped halfway. A new file with JSON is taken as soon as it parses: no part of an object does, and
 * nothing of an earlier version can be in it. One without a good signature waits for that, whichever way it came. One that drops objects waits until nothing moves in the directory.
 */
export function computeSettleWait(facts: FileFacts): number {
  const movingWaitMs = facts.content?.dropsObjects === true ? movingMs - facts.directoryQuietMs : 0
  return Math.max(0, movingWaitMs, wholeWait(facts))
}

/** How long to wait until the file counts as whole. */
function wholeWait({ sizeBytes, isWrittenInPlace, isNew, quietMs, content }: FileFacts): number {
  if (content?.isUnverified === true) return suspiciousMs - quietMs
  if (!isWrittenInPlace && sizeBytes > 0) return 0
  if (isNew && content?.isBraced === true && !content.hasErrors) return 0
  const isSuspicious =
    sizeBytes === 0 ||
    (content !== undefined &&
      (content.hasErrors || content.givesLess || !content.endsCleanly || sizeBytes % 4096 === 0))
  return (isSuspicious ? suspiciousMs : settleMs) - quietMs
}

/** Milliseconds since a file changed, by its own timestamps, up to a bound. */
export function ageMs(look: FileLook, wallMs: number): number {
  if (look.kind !== 'file') return 0
  return Math.min(Math.max(wallMs - look.modifiedAtMs, 0), suspiciousMs)
}

/** Whether the last byte is one with which a complete manifest ends: a newline, or the brace of a JSON object. */
function endsCleanly(bytes: Uint8Array): boolean {
  const last = bytes.at(-1)
  return last === 0x0a || last === 0x7d
}

/** Whether a text begins and ends as a JSON object, but for spaces. */
export function isBraced(bytes: Uint8Array): boolean {
  const isSpace = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
  const first = bytes.find((byte) => !isSpace(byte))
  return first === 0x7b && bytes.findLast((byte) => !isSpace(byte)) === 0x7d
}

/**
 * The content of a file; undefined where it changed meanwhile. Throws what the system throws, and DecodeUnavailable.
 * @param known the earlier result of decoding content with this hash
 */
export async function readContent(
  path: string,
  look: PendingFile['look'],
  options: Pick<SourceOptions, 'decode' | 'verifier' | 'values' | 'fieldValidation'> & {
    /** What gives its content in the place of the file, of a kustomization. */
    readonly build?: (() => Promise<BuiltContent | undefined>) | undefined
  },
  known: (hash: string) => DecodeResult | undefined,
): Promise<ReadContent | undefined> {
  if (look.kind === 'unreadable') {
    if (look.error !== undefined) throw look.error
    const result = unreadable({ path }, look.reason)
    return { hash: look.reason, result, endsCleanly: true, isBraced: false }
  }
  if (options.build !== undefined) return await readBuilt(path, options.build, options, known)
  const content = await readUnchanged(path, look.fingerprint)
  if (content === undefined) return undefined
  const { bytes } = content
  const { decode, verifier, values, fieldValidation = 'Strict' } = options
  const verified = await verifier?.verify({
    content: bytes,
    id: path,
    name: path,
    signature: await readSignature(path),
    signaturePlace: `${path}${signatureSuffix}`,
  })
  if (verified !== undefined && 'message' in verified) {
    const problems = [errorAt(path, verified.message, verified.hint)]
    const result = { ...unreadable({ path }, verified.message), problems }
    // It is decoded once it has a signature, whatever its content.
    const hash = `${content.hash} ${verified.message}`
    return { hash, result, isUnverified: true, endsCleanly: true, isBraced: false }
  }
  // With other values the same text decodes differently.
  const { revision = 0 } = values ?? {}
  const hash = revision === 0 ? content.hash : `${content.hash} ${revision}`
  const result = known(hash) ?? asSigned(await decode(bytes, { path, fieldValidation }), verified)
  if (givesAny(result)) verified?.accept()
  return { hash, result, endsCleanly: endsCleanly(bytes), isBraced: isBraced(bytes) }
}

/** Lines of what a kustomization makes stand in no file. */
async function readBuilt(
  path: string,
  build: () => Promise<BuiltContent | undefined>,
  { decode, values, fieldValidation = 'Strict' }: Parameters<typeof readContent>[2],
  known: (hash: string) => DecodeResult | undefined,
): Promise<ReadContent | undefined> {
  try {
    const content = await build()
    if (content === undefined) return undefined
    const { revision = 0 } = values ?? {}
    const hash = revision === 0 ? content.hash : `${content.hash} ${revision}`
    const whenEmpty = 'makes nothing: what it gave before stays; delete it to end that'
    const options = { path, fieldValidation, whenEmpty }
    const result = known(hash) ?? placedIn(path, await decode(content.bytes, options))
    return { hash, result, endsCleanly: true, isBraced: false }
  } catch (error) {
    const fault = kustomizationFault(error)
    if (fault === undefined) throw error
    const result = {
      ...unreadable({ path }, fault.message),
      problems: [errorAt(path, fault.message, fault.hint)],
    }
    return { hash: fault.message, result, endsCleanly: true, isBraced: false }
  }
}

function placedIn(path: string, result: DecodeResult): DecodeResult {
  const place = { path }
  return {
    ...result,
    documents: result.documents.map((document) => ({ ...document, place })),
    problems: result.problems.map((problem) => ({ ...problem, place })),
  }
}

/** The first delay before a file is read again; it doubles each time. */
const firstRetryMs = 1000
const longestRetryMs = 30_000

/** Why the system could not read or decode a file, whatever its content. */
interface ReadFailure {
  readonly reason: string
  /** Whether it may succeed without a change; a permission error doesn't. */
  readonly mayPass: boolean
  /** Monotonic time of the first attempt that failed. */
  readonly sinceMs: number
  /** Monotonic time of the next attempt. */
  readonly retryAtMs: number
  readonly delayMs: number
}

/** How long failing reads delay removals: a shortage of resources is over by then. */
const longestHoldMs = 300_000

/** Whether documents that the file no longer gives must not be removed yet. */
export function holdsRemovals(failure: ReadFailure | undefined, nowMs: number): boolean {
  return failure?.mayPass === true && nowMs - failure.sinceMs < longestHoldMs
}

/** @param before the failure of the attempt before this one */
export function readFailure(error: unknown, before: ReadFailure | undefined, nowMs: number): ReadFailure {
  const delayMs = before === undefined ? firstRetryMs : Math.min(before.delayMs * 2, longestRetryMs)
  const code = errorCode(error)
  return {
    reason:
      error instanceof DecodeUnavailable ? error.message : `cannot be read: ${code ?? errorMessage(error)}`,
    mayPass: error instanceof DecodeUnavailable || mayPass(error),
    sinceMs: before?.sinceMs ?? nowMs,
    retryAtMs: nowMs + delayMs,
    delayMs,
  }
}

export function failureProblem(path: string, { reason }: ReadFailure): Problem {
  return errorAt(path, reason, 'podd retries.')
}
