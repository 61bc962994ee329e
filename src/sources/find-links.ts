import { readlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Linux gives up on a path after so many symlinks (path_resolution(7)). */
const maxLinks = 40

/** The paths of all symlinks on the way of an absolute path, as far as it exists. */
export function findLinks(path: string): readonly string[] {
  const links: string[] = []
  const rest = splitPath(path)
  let at = '/'
  for (let name = rest.shift(); name !== undefined && links.length < maxLinks; name = rest.shift()) {
    const next = join(at, name)
    const target = readLink(next)
    if (target === undefined) {
      at = next
      continue
    }
    links.push(next)
    rest.unshift(...splitPath(resolve(at, target)))
    at = '/'
  }
  return links
}

function splitPath(path: string): string[] {
  return path.split('/').filter((name) => name !== '')
}

/** Undefined where it is not a symlink, or doesn't exist. */
function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    // No symlink, or nothing there.
    return undefined
  }
}
