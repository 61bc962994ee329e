import { request } from 'node:http'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { isJsonObject } from '../../src/base/json.ts'

export interface ApiAnswer {
  readonly code: number
  readonly body: JsonObject
  readonly warning: string | undefined
}

/**
 * A request with a JSON body over a unix socket.
 * @param body sent as it is, where it is a Buffer
 */
export function callApi(
  socketPath: string,
  method: string,
  path: string,
  body?: Json | Buffer,
  contentType = 'application/json',
): Promise<ApiAnswer> {
  const text = Buffer.isBuffer(body) ? body.toString() : body === undefined ? '' : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(text) }
    const call = request({ socketPath, method, path, agent: false, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const answered: unknown = JSON.parse(Buffer.concat(chunks).toString())
        const { warning } = response.headers
        resolve({
          code: response.statusCode ?? 0,
          body: isJsonObject(answered) ? answered : {},
          warning: typeof warning === 'string' ? warning : undefined,
        })
      })
    })
    call.on('error', reject)
    call.end(text)
  })
}
