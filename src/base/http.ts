import type { Duplex } from 'node:stream'
import { errorCode } from './errors.ts'
import { jsonAt } from './json.ts'

/** Whether HTTP can carry a text as a header's value (RFC 9110, 5.5). */
export function isHeaderValue(text: string): boolean {
  return /^[\t\u0020-\u007E\u0080-\u00FF]*$/u.test(text)
}

/** Whether a host of a URL, as `URL.hostname` gives it, is this host itself. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/u.test(hostname)
}

/**
 * A URL as it may be shown: without user, password, query and fragment, any of which may be a secret. It may be a
 * template, with `${NAME}` in it, or `unix:///SOCKET:/PATH`; of another text nothing is shown but its scheme.
 */
export function showUrl(url: string): string {
  const { scheme, rest = '' } = /^(?<scheme>[a-z][a-z0-9+.-]*:)\/\/(?<rest>.*)$/isu.exec(url)?.groups ?? {}
  if (scheme === undefined) return '…'
  const [address = ''] = rest.split(/[?#]/u, 1)
  // Everything up to the last `@` before the path; of a socket's path, an `@` is part of it.
  const [, place = ''] =
    scheme === 'unix:' ? ['', address] : (/^(?:[^/]*@)?(?<place>.*)$/su.exec(address) ?? [])
  const query = rest.split('#', 1)[0]?.includes('?') === true ? '?…' : ''
  const parsed = scheme === 'unix:' || place.includes('${') ? null : URL.parse(`${scheme}//${place}`)
  return `${parsed?.href ?? `${scheme}//${place}`}${query}`
}

/** Whether manifests are named by a URL, as a source's may be, and not by a path. */
export function isSourceUrl(name: string): boolean {
  return /^(?:https?:\/\/|unix:\/\/\/)/u.test(name)
}

/** The request target: `unix:///SOCKET:/PATH` is a path on the server at a unix socket. */
export function parseSourceUrl(url: string): { readonly url: URL; readonly socketPath?: string } {
  const [, socketPath, path] = /^unix:\/\/(\/[^:]+):(\/.*)$/u.exec(url) ?? []
  if (socketPath === undefined || path === undefined) return { url: new URL(url) }
  return { url: new URL(path, 'http://localhost'), socketPath }
}

/** The parts of a URL that `showUrl` hides, as they stand in it and decoded. */
export function secretsOfUrl(url: string): readonly string[] {
  const {
    user = '',
    query = '',
    fragment = '',
  } = /^[a-z][a-z0-9+.-]*:\/\/(?:(?<user>[^/?#]*)@)?[^?#]*(?:\?(?<query>[^#]*))?(?:#(?<fragment>.*))?$/isu.exec(
    url,
  )?.groups ?? {}
  const [name = '', ...password] = user.split(':')
  // A name without a password is the secret itself.
  const credential = password.length === 0 ? name : password.join(':')
  const values = query.split('&').map((pair) => pair.slice(pair.indexOf('=') + 1))
  return [credential, ...values, fragment].flatMap((part) => (part === '' ? [] : [part, decode(part)]))
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    // It has a `%` of its own.
    return text
  }
}

/**
 * Node's HTTP, without its import: an ES module's `import 'node:http'` evaluates every export, some of which load
 * Node's whole fetch, for about 45 ms and several MiB (Node 26).
 */
export const nodeHttp = process.getBuiltinModule('node:http')

/**
 * Has Node's client take the answers that Go's takes and the standard doesn't know: lines that end in LF alone, folded headers,
 * `100 Continue` that nobody waits for, long headers (Go takes 10 MiB of them). Safe where a connection has one answer.
 */
export const lenientParsing = { insecureHTTPParser: true, maxHeaderSize: 2 ** 20 } as const

/** Whether a parser refused an answer: undici's, whose errors say so by their name, or that of Node's client. */
export function isParserError(error: unknown): boolean {
  return (
    (error instanceof Error && error.name === 'HTTPParserError') ||
    errorCode(error)?.startsWith('HPE_') === true
  )
}

/**
 * Whether undici read an answer that it takes for no HTTP: the lenient client may take it.
 * @param hasHead whether it took the answer's head; a body in broken chunks is refused by Go's client too
 */
export function isRefusedByUndici(error: unknown, hasHead: boolean): boolean {
  const code = errorCode(error)
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return true
  // A status that it doesn't expect is a failed assertion, or a connection that it closes.
  if (code === 'ERR_ASSERTION') return true
  if (hasHead) return false
  if (code === 'UND_ERR_SOCKET' && error instanceof Error && 'socket' in error)
    return jsonAt(error.socket, 'bytesRead') !== 0
  return isParserError(error)
}

/**
 * Carries bytes both ways until both sides have ended; the end of one direction leaves the other open, where the
 * streams allow that (`allowHalfOpen`). An error on one side destroys the other. Resolves when both are closed; never
 * rejects.
 */
export async function joinStreams(one: Duplex, other: Duplex): Promise<void> {
  const both = [
    [one, other],
    [other, one],
  ] as const
  await Promise.all(
    both.map(([from, to]) => {
      from.on('error', () => {})
      const closed = new Promise<void>((resolve) => {
        if (from.closed) resolve()
        else from.once('close', () => resolve())
      })
      from.pipe(to)
      return closed.then(() => {
        // Data of a side that ended properly may still be in flight on the other side.
        if (!from.readableEnded || !from.writableFinished) to.destroy()
      })
    }),
  )
}
