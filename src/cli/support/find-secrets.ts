import type { ResourceList } from '../../api/resource.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import type { ApiClient } from '../client/client.ts'
import type { StateFiles } from './bundle-sources.ts'
import { deadCodes } from './gather-status.ts'

/** The Secrets whose values are to be redacted. */
export type FoundSecrets =
  /** Those that are in no file; the files hold the others. */
  | { readonly kind: 'found'; readonly documents: readonly Json[] }
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * Asks the daemon for all Secrets, as not all of them need be on disk. Those of one that doesn't answer are known where
 * its files have them all.
 */
export async function findSecrets({
  client,
  persistSecrets,
  unread,
  signal,
}: {
  readonly client: ApiClient
  readonly persistSecrets: boolean
  readonly unread: StateFiles['unread']
  readonly signal: AbortSignal
}): Promise<FoundSecrets> {
  try {
    const list = await client.getList<ResourceList>('/api/v1/secrets', signal)
    const documents: Json = JSON.parse(JSON.stringify(list.items))
    return { kind: 'found', documents: [documents] }
  } catch (error) {
    signal.throwIfAborted()
    if (!deadCodes.includes(errorCode(error) ?? '')) return { kind: 'unknown', why: errorMessage(error) }
    if (!persistSecrets) return { kind: 'unknown', why: 'podd does not answer, and persistSecrets is false' }
    if (unread.length > 0)
      return { kind: 'unknown', why: `podd does not answer, and cannot be read: ${unread.join(', ')}` }
    return { kind: 'found', documents: [] }
  }
}
