import { stat } from 'node:fs/promises'
import type { SecureContext } from 'node:tls'
import { readAtOnce } from '../../base/read-bounded.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'

/** PEM files, which may be replaced at any time. */
export interface TlsFiles {
  /** The authorities that may have signed the server's certificate, in place of those that this host trusts. */
  readonly caFile?: string | undefined
  /** The client certificate and its key. */
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
}

/** A hash of the files' content. Throws PoddError SOURCE_FILE. */
export async function fingerprintTlsFiles({ caFile, certFile, keyFile }: TlsFiles): Promise<string> {
  const paths = [caFile, certFile, keyFile].filter((path) => path !== undefined)
  const found = await Promise.all(
    paths.map(async (path) => {
      const { ino, size, mtimeNs } = await readOr(path, () => stat(path, { bigint: true }))
      return `${ino}:${size}:${mtimeNs}`
    }),
  )
  return found.join(' ')
}

/**
 * The TLS context of connections: the authorities of `caFile`, else those that this host trusts, as
 * update-ca-certificates keeps them or `SSL_CERT_FILE` names them, with those of `NODE_EXTRA_CA_CERTS`; where the host
 * has none at all, those that come with Node. Throws PoddError SOURCE_FILE.
 * @param isOwn whether the server is the configured one: no other gets the client certificate
 */
export async function loadTls(files: TlsFiles, isOwn: boolean): Promise<SecureContext> {
  const { createSecureContext, getCACertificates } = await import('node:tls')
  const { caFile, certFile, keyFile } = files
  const system = getCACertificates('system')
  const trusted =
    system.length === 0 ? getCACertificates('default') : [...system, ...getCACertificates('extra')]
  const ca = caFile === undefined ? trusted : await readText(caFile)
  if (!isOwn || certFile === undefined || keyFile === undefined) return createSecureContext({ ca })
  const [cert, key] = await Promise.all([readText(certFile), readText(keyFile)])
  try {
    return createSecureContext({ ca, cert, key })
  } catch (error) {
    // While both are being replaced, one may be the new one and the other not.
    throw unusable(`${certFile} and ${keyFile}`, error)
  }
}

/** The largest file that a source needs for its requests: all authorities of a host take a quarter of it. */
const mostFileBytes = 1024 * 1024

/** The text of a file that a source needs for its requests. Throws PoddError SOURCE_FILE. */
export async function readText(path: string): Promise<string> {
  const bytes = await readOr(path, () => readAtOnce(path, mostFileBytes))
  if (bytes.byteLength <= mostFileBytes) return bytes.toString('utf8')
  throw unusable(path, new Error(`it is larger than ${mostFileBytes / 2 ** 20} MiB`))
}

async function readOr<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw unusable(path, error)
  }
}

/** For a file of a source's that can't be used as it is. */
export function unusable(what: string, error: unknown): PoddError {
  return new PoddError('SOURCE_FILE', `cannot use ${what}: ${errorMessage(error)}`, {
    cause: error,
    hint: 'podd reads it again with the next request.',
  })
}
