import { readFile } from 'node:fs/promises'
import type { HttpGet } from './http-get.ts'
import { readOr } from './tls-files.ts'

/** Headers whose values stand in files, which may change: paths by names. */
export type HeaderFiles = Readonly<Record<string, string>>

/** The headers of a request. Throws PoddError SOURCE_FILE. */
export async function readHeaders(
  headers: HttpGet['headers'],
  files: HeaderFiles,
): Promise<HttpGet['headers']> {
  const read = await Promise.all(
    Object.entries(files).map(async ([name, path]): Promise<[string, readonly string[]]> => {
      const text = await readOr(path, () => readFile(path, 'utf8'))
      return [name, [text.trim()]]
    }),
  )
  return { ...headers, ...Object.fromEntries(read) }
}
