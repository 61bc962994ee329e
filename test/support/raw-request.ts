import { request as httpRequest } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'

export interface RawAnswer {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** One request over a unix socket, with its path as it is; redirects are not followed. */
export function request(
  socketPath: string,
  options: {
    readonly method: string
    readonly path: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
  },
): Promise<RawAnswer> {
  const { body, ...rest } = options
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ socketPath, agent: false, ...rest }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const { statusCode: status, headers } = response
        resolve({ status, headers, text: Buffer.concat(chunks).toString() })
      })
    })
    sent.once('error', reject)
    sent.end(body)
  })
}
