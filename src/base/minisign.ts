/* Detached signatures as minisign makes them (https://jedisct1.github.io/minisign/, "Signature format"). */
import { createHash, createPublicKey, verify } from 'node:crypto'

/** What is added to the name of a file, or to the path of a URL, for its signature. */
export const signatureSuffix = '.minisig'

/** The longest signature that is read, in bytes: minisign's comments have 8 KiB at most. */
const maxSignatureBytes = 32 * 1024

/** A public key of minisign. */
export interface SigningKey {
  /** As minisign shows it: 16 hexadecimal digits. */
  readonly id: string
  /** Ed25519, 32 bytes. */
  readonly bytes: Uint8Array
}

/** A signature file taken apart. Comments are bytes in Latin-1, so that each text stands for the bytes that were signed. */
interface SignatureFile {
  readonly keyId: string
  /** Whether the BLAKE2b-512 of the content was signed, or the content itself (minisign before 0.10, or `-l`). */
  readonly isPrehashed: boolean
  readonly signature: Uint8Array
  readonly trustedComment: string
  /** Of the signature and the trusted comment. */
  readonly globalSignature: Uint8Array
}

/** What a good signature says about the content. */
export interface Signed {
  readonly keyId: string
  readonly trustedComment: TrustedComment
}

/** The known fields of a trusted comment. minisign writes `timestamp` and `file`; `expires` is podd's. */
export interface TrustedComment {
  /** Seconds since 1970. */
  readonly timestamp: number | undefined
  /** Seconds since 1970. */
  readonly expires: number | 'unreadable' | undefined
  readonly file: string | undefined
}

/** Why a signature is refused, and what to do about it. */
export interface SignatureFault {
  readonly message: string
  readonly hint?: string
}

/** The public key in the text of a `.pub` file, or in its second line alone; undefined where there is none. */
export function parseSigningKey(text: string): SigningKey | undefined {
  const lines = text.trim().split(/\r?\n/u)
  const [line = ''] = lines.slice(lines[0]?.startsWith('untrusted comment:') === true ? 1 : 0)
  const bytes = fromBase64(line, 42)
  // The key's algorithm is the same for both kinds of signatures.
  return bytes === undefined || algorithmOf(bytes) !== 'Ed'
    ? undefined
    : { id: keyIdOf(bytes), bytes: bytes.subarray(10) }
}

/** Whether one of the keys signed exactly these bytes, and the trusted comment of the signature. */
export function verifySignature(
  content: Uint8Array,
  signatureFile: Uint8Array,
  keys: readonly SigningKey[],
): Signed | SignatureFault {
  const file = parseSignatureFile(signatureFile)
  if (file === undefined)
    return { message: 'is no signature of minisign', hint: 'sign the manifest with minisign -S' }
  const key = keys.find(({ id }) => id === file.keyId)
  if (key === undefined) {
    const known = keys.map(({ id }) => id).join(', ')
    return {
      message: `is of the key ${file.keyId}, which is not trusted here (${known})`,
      hint: 'sign with a trusted key, or add the public key to verify.keys of the source',
    }
  }
  const publicKey = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(key.bytes).toString('base64url') },
    format: 'jwk',
  })
  const signed = file.isPrehashed ? createHash('blake2b512').update(content).digest() : content
  if (!verify(undefined, signed, publicKey, file.signature))
    return {
      message: 'does not belong to this content: one of both was changed, or is of another version',
      hint: 'sign this content, and put it and its signature there together',
    }
  const global = Buffer.concat([file.signature, Buffer.from(file.trustedComment, 'latin1')])
  if (!verify(undefined, global, publicKey, file.globalSignature))
    return { message: 'has a trusted comment that was changed', hint: 'sign the manifest again' }
  return { keyId: key.id, trustedComment: parseTrustedComment(file.trustedComment) }
}

function parseSignatureFile(bytes: Uint8Array): SignatureFile | undefined {
  if (bytes.byteLength > maxSignatureBytes) return undefined
  const lines = Buffer.from(bytes)
    .toString('latin1')
    .replace(/\r?\n$/u, '')
    .split('\n')
  const [untrusted = '', signed = '', trusted = '', global = ''] = lines.map((line) =>
    line.endsWith('\r') ? line.slice(0, -1) : line,
  )
  if (lines.length !== 4 || !untrusted.startsWith('untrusted comment:')) return undefined
  const head = 'trusted comment: '
  const signature = fromBase64(signed, 74)
  const globalSignature = fromBase64(global, 64)
  if (signature === undefined || globalSignature === undefined || !trusted.startsWith(head)) return undefined
  const algorithm = algorithmOf(signature)
  if (algorithm !== 'Ed' && algorithm !== 'ED') return undefined
  return {
    keyId: keyIdOf(signature),
    isPrehashed: algorithm === 'ED',
    signature: signature.subarray(10),
    trustedComment: trusted.slice(head.length),
    globalSignature,
  }
}

/** Tabs stand between the fields of minisign's own comment, and spaces may in one that was given with `-t`. */
function parseTrustedComment(comment: string): TrustedComment {
  const fields = comment.split(comment.includes('\t') ? '\t' : ' ')
  const valueOf = (name: string): string | undefined =>
    fields.find((field) => field.startsWith(`${name}:`))?.slice(name.length + 1)
  const file = valueOf('file')
  return {
    timestamp: parseSeconds(valueOf('timestamp')),
    expires: parseExpires(comment, valueOf('expires')),
    file: file === undefined ? undefined : Buffer.from(file, 'latin1').toString('utf8'),
  }
}

/** Whoever wrote of an end meant one, in whichever form. Milliseconds have more digits. */
function parseExpires(comment: string, value: string | undefined): TrustedComment['expires'] {
  const mentions = comment.match(/(?:^|\s)expires\s*[:=]/giu) ?? []
  if (mentions.length === 0) return undefined
  const seconds = /^\d{1,11}$/u.test(value ?? '') ? parseSeconds(value) : undefined
  return mentions.length > 1 ? 'unreadable' : (seconds ?? 'unreadable')
}

function parseSeconds(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/u.test(text) ? Number(text) : undefined
}

/** Undefined where it is no base64 of so many bytes. */
function fromBase64(text: string, sizeBytes: number): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/u.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  return bytes.byteLength === sizeBytes ? bytes : undefined
}

function algorithmOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, 2)).toString('latin1')
}

/** The eight bytes behind the algorithm, which minisign shows as one number. */
function keyIdOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(2, 10).toReversed()).toString('hex').toUpperCase()
}
