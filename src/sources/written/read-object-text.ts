import { readFile } from 'node:fs/promises'
import { errorCode, errorMessage, mayPass } from '../../base/errors.ts'
import { lookAtFile } from '../read-manifest-file.ts'

export type ObjectText =
  | { readonly kind: 'text'; readonly text: string; readonly fingerprint: string }
  /** @see FileLook */
  | { readonly kind: 'unreadable'; readonly reason: string; readonly mayPass: boolean }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unchanged' }

/**
 * What stands in the file of an object. Never throws.
 * @param known the fingerprint of a file that need not be read again
 */
export async function readObjectText(path: string, known: string | undefined): Promise<ObjectText> {
  const look = await lookAtFile(path)
  if (look.kind === 'missing') return look
  const { fingerprint } = look
  if (look.kind === 'unreadable')
    return { kind: 'unreadable', reason: look.reason, mayPass: look.error !== undefined }
  if (fingerprint === known) return { kind: 'unchanged' }
  try {
    return { kind: 'text', text: await readFile(path, 'utf8'), fingerprint }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return { kind: 'missing' }
    const reason = `cannot be read: ${errorCode(error) ?? errorMessage(error)}`
    return { kind: 'unreadable', reason, mayPass: mayPass(error) }
  }
}
