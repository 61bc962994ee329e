import type { PullUpdate } from '../../api/images.ts'
import { PoddError } from '../../base/errors.ts'
import { WakeSlot } from '../../base/waits.ts'
import { ApiError, toStatusObject } from '../requests/api-error.ts'
import type { ImageStore } from '../requests/readers.ts'
import { jsonResponse } from '../requests/request.ts'
import { booleanParam, get, post, withPods } from '../requests/route.ts'
import type { ApiResponse } from '../requests/request.ts'
import type { Call, Route } from '../requests/route.ts'

export function imageRoutes(images: ImageStore): readonly Route[] {
  const collect = async ({ query, signal }: Call, imagesOnly: boolean): Promise<ApiResponse> => {
    const options = { dryRun: booleanParam(query, 'dryRun'), young: booleanParam(query, 'all'), imagesOnly }
    return jsonResponse(await images.collect(options, signal))
  }
  return [
    get('/podd/v1/images', async ({ query, signal }) =>
      jsonResponse(await images.listImages({ users: booleanParam(query, 'users') }, signal)),
    ),
    get('/podd/v1/images/archives', () => jsonResponse(images.listArchives())),
    post('/podd/v1/images/import', (call) => importImages(images, call)),
    post('/podd/v1/images/pull', (call) => pullImage(images, call)),
    get('/podd/v1/images/export', (call) => exportImages(images, call)),
    withPods(post('/podd/v1/images/remove', (call) => removeImage(images, call))),
    withPods(post('/podd/v1/images/prune', (call) => collect(call, true))),
    post('/podd/v1/images/pin', (call) => pinImage(images, call, true)),
    post('/podd/v1/images/unpin', (call) => pinImage(images, call, false)),
    withPods(post('/podd/v1/gc', (call) => collect(call, false))),
  ]
}

async function importImages(images: ImageStore, { query }: Call): Promise<ApiResponse> {
  const path = query.get('path')
  if (path === null || !path.startsWith('/')) {
    throw new ApiError(400, 'path must be the absolute path of an image archive on this host')
  }
  const pin = query.has('pin') ? booleanParam(query, 'pin') : true
  return jsonResponse({ images: await images.importImages(path, { pin }) })
}

function pullImage(images: ImageStore, call: Call): ApiResponse {
  const body = pullUpdates(images, imageParam(call), call.signal)
  return { status: 200, contentType: 'application/json', body, headFirst: true, mayWait: true }
}

/** Progress updates as fast as the client reads them: of those that arrive meanwhile only the newest is kept. */
async function* pullUpdates(
  images: ImageStore,
  image: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const slot = new WakeSlot()
  let next: PullUpdate | undefined
  const tell = (update: PullUpdate): void => {
    next = update
    slot.wake()
  }
  const onProgress: Parameters<ImageStore['pullImage']>[1] = ({ doneBytes, totalBytes }) =>
    tell({ kind: 'progress', doneBytes, ...(totalBytes !== undefined && { totalBytes }) })
  void images.pullImage(image, onProgress, signal).then(
    (pulled) => tell({ kind: 'pulled', ...pulled }),
    (error: unknown) => tell({ kind: 'failed', status: toStatusObject(error) }),
  )
  for (let isOver = false; !isOver;) {
    await slot.wait()
    const update = next
    next = undefined
    if (update === undefined) continue
    isOver = update.kind !== 'progress'
    yield Buffer.from(`${JSON.stringify(update)}\n`)
  }
}

function exportImages(images: ImageStore, { query, signal }: Call): ApiResponse {
  const names = query.getAll('image')
  if (names.length === 0 || names.includes('')) throw new ApiError(400, 'image must be the name of an image')
  const body = exportChunks(images, names, signal)
  return { status: 200, contentType: 'application/x-tar', body, mayWait: true }
}

async function* exportChunks(
  images: ImageStore,
  names: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* images.exportImages(names, signal)
  } catch (error) {
    throwApiError(error)
  }
}

async function removeImage(images: ImageStore, call: Call): Promise<ApiResponse> {
  const image = imageParam(call)
  const force = booleanParam(call.query, 'force')
  return jsonResponse(await images.removeImage(image, force, call.signal).catch(throwApiError))
}

async function pinImage(images: ImageStore, call: Call, pinned: boolean): Promise<ApiResponse> {
  await images.pinImage(imageParam(call), pinned).catch(throwApiError)
  return jsonResponse({})
}

function imageParam({ query }: Call): string {
  const image = query.get('image')
  if (image === null || image === '') throw new ApiError(400, 'image must be the name of an image')
  return image
}

function throwApiError(error: unknown): never {
  if (!(error instanceof PoddError)) throw error
  if (error.code === 'IMAGE_NOT_FOUND') throw new ApiError(404, error.message, error.hint)
  if (error.code === 'IMAGE_IN_USE' || error.code === 'IMAGE_PINNED')
    throw new ApiError(409, error.message, error.hint)
  throw error
}
