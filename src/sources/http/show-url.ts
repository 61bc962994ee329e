import { createHash } from 'node:crypto'
import { showUrl } from '../../base/http.ts'

/** Distinguishes URLs that are shown alike. */
export function copyKey(url: string): string {
  return `${showUrl(url)}#${createHash('sha256').update(url).digest('hex').slice(0, 8)}`
}

/** The request target: `unix:///SOCKET:/PATH` is a path on the server at a unix socket. */
export function parseSourceUrl(url: string): { readonly url: URL; readonly socketPath?: string } {
  const [, socketPath, path] = /^unix:\/\/(\/[^:]+):(\/.*)$/u.exec(url) ?? []
  if (socketPath === undefined || path === undefined) return { url: new URL(url) }
  return { url: new URL(path, 'http://localhost'), socketPath }
}

/** Whether manifests are named by a URL, as a source's may be, and not by a path. */
export function isSourceUrl(name: string): boolean {
  return /^(?:https?:\/\/|unix:\/\/\/)/u.test(name)
}
