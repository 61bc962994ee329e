import type { Json, JsonObject } from '../../base/json.ts'
import { jsonPatch, mergePatch, PatchError, strategicMerge } from '../../decide/writing/patch.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiRequest } from '../requests/api-request.ts'
import { asObject, contentTypeOf, parseJson, unknownFormat } from '../requests/read-object.ts'

type Patch = (current: JsonObject, patch: Json) => Json

const patches: Readonly<Record<string, Patch>> = {
  'application/json-patch+json': jsonPatch,
  'application/merge-patch+json': mergePatch,
  'application/strategic-merge-patch+json': strategicMerge,
}

/** Applies a patch to an object. Throws ApiError UnsupportedMediaType, BadRequest. */
export async function readPatch(request: ApiRequest): Promise<(current: JsonObject) => JsonObject> {
  const type = contentTypeOf(request)
  const apply = Object.hasOwn(patches, type) ? patches[type] : undefined
  if (apply === undefined) throw unknownFormat(Object.keys(patches))
  const patch = parseJson(await request.readBody())
  if (apply === jsonPatch && !Array.isArray(patch))
    throw new ApiError(400, 'error decoding patch: a JSON patch must be a list of operations')
  return (current) => {
    try {
      return asObject(apply(current, patch))
    } catch (error) {
      if (error instanceof PatchError) throw new ApiError(422, error.message)
      throw error
    }
  }
}
