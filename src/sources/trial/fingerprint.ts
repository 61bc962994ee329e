import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { HttpGet, HeaderFiles } from '../http/http-get.ts'
import { getOnce, readHeaders } from '../http/http-get.ts'
import type { Environment, TlsFiles } from '../http/http-routes.ts'
import { HttpRoutes } from '../http/http-routes.ts'
import { parseSourceUrl } from '../http/show-url.ts'
import { listManifests } from '../read-manifest-file.ts'

/**
 * A fingerprint of the content of a manifest directory, or of a single manifest, without reading manifests. Undefined
 * where it can't be read.
 */
export async function fingerprintPath(path: string, recursive = false): Promise<string | undefined> {
  try {
    const hash = createHash('sha256')
    if ((await stat(path)).isFile()) hash.update(await describeFile(path))
    else
      for (const name of (await listManifests(path, recursive)).toSorted())
        hash.update(`${name}\n${await describeFile(join(path, name))}`)
    return hash.digest('hex')
  } catch {
    // The source itself reports it.
    return undefined
  }
}

/** A file that is gone, or a dangling link, counts only by its name. */
async function describeFile(path: string): Promise<string> {
  // One that can't be read counts the same: the source itself reports why.
  const stats = await stat(path, { bigint: true }).catch(() => undefined)
  return stats === undefined ? 'none\n' : `${stats.size} ${stats.mtimeNs} ${stats.ino}\n`
}

/** The options of requests to a URL. */
export interface UrlRequest {
  readonly url: string
  readonly allowHttp?: boolean
  readonly headers: HttpGet['headers']
  readonly headerFiles?: HeaderFiles
  readonly tls?: TlsFiles
}

/** The same for the response of a URL. */
export async function fingerprintUrl(
  request: UrlRequest,
  env: Environment,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { url, socketPath } = parseSourceUrl(request.url)
  const allowHttp = request.allowHttp === true || socketPath !== undefined
  const routes = new HttpRoutes(env, { socketPath, tls: request.tls ?? {} })
  try {
    const headers = await readHeaders(request.headers, request.headerFiles ?? {})
    const answer = await getOnce(routes, { url, headers, validators: undefined, allowHttp }, signal)
    return answer.kind === 'content' ? createHash('sha256').update(answer.bytes).digest('hex') : undefined
  } finally {
    await routes.destroy()
  }
}
