import { gzipSync } from 'node:zlib'
import type { Json } from '../../base/json.ts'
import { formatTar } from '../../images/tar.ts'
import type { TarEntry } from '../../images/tar.ts'
import type { BundleSource } from './bundle-sources.ts'
import { Redaction } from './redact.ts'

/** The most bytes of all files together, before compression. */
const mostBytes = 24 * 2 ** 20
const directory = 'podd-support'

/**
 * A tar.gz of these files without what may be secret: values of environment variables, of headers, of ConfigMaps and
 * Secrets, and credentials, wherever they stand. Files that no longer fit are left out, and named in `left-out.txt`.
 * @param secrets further documents with secret values, which are in no file
 * @param settings what podd's settings hold and may not be shown
 */
export function makeBundle(
  sources: readonly BundleSource[],
  secrets: readonly Json[],
  settings: readonly string[],
): Buffer {
  const redaction = new Redaction()
  for (const text of settings) redaction.setting(text)
  for (const document of secrets) redaction.json(document, true)
  // Collect from all files first: a log may contain what a record shows to be secret.
  const redacted = sources.map(({ path, ...source }) => ({
    path,
    text:
      source.kind === 'text' ? source.content : JSON.stringify(redaction.json(source.content), undefined, 1),
  }))
  const entries: TarEntry[] = [{ kind: 'directory', path: directory, mode: 0o700 }]
  const leftOut: string[] = []
  let sizeBytes = 0
  const add = (path: string, text: string): void => {
    const data = Buffer.from(redaction.text(text))
    const name = `${directory}/${path}`
    if (sizeBytes + data.length > mostBytes) {
      leftOut.push(`${path} (${data.length} bytes)`)
      return
    }
    sizeBytes += data.length
    entries.push({ kind: 'file', path: name, mode: 0o600, data })
  }
  for (const { path, text } of redacted) add(path, text)
  if (leftOut.length > 0) add('left-out.txt', `${leftOut.slice(0, 1000).join('\n')}\n`)
  return gzipSync(formatTar(entries))
}
