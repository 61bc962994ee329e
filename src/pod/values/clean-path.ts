/**
 * A relative path without empty steps, `.` and a slash at its end: `./a//b/` is `a/b`, and nothing at all is
 * `.` (Go's path.Clean, for paths that hold no `..`).
 */
export function cleanPath(path: string): string {
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  return names.length === 0 ? '.' : names.join('/')
}
