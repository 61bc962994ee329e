/** A registry and a path in it, without a scheme; its host may have wildcards. */
export interface RegistryLocation {
  /** The labels of the host name. */
  readonly labels: readonly string[]
  /** Empty where none is given. */
  readonly port: string
  /** Empty, or from its slash on. */
  readonly path: string
}

/** Undefined for an invalid one: no host, or a port that is no number. */
export function parseLocation(text: string): RegistryLocation | undefined {
  const end = text.search(/[/?#]/u)
  const [address, path] = end < 0 ? [text, ''] : [text.slice(0, end), text.slice(end)]
  if (!/^[^\s@\\]+$/u.test(address)) return undefined
  const match = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/u.exec(address)
  if (match === null) return undefined
  const [, host = '', port = ''] = match
  return { labels: host.split('.'), port, path: path.startsWith('/') ? path.replace(/[?#].*$/u, '') : '' }
}

/**
 * Whether a location matches a pattern: the same port, as many labels, each of which matches, and the pattern's path as
 * a prefix (`pkg/credentialprovider/keyring.go`, URLsMatch, 1.36).
 */
export function matchesLocation(pattern: RegistryLocation, target: RegistryLocation): boolean {
  return (
    pattern.port === target.port &&
    pattern.labels.length === target.labels.length &&
    target.path.startsWith(pattern.path) &&
    pattern.labels.every((label, index) => matchesGlob(label, target.labels[index] ?? ''))
  )
}

/** As `matchesLocation`, for texts; an invalid location matches nothing. */
export function matchesLocationText(pattern: string, target: string): boolean {
  const [from, to] = [parseLocation(pattern), parseLocation(target)]
  return from !== undefined && to !== undefined && matchesLocation(from, to)
}

/** `*` stands for any characters. No backtracking beyond the last `*`. */
function matchesGlob(glob: string, text: string): boolean {
  let [at, from] = [0, 0]
  let [star, resume] = [-1, 0]
  while (from < text.length) {
    if (glob[at] === '*') {
      star = at
      resume = from
      at += 1
    } else if (at < glob.length && glob[at] === text[from]) {
      at += 1
      from += 1
    } else if (star >= 0) {
      resume += 1
      at = star + 1
      from = resume
    } else return false
  }
  while (glob[at] === '*') at += 1
  return at === glob.length
}
