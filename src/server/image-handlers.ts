import type { ServerResponse } from 'node:http'
import { PoddError } from '../base/errors.ts'
import { ApiError } from './api-error.ts'
import { booleanParam } from './query.ts'
import type { ImageStore } from './readers.ts'
import { respondJson } from './respond.ts'

interface ImageCall {
  readonly readers: { readonly images: ImageStore }
  readonly response: ServerResponse
  readonly query: URLSearchParams
  readonly signal: AbortSignal
}

interface ImageRoute {
  readonly method: 'GET' | 'POST'
  readonly pattern: string
  readonly isUrgent?: true
  handle(call: ImageCall): void | Promise<void>
}

/** Routes to the runtime's images; src/api/routes.ts tells of them in words. */
export const imageRoutes: readonly ImageRoute[] = [
  {
    method: 'GET',
    pattern: '/podd/v1/images',
    isUrgent: true,
    handle: async ({ readers, response }) => respondJson(response, await readers.images.listImages()),
  },
  {
    method: 'GET',
    pattern: '/podd/v1/images/archives',
    isUrgent: true,
    handle: ({ readers, response }) => respondJson(response, readers.images.listArchives()),
  },
  { method: 'POST', pattern: '/podd/v1/images/import', isUrgent: true, handle: importImages },
  { method: 'POST', pattern: '/podd/v1/images/pin', isUrgent: true, handle: (call) => pinImage(call, true) },
  {
    method: 'POST',
    pattern: '/podd/v1/images/unpin',
    isUrgent: true,
    handle: (call) => pinImage(call, false),
  },
]

async function importImages({ query, readers, response }: ImageCall): Promise<void> {
  const path = query.get('path')
  if (path === null || !path.startsWith('/')) {
    throw new ApiError(400, 'path must be the absolute path of an image archive on this host')
  }
  const pin = query.has('pin') ? booleanParam(query, 'pin') : true
  respondJson(response, { images: await readers.images.importImages(path, { pin }) })
}

async function pinImage({ query, readers, response }: ImageCall, pinned: boolean): Promise<void> {
  const image = query.get('image')
  if (image === null || image === '') throw new ApiError(400, 'image must be the name of an image')
  try {
    await readers.images.pinImage(image, pinned)
  } catch (error) {
    if (!(error instanceof PoddError) || error.code !== 'IMAGE_NOT_FOUND') throw error
    throw new ApiError(404, error.message, error.hint)
  }
  respondJson(response, {})
}
