import { isHeaderValue } from '../../base/http.ts'
import type { HttpGet } from './http-get.ts'
import { readText, unusable } from './tls-files.ts'

/** Headers whose values are in files, which may change: paths by header name. */
export type HeaderFiles = Readonly<Record<string, string>>

/** The headers of a request. Throws PoddError SOURCE_FILE. */
export async function readHeaders(
  headers: HttpGet['headers'],
  files: HeaderFiles,
): Promise<HttpGet['headers']> {
  const read = await Promise.all(
    Object.entries(files).map(async ([name, path]): Promise<[string, readonly string[]]> => {
      const value = (await readText(path)).trim()
      if (!isHeaderValue(value)) throw unusable(path, new Error('it is not a single line of text'))
      return [name, [value]]
    }),
  )
  return { ...headers, ...Object.fromEntries(read) }
}
