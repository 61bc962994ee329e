/* The signatures of a source's manifests. What is verified is what is decoded: the bytes are read once. */
import type { Clock } from '../base/clock.ts'
import { errorCode, mayPass } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { parseSigningKey, signatureSuffix, verifySignature } from '../base/minisign.ts'
import type { Signed, SignatureFault, SigningKey } from '../base/minisign.ts'
import { readAtOnce } from '../base/read-bounded.ts'
import { readSignatureTimes, writeSignatureTimes } from '../store/source-records.ts'
import type { SmallFile, StateReport } from '../store/state-report.ts'

/** The most that is read of a signature. */
const maxReadBytes = 64 * 1024

/** A later timestamp is a mistake, and would have all that is signed afterwards refused as older. */
const mostAheadMs = 24 * 3_600_000

/** What a source read. */
export interface UnverifiedManifest {
  readonly content: Uint8Array
  /** By which it is remembered: a path, or a URL. */
  readonly id: string
  /** The last part of its place, which the signature may name. */
  readonly name: string
  /** Undefined where there is none. */
  readonly signature: Uint8Array | undefined
  /** As messages show it. */
  readonly signaturePlace: string
}

/**
 * Verifies what a source reads, before it is decoded. A signature must be at least as new as the newest one that was
 * accepted of the same manifest.
 */
export class ManifestVerifier {
  readonly #keys: readonly SigningKey[]
  readonly #accepted: AcceptedSignatures
  readonly #clock: Clock

  /** @param keys each as in a `.pub` file of minisign */
  constructor(keys: readonly string[], accepted: AcceptedSignatures, clock: Clock) {
    this.#keys = readKeys(keys)
    this.#accepted = accepted
    this.#clock = clock
  }

  /** Resolves with why the content isn't taken, or with undefined where it is, and its timestamp is remembered. */
  async verify(manifest: UnverifiedManifest): Promise<SignatureFault | undefined> {
    const { id, signaturePlace } = manifest
    const signed = judgeSignature(manifest, this.#keys, this.#clock.wallMs())
    if ('message' in signed)
      return { ...signed, message: `is not taken: the signature ${signaturePlace} ${signed.message}` }
    const newest = await this.#accepted.accept(id, signed, this.#keys)
    if (newest === undefined) return undefined
    return {
      message: `is not taken: the signature ${signaturePlace} is of ${showSeconds(signed.timestamp)}, older than the last one that was accepted (${showSeconds(newest)})`,
      hint: 'to go back to an older manifest, sign it again',
    }
  }

  /** See AcceptedSignatures. */
  async flush(): Promise<void> {
    await this.#accepted.flush()
  }
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
): SignatureFault | (Pick<Signed, 'keyId'> & { readonly timestamp: number }) {
  if (signature === undefined)
    return { message: 'is missing', hint: `sign the manifest, and put both there: minisign -Sm ${name}` }
  const signed = verifySignature(content, signature, keys)
  if ('message' in signed) return signed
  const { timestamp, expires, file } = signed.trustedComment
  if (timestamp === undefined)
    return {
      message: 'has no timestamp in its trusted comment',
      hint: 'sign without -t, or with "timestamp:SECONDS" in it: -t "timestamp:$(date +%s)"',
    }
  if (file !== undefined && name !== '' && file !== name)
    return {
      message: `is for a file named ${file}`,
      hint: `sign it under the name ${name}, or with -t "timestamp:$(date +%s)", which names no file`,
    }
  if (timestamp * 1000 > nowMs + mostAheadMs)
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
  return { keyId: signed.keyId, timestamp }
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

/** The last part of a URL's path. */
export function nameInUrl({ pathname }: URL): string {
  const name = pathname.slice(pathname.lastIndexOf('/') + 1)
  try {
    return decodeURIComponent(name)
  } catch {
    // It has a percent sign that escapes nothing.
    return name
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
  readonly #signed = new Map<string, Readonly<Record<string, number>>>()
  #forgotten: Readonly<Record<string, number>> = {}
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

  /** Resolves with the newest timestamp that was accepted, where this one is older; else remembers it. */
  async accept(
    id: string,
    { keyId, timestamp }: Pick<Signed, 'keyId'> & { readonly timestamp: number },
    trusted: readonly SigningKey[],
  ): Promise<number | undefined> {
    this.#loading ??= this.#load()
    await this.#loading
    const before = this.#signed.get(id)
    const known = before ?? this.#forgotten
    const newest = Math.max(...trusted.map((key) => known[key.id] ?? 0))
    if (timestamp < newest) return newest
    if (before?.[keyId] !== timestamp) {
      this.#signed.delete(id)
      this.#signed.set(id, { ...known, [keyId]: timestamp })
      this.#forgetOldest()
      this.#isWritten = false
    }
    if (!this.#isWritten) this.#writing ??= this.#write()
    return undefined
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
      ([id, seconds]) => [id, Math.max(seconds, this.#forgotten[id] ?? 0)] as const,
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
