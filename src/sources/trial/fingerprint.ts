import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { HttpGet } from '../http-get.ts'
import { getOnce } from '../http-get.ts'
import type { Environment } from '../choose-proxy.ts'
import { HttpRoutes } from '../http-routes.ts'
import { isManifestName } from '../manifest-name.ts'

/**
 * Distinguishes what a directory of manifests, or a single one, holds from what it held before, without reading a
 * manifest. Undefined where it can't be read.
 */
export async function fingerprintPath(path: string): Promise<string | undefined> {
  try {
    const hash = createHash('sha256')
    if ((await stat(path)).isFile()) hash.update(await describeFile(path))
    else
      for (const name of (await readdir(path)).filter((name) => isManifestName(name)).sort())
        hash.update(`${name}\n${await describeFile(join(path, name))}`)
    return hash.digest('hex')
  } catch {
    // The source itself reports it.
    return undefined
  }
}

/** One that is gone, or a link that leads nowhere, counts by its name alone. */
async function describeFile(path: string): Promise<string> {
  const stats = await stat(path, { bigint: true }).catch(() => undefined)
  return stats === undefined ? 'none\n' : `${stats.size} ${stats.mtimeNs} ${stats.ino}\n`
}

/** The same of what a URL answers. */
export async function fingerprintUrl(
  request: Pick<HttpGet, 'url' | 'headers'>,
  env: Environment,
  signal: AbortSignal,
): Promise<string | undefined> {
  const routes = new HttpRoutes(env)
  try {
    const answer = await getOnce(routes, { ...request, validators: undefined }, signal)
    return answer.kind === 'content' ? createHash('sha256').update(answer.bytes).digest('hex') : undefined
  } finally {
    await routes.destroy()
  }
}
