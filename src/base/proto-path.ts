import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The path of a wire definition: beside the bundled main.js, or at the repository's root for the sources. */
export function protoPath(file: string): string {
  const bundled = fileURLToPath(new URL(`proto/${file}`, import.meta.url))
  return existsSync(bundled) ? bundled : fileURLToPath(new URL(`../../proto/${file}`, import.meta.url))
}
