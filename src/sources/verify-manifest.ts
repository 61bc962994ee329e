/* The signatures of a source's manifests. What is verified is what is decoded: the bytes are read once. */
import { createHash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { errorCode, errorMessage, mayPass } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { parseSigningKey, signatureSuffix, verifySignature } from '../base/minisign.ts'
import type { Signed, SignatureFault, SigningKey } from '../base/minisign.ts'
import { readAtOnce } from '../base/read-bounded.ts'
import type { DecodeResult } from '../pod/decode/decode-documents.ts'
import { readSignatureTimes, writeSignatureTimes } from '../store/source-records.ts'
import type { SignedAt } from '../store/source-records.ts'
import type { SmallFile, StateReport } from '../store/state-report.ts'

/** The most that is read of a signature. */
const maxReadBytes = 64 * 1024

/** A later timestamp is a mistake, and would have all that is signed afterwards refused as older. */
const maxAheadMs = 24 * 3_600_000

/** What a source read. */
export interface UnverifiedManifest {
  readonly content: Uint8Array
  /** By which it is remembered: a path, or the name of a source whose answer it is. */
  readonly id: string
  /** Its path, whose last part the signature may name; also with the directories before it. */
  readonly name: string
  /** Undefined where there is none. */
  readonly signature: Uint8Array | undefined
  /** As messages show it. */
  readonly signaturePlace: string
}

/** What has a good signature. */
export interface VerifiedManifest {
  /** The key that has signed it. */
  readonly keyId: string
  /** Call it once the content was decoded well: then nothing older is taken any more. */
  readonly accept: () => void
}

/**
 * Verifies what a source reads, before it is decoded. A signature must be newer than the newest one that was accepted of the
 * same manifest, and of the same source under the same signed file name; or be of the same content. A source is known by its
 * name and by its location, so that neither a new name nor a new location makes it forget.
 */
export class ManifestVerifier {
  readonly #source: string
  readonly #location: string
  readonly #keys: readonly SigningKey[]
  readonly #accepted: AcceptedSignatures
  readonly #clock: Clock

  /**
   * @param source.location its directory, or its URL without what may be secret
   * @param keys each as in a `.pub` file of minisign
   */
  constructor(
    source: { readonly name: string; readonly location: string },
    keys: readonly string[],
    accepted: AcceptedSignatures,
    clock: Clock,
  ) {
    this.#source = source.name
    this.#location = source.location
    this.#keys = readKeys(keys)
    this.#accepted = accepted
    this.#clock = clock
  }

  /** Resolves with why the content isn't taken, where it isn't. */
  async verify(manifest: UnverifiedManifest): Promise<SignatureFault | VerifiedManifest> {
    const { id, content, signaturePlace } = manifest
    const signed = judgeSignature(manifest, this.#keys, this.#clock.wallMs())
    if ('message' in signed)
      return { ...signed, message: `is not taken: the signature ${signaturePlace} ${signed.message}` }
    const { keyId, timestamp, file } = signed
    // An older one must not come back under another path of the same name.
    const known = [this.#source, this.#location]
    const own = id === this.#source ? known : [id]
    const places = file === undefined ? own : [...own, ...known.map((each) => `${each} ${file}`)]
    const at = { timestamp, digest: createHash('sha256').update(content).digest('hex') }
    const newest = await this.#accepted.findNewer(places, at, this.#keys)
    if (newest === undefined)
      return { keyId, accept: () => places.forEach((place) => this.#accepted.accept(place, keyId, at)) }
    if ('message' in newest) return newest
    const isOlder = timestamp < newest.timestamp
    const relation = isOlder ? 'older than' : 'not newer than, and of other content than,'
    return {
      message: `is not taken: the signature ${signaturePlace} is of ${showSeconds(timestamp)}, ${relation} the last one that was accepted (${showSeconds(newest.timestamp)})`,
      hint: `to go back to an older manifest, sign it again; two files of one name need the directory in what is signed: -t "timestamp:$(date +%s) file:DIRECTORY/NAME"`,
    }
  }

  /** See AcceptedSignatures. */
  async flush(): Promise<void> {
    await this.#accepted.flush()
  }
}

/** What was decoded of a content, with the key that has signed it; undefined where it need not be signed. */
export function asSigned(result: DecodeResult, verified: VerifiedManifest | undefined): DecodeResult {
  if (verified === undefined) return result
  const { keyId: signedBy } = verified
  return { ...result, documents: result.documents.map((document) => ({ ...document, signedBy })) }
}

/** Whether something was taken of a content: of one that holds nothing but errors, nothing was. */
export function givesAny({ documents, problems }: DecodeResult): boolean {
  return documents.length > 0 || problems.every(({ severity }) => severity !== 'error')
}

/** Those that are keys: the config has no others. */
export function readKeys(texts: readonly string[]): readonly SigningKey[] {
  return texts.map((text) => parseSigningKey(text)).filter((key) => key !== undefined)
}

/** Whether a content has a good signature, whatever was accepted before. */
export function judgeSignature(
  { content, name, signature }: Pick<UnverifiedManifest, 'content' | 'name' | 'signature'>,
  keys: readonly SigningKey[],
  nowMs: number,
):
  | SignatureFault
  | (Pick<Signed, 'keyId'> & { readonly timestamp: number; readonly file: string | undefined }) {
  if (signature === undefined)
    return {
      message: 'is missing',
      hint: `sign the manifest, and put both there: minisign -Sm ${lastPart(name)}`,
    }
  const signed = verifySignature(content, signature, keys)
  if ('message' in signed) return signed
  const { timestamp, expires, file } = signed.trustedComment
  if (timestamp === undefined)
    return {
      message: 'has no timestamp in its trusted comment',
      hint: 'sign without -t, or with "timestamp:SECONDS" in it: -t "timestamp:$(date +%s)"',
    }
  const shortName = lastPart(name)
  // One that names directories, too, must be the end of the path.
  if (file !== undefined && shortName !== '' && !`/${name}`.endsWith(`/${file}`))
    return {
      message: `is for a file named ${file}`,
      hint: `sign it under the name ${shortName}, or with -t "timestamp:$(date +%s)", which names no file`,
    }
  if (timestamp * 1000 > nowMs + maxAheadMs)
    return {
      message: `is of ${showSeconds(timestamp)}, more than a day ahead of this host's clock (${showSeconds(Math.floor(nowMs / 1000))})`,
      hint: 'sign it with seconds, not milliseconds, as minisign does by itself; or is the clock of this host wrong?',
    }
  if (expires === 'unreadable')
    return {
      message: 'has an end in its trusted comment that cannot be read',
      hint: 'write it in seconds, once, with one space between the fields: -t "timestamp:$(date +%s) expires:$(date -d \'30 days\' +%s)"',
    }
  if (expires !== undefined && expires * 1000 <= nowMs)
    return {
      message: `has expired at ${showSeconds(expires)}`,
      hint: 'sign the manifest again; or is the clock of this host wrong?',
    }
  return { keyId: signed.keyId, timestamp, file }
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function showSeconds(seconds: number): string {
  const date = new Date(seconds * 1000)
  return Number.isNaN(date.getTime()) ? `second ${seconds}` : date.toISOString().replace('.000Z', 'Z')
}

/** The signature beside a file; undefined where there is none. Throws the system's errors that may go away by themselves. */
export async function readSignature(path: string): Promise<Uint8Array | undefined> {
  try {
    return await readAtOnce(`${path}${signatureSuffix}`, maxReadBytes)
  } catch (error) {
    if (mayPass(error)) throw error
    return errorCode(error) === 'ENOENT' ? undefined : new Uint8Array()
  }
}

/** The URL of the signature of what a URL answers; `unix:` URLs too. The suffix never becomes part of the host. */
export function signatureUrl(url: string): string {
  const whole = url.startsWith('unix:') ? url : new URL(url).href
  const [, place = '', rest = ''] = /^([^?#]*)(.*)$/su.exec(whole) ?? []
  return `${place}${signatureSuffix}${rest}`
}

/** The path of a URL, with what it escapes. */
export function pathInUrl({ pathname }: URL): string {
  try {
    return decodeURIComponent(pathname)
  } catch {
    // It has a percent sign that escapes nothing.
    return pathname
  }
}

/** How many manifests are remembered; beyond that, of the one that changed longest ago the timestamp alone. */
const maxRemembered = 10_000

/**
 * The newest timestamp that was accepted of each manifest and key, so that nobody can have an older manifest run again. It
 * is kept on disk, in the background, and outlives the manifest. What a key has signed counts only as long as it is trusted.
 */
export class AcceptedSignatures {
  readonly #file: SmallFile
  readonly #report: StateReport
  readonly #logger: Logger
  readonly #signed = new Map<string, Readonly<Record<string, SignedAt>>>()
  #forgotten: Readonly<Record<string, SignedAt>> = {}
  #loading: Promise<void> | undefined
  #isWritten = true
  #writing: Promise<void> | undefined

  constructor(
    file: SmallFile,
    { report, logger }: { readonly report: StateReport; readonly logger: Logger },
  ) {
    this.#file = file
    this.#report = report
    this.#logger = logger
  }

  /**
   * Resolves with one that was accepted at one of these places, where that is newer, or as new and of other content; with a
   * fault where the record can't be read for now.
   */
  async findNewer(
    places: readonly string[],
    { timestamp, digest }: SignedAt,
    trusted: readonly SigningKey[],
  ): Promise<SignedAt | SignatureFault | undefined> {
    try {
      this.#loading ??= this.#load()
      await this.#loading
    } catch (error) {
      this.#loading = undefined
      return {
        message: `is not taken: which signatures were accepted before cannot be read from ${this.#file.path}: ${errorMessage(error)}`,
        hint: 'podd tries again.',
      }
    }
    const known = places.flatMap((place) => {
      const times = this.#signed.get(place) ?? this.#forgotten
      return trusted.flatMap(({ id }) => times[id] ?? [])
    })
    return known
      .toSorted((a, b) => b.timestamp - a.timestamp)
      .find(
        (one) =>
          one.timestamp > timestamp ||
          (one.timestamp === timestamp && one.digest !== undefined && one.digest !== digest),
      )
  }

  /** Remembers it, unless a newer one was accepted meanwhile. Call it after `findNewer`. */
  accept(place: string, keyId: string, at: SignedAt): void {
    const before = this.#signed.get(place)
    const known = (before ?? this.#forgotten)[keyId]
    if (known !== undefined && known.timestamp > at.timestamp) return
    if (before === undefined || known?.timestamp !== at.timestamp || known.digest !== at.digest) {
      this.#signed.delete(place)
      this.#signed.set(place, { ...(before ?? this.#forgotten), [keyId]: at })
      this.#forgetOldest()
      this.#isWritten = false
    }
    if (!this.#isWritten) this.#writing ??= this.#write()
  }

  /** Resolves when what was accepted is on the disk, or could not be written. */
  async flush(): Promise<void> {
    await this.#writing
  }

  async #load(): Promise<void> {
    const { signed, forgotten } = await readSignatureTimes(this.#file, this.#report)
    for (const [place, times] of signed) this.#signed.set(place, times)
    this.#forgotten = forgotten
  }

  #forgetOldest(): void {
    const [oldest] = this.#signed
    if (oldest === undefined || this.#signed.size <= maxRemembered) return
    const [place, times] = oldest
    this.#signed.delete(place)
    const newest = Object.entries(times).map(
      ([id, { timestamp }]) =>
        [id, { timestamp: Math.max(timestamp, this.#forgotten[id]?.timestamp ?? 0) }] as const,
    )
    this.#forgotten = { ...this.#forgotten, ...Object.fromEntries(newest) }
  }

  async #write(): Promise<void> {
    // Those that are accepted at the same time share one write.
    await Promise.resolve()
    try {
      while (!this.#isWritten) {
        this.#isWritten = true
        await writeSignatureTimes(this.#file, { signed: this.#signed, forgotten: this.#forgotten })
      }
    } catch (error) {
      // The next signature that is accepted writes it again.
      this.#isWritten = false
      this.#logger.error(
        { path: this.#file.path, err: error },
        'cannot remember which signatures were accepted',
      )
    }
    this.#writing = undefined
  }
}
