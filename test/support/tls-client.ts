import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import type { RequestOptions } from 'node:https'
import { parse } from 'yaml'

/** What a kubeconfig says, as far as a client needs it. */
export interface Login {
  readonly server: string
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export function readKubeconfig(text: string): Login {
  const config = parse(text) as {
    clusters: [{ cluster: { server: string; 'certificate-authority-data': string } }]
    users: [{ user: { 'client-certificate-data': string; 'client-key-data': string } }]
  }
  const decode = (base64: string): string => Buffer.from(base64, 'base64').toString()
  const [{ cluster }] = config.clusters
  const [{ user }] = config.users
  return {
    server: cluster.server,
    ca: decode(cluster['certificate-authority-data']),
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
  }
}

export interface TlsAnswer {
  readonly code: number
  readonly text: string
  readonly headers: Readonly<Record<string, unknown>>
}

/** One request over a connection of its own; rejects where the handshake fails. */
export function ask(
  url: string,
  options: RequestOptions & { readonly body?: string | Buffer },
): Promise<TlsAnswer> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options
    const call = request(url, { agent: false, ...rest }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          code: response.statusCode ?? 0,
          text: Buffer.concat(chunks).toString(),
          headers: response.headers,
        }),
      )
    })
    call.on('error', reject)
    call.end(body)
  })
}

/** The key and the certificate that podd keeps in a file. */
export function readPair(path: string): { readonly key: string; readonly certificate: string } {
  const text = readFileSync(path, 'utf8')
  const at = text.indexOf('-----BEGIN CERTIFICATE-----')
  return { key: text.slice(0, at), certificate: text.slice(at) }
}
