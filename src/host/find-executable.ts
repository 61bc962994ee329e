import { accessSync, constants, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'

/** Directories searched after PATH: a daemon's PATH often lacks the sbin directories. */
const systemDirectories: readonly string[] = [
  '/usr/local/sbin',
  '/usr/local/bin',
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
]

/** The directories to search, in order and once each: PATH, then the system's. */
export function searchDirectories(path: string | undefined): readonly string[] {
  const own = (path ?? '').split(':').filter((directory) => directory.startsWith('/'))
  return [...new Set([...own, ...systemDirectories])]
}

/** Full path of an executable file, which an absolute path is itself; or undefined. */
export function findExecutable(
  name: string,
  directories = searchDirectories(process.env['PATH']),
): string | undefined {
  const paths = isAbsolute(name) ? [name] : directories.map((directory) => join(directory, name))
  return paths.find((path) => isExecutable(path))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    // It doesn't exist, or isn't executable.
    return false
  }
}
