import { errorMessage } from '../../base/errors.ts'
import { isJsonObject, parseJson } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { findDuplicateFields, readYamlDocuments } from '../../pod/decode/read-documents.ts'
import { ApiError } from './api-error.ts'
import type { ApiRequest } from './request.ts'

const json = 'application/json'
const yaml = 'application/yaml'
const protobuf = 'application/vnd.kubernetes.protobuf'

/** The media type of a request's body, without its parameters; JSON by default. */
export function contentTypeOf({ headers }: ApiRequest): string {
  const [type = ''] = (headers['content-type'] ?? '').split(';')
  return type.trim().toLowerCase() || json
}

/** The object that a client sent; undefined for an empty body. Throws ApiError. */
export async function readObject(request: ApiRequest): Promise<JsonObject | undefined> {
  const type = contentTypeOf(request)
  if (type !== json && type !== yaml && type !== protobuf) throw unknownFormat([json, yaml, protobuf])
  const bytes = await request.readBody()
  if (bytes.length === 0) return undefined
  if (type === protobuf) return readKubernetesProtobuf(bytes)
  return asObject(type === yaml ? await parseYamlBody(bytes) : parseJsonBody(bytes))
}

/** The same, and the fields that occur twice in it. Throws ApiError. */
export async function readWholeObject(
  request: ApiRequest,
): Promise<{ readonly object: JsonObject | undefined; readonly duplicates: readonly string[] }> {
  if (contentTypeOf(request) !== json) return { object: await readObject(request), duplicates: [] }
  const bytes = await request.readBody()
  if (bytes.length === 0) return { object: undefined, duplicates: [] }
  const object = asObject(parseJsonBody(bytes))
  return { object, duplicates: findDuplicateFields(toText(bytes)) }
}

/** Protobuf, which typed clients send; its decoder is loaded with the first. Throws ApiError BadRequest. */
async function readKubernetesProtobuf(bytes: Uint8Array): Promise<JsonObject> {
  const [{ WireError, readProtobuf }, table] = await Promise.all([
    import('../../api/read-protobuf.ts'),
    import('../../api/kubernetes.wire.json', { with: { type: 'json' } }),
  ])
  try {
    return readProtobuf(bytes, table.default)
  } catch (error) {
    if (error instanceof WireError) throw new ApiError(400, error.message)
    throw error
  }
}

export function asObject(value: Json): JsonObject {
  if (isJsonObject(value)) return value
  throw new ApiError(400, 'the body of the request is not an object')
}

export function parseJsonBody(bytes: Uint8Array): Json {
  const value = parseText(toText(bytes))
  refuseDeep(value)
  return value
}

function parseText(text: string): Json {
  try {
    const value: Json = JSON.parse(text)
    return value
  } catch (error) {
    throw new ApiError(400, `the body of the request is not JSON: ${errorMessage(error)}`)
  }
}

/** What reads a body recurses: each level takes its part of the stack. An API server's decoder takes 10,000. */
const maxLevels = 1000

function refuseDeep(value: Json): void {
  let level: readonly Json[] = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxLevels)
      throw new ApiError(400, `the body of the request is nested deeper than ${maxLevels} levels`)
    level = level.flatMap((item) =>
      typeof item === 'object' && item !== null ? Object.values<Json>(item) : [],
    )
  }
}

/** A patch in JSON, and the fields that stand twice in it. Throws ApiError BadRequest. */
export async function readJsonPatch(
  request: ApiRequest,
): Promise<{ readonly patch: Json; readonly duplicates: readonly string[] }> {
  const bytes = await request.readBody()
  const patch = parseJsonBody(bytes)
  return { patch, duplicates: findDuplicateFields(toText(bytes)) }
}

/** One document; JSON is YAML too. Throws ApiError BadRequest. */
export async function parseYamlBody(bytes: Uint8Array): Promise<Json> {
  const text = toText(bytes)
  // What isn't JSON may be YAML in flow style.
  const value = /^\s*[{[]/u.test(text) ? parseJson(text) : undefined
  if (value !== undefined) {
    refuseDeep(value)
    return value
  }
  const [document, ...others] = await readYamlDocuments(text)
  if (document === undefined || others.length > 0)
    throw new ApiError(400, 'the body of the request must be one YAML document')
  if (document.kind === 'read') return document.value
  throw new ApiError(400, `the body of the request is not YAML: ${document.message}`)
}

export function unknownFormat(accepted: readonly string[]): ApiError {
  return new ApiError(
    415,
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )
}

function toText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    // Not UTF-8: that is what is asked.
    throw new ApiError(400, 'the body of the request is not UTF-8')
  }
}
