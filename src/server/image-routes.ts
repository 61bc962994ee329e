import { PoddError } from '../base/errors.ts'
import { ApiError } from './requests/api-error.ts'
import { jsonResponse } from './requests/api-request.ts'
import type { ApiResponse } from './requests/api-request.ts'
import { booleanParam } from './requests/query.ts'
import type { ImageStore } from './requests/readers.ts'
import type { Call, Route } from './requests/route.ts'

/** The runtime's images. */
export function imageRoutes(images: ImageStore): readonly Route[] {
  return [
    {
      method: 'GET',
      pattern: '/podd/v1/images',
      handle: async () => jsonResponse(await images.listImages()),
    },
    {
      method: 'GET',
      pattern: '/podd/v1/images/archives',
      handle: () => jsonResponse(images.listArchives()),
    },
    { method: 'POST', pattern: '/podd/v1/images/import', handle: (call) => importImages(images, call) },
    { method: 'POST', pattern: '/podd/v1/images/pin', handle: (call) => pinImage(images, call, true) },
    { method: 'POST', pattern: '/podd/v1/images/unpin', handle: (call) => pinImage(images, call, false) },
    {
      method: 'POST',
      pattern: '/podd/v1/gc',
      needsPods: true,
      handle: async ({ query, signal }) => {
        const options = { dryRun: booleanParam(query, 'dryRun'), young: booleanParam(query, 'all') }
        return jsonResponse(await images.collect(options, signal))
      },
    },
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

async function pinImage(images: ImageStore, { query }: Call, pinned: boolean): Promise<ApiResponse> {
  const image = query.get('image')
  if (image === null || image === '') throw new ApiError(400, 'image must be the name of an image')
  try {
    await images.pinImage(image, pinned)
  } catch (error) {
    if (!(error instanceof PoddError) || error.code !== 'IMAGE_NOT_FOUND') throw error
    throw new ApiError(404, error.message, error.hint)
  }
  return jsonResponse({})
}
