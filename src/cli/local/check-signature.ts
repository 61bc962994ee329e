import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { isSourceUrl, parseSourceUrl, showUrl } from '../../base/http.ts'
import { parseSigningKey, signatureSuffix } from '../../base/minisign.ts'
import type { SignatureFault, SigningKey } from '../../base/minisign.ts'
import {
  judgeSignature,
  pathInUrl,
  readKeys,
  readSignature,
  signatureUrl,
} from '../../sources/verify-manifest.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { VerbContext } from '../arguments/verb.ts'
import { loadConfig } from './load-config.ts'
import { readUrl } from './read-url.ts'

/** Resolves with why the content of a file or a URL has no good signature; undefined where it has one. */
export type CheckSignature = (path: string, content: Uint8Array) => Promise<SignatureFault | undefined>

/**
 * Checks manifests as a source with `verify` does, but for how new they are, which only the daemon remembers: by the keys of
 * `--key`, or by those of all sources in the config. Throws UsageError, and what reading the config throws.
 */
export async function createCheckSignature(context: VerbContext): Promise<CheckSignature> {
  const given = context.args.values('key')
  const keys = given.length === 0 ? await keysOfConfig(context) : await Promise.all(given.map(readKey))
  return async (path, content) => {
    if (path === '-') throw new UsageError('standard input has no signature: name a file or a URL')
    const isUrl = isSourceUrl(path)
    const place = isUrl ? showUrl(signatureUrl(path)) : `${path}${signatureSuffix}`
    const name = isUrl ? pathInUrl(parseSourceUrl(path).url) : resolve(path)
    try {
      const signature = isUrl ? await readUrl(signatureUrl(path), context) : await readSignature(path)
      const signed = judgeSignature({ content, name, signature }, keys, context.clock.wallMs())
      return 'message' in signed
        ? { ...signed, message: `the signature ${place} ${signed.message}` }
        : undefined
    } catch (error) {
      context.signal.throwIfAborted()
      return { message: `the signature ${place} cannot be read: ${errorMessage(error)}` }
    }
  }
}

async function keysOfConfig(context: VerbContext): Promise<readonly SigningKey[]> {
  const { config } = await loadConfig(context)
  const keys = config.sources.flatMap(({ verify }) => verify?.keys ?? [])
  if (keys.length > 0) return readKeys(keys)
  throw new UsageError('no source in the config has verify.keys', 'name the key: --key FILE.pub')
}

/** Throws UsageError. */
async function readKey(given: string): Promise<SigningKey> {
  const key = parseSigningKey(given) ?? parseSigningKey(await readText(given))
  if (key === undefined) throw new UsageError(`--key ${given}: this file has no public key of minisign`)
  return key
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const message = `--key ${path} is no public key of minisign, nor a file with one: ${errorMessage(error)}`
    throw new PoddError('UNREADABLE', message, { cause: error })
  }
}
