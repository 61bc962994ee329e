import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** A key pair of minisign, and what it signs, without the program. */
export interface Signer {
  /** The second line of its `.pub` file. */
  readonly publicKey: string
  /** The text of a signature file; by default of a prehashed one, and as of `timestamp`. */
  sign(content: string, options?: { timestamp?: number; comment?: string; isPrehashed?: boolean }): string
}

export function makeSigner(): Signer {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const id = randomBytes(8)
  const { x = '' } = publicKey.export({ format: 'jwk' })
  const encode = (...parts: readonly Uint8Array[]): string => Buffer.concat(parts).toString('base64')
  return {
    publicKey: encode(Buffer.from('Ed'), id, Buffer.from(x, 'base64url')),
    sign(content, { timestamp = 1, comment = `timestamp:${timestamp}`, isPrehashed = true } = {}) {
      const bytes = Buffer.from(content)
      const signed = isPrehashed ? createHash('blake2b512').update(bytes).digest() : bytes
      const signature = sign(undefined, signed, privateKey)
      const global = sign(undefined, Buffer.concat([signature, Buffer.from(comment)]), privateKey)
      const lines = [
        'untrusted comment: signature of a test',
        encode(Buffer.from(isPrehashed ? 'ED' : 'Ed'), id, signature),
        `trusted comment: ${comment}`,
        encode(global),
      ]
      return `${lines.join('\n')}\n`
    },
  }
}
