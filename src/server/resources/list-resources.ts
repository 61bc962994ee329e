import type { RoutedKind } from '../../api/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiResponse } from '../requests/api-request.ts'
import type { ResourceReader } from '../requests/readers.ts'
import { encodeContinuation } from './list-options.ts'
import type { ListOptions } from './list-options.ts'
import type { Representation } from './representation.ts'

/** The approximate size of the pieces in which a list is sent, in characters. */
const pieceBytes = 16 * 1024

/**
 * The requested list, or a chunk of `limit` objects. All chunks are of one revision. Throws ApiError Expired for a
 * forgotten revision, Timeout for a future one.
 */
export function listResources(
  kind: RoutedKind,
  reader: ResourceReader<ResourceObject>,
  options: ListOptions,
  form: Representation,
): ApiResponse {
  const { revision, objects } = objectsAsked(reader, options)
  const accepted = objects.filter((object) => options.accepts(object))
  const offset = options.continue?.offset ?? 0
  const end = offset + (options.limit ?? accepted.length)
  const remaining = accepted.length - end
  const metadata = {
    resourceVersion: String(revision),
    ...(remaining > 0 && { continue: encodeContinuation({ revision, offset: end }) }),
    ...(remaining > 0 && !options.hasSelector && { remainingItemCount: remaining }),
  }
  return {
    status: 200,
    contentType: 'application/json',
    body: listPieces(kind, metadata, accepted.slice(offset, end), form),
  }
}

function objectsAsked(
  reader: ResourceReader<ResourceObject>,
  { revision: wanted, match, continue: continuation }: ListOptions,
): { readonly revision: number; readonly objects: readonly ResourceObject[] } {
  if (continuation !== undefined) {
    const objects = reader.listAt(continuation.revision)
    if (objects !== undefined) return { revision: continuation.revision, objects }
    throw new ApiError(
      410,
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
    )
  }
  const { revision } = reader
  if (wanted !== undefined && wanted > revision) throw tooLarge(wanted, revision)
  if (match !== 'Exact' || wanted === undefined) return { revision, objects: reader.list() }
  const objects = reader.listAt(wanted)
  if (objects !== undefined) return { revision: wanted, objects }
  throw new ApiError(410, `too old resource version: ${wanted} (${revision})`)
}

function tooLarge(wanted: number, revision: number): ApiError {
  return new ApiError(
    504,
    `Timeout: Too large resource version: ${wanted}, current: ${revision}`,
    undefined,
    {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  )
}

/** Encoded as the client reads: a list is never in memory as a whole text. */
function* listPieces(
  kind: RoutedKind,
  metadata: object,
  items: readonly ResourceObject[],
  form: Representation,
): Generator<Uint8Array, void> {
  const { head, field } = form.listHead(kind, metadata)
  const encoder = new TextEncoder()
  let piece = `${JSON.stringify(head).slice(0, -1)},"${field}":[`
  for (const [index, item] of items.entries()) {
    piece += `${index === 0 ? '' : ','}${JSON.stringify(form.listItem(item))}`
    if (piece.length < pieceBytes) continue
    yield encoder.encode(piece)
    piece = ''
  }
  yield encoder.encode(`${piece}]}\n`)
}
