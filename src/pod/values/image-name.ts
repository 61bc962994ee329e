/* Names of images, as containerd completes them. */

/** An image reference taken apart and completed as containerd's CRI does. */
export interface ImageName {
  /** `docker.io`, `registry.example:5000`, … */
  readonly registry: string
  /** Without the registry: `library/busybox`. */
  readonly repository: string
  readonly tag: string | undefined
  /** `sha256:…` */
  readonly digest: string | undefined
  /** The complete reference; a tag beside a digest is left out, as the digest alone decides. */
  readonly normalized: string
}

const pathPart = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const repositoryPattern = new RegExp(`^${pathPart}(?:/${pathPart})*$`)
const domainPart = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])'
const registryPattern = new RegExp(`^(?:${domainPart}(?:\\.${domainPart})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?$`)
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/
const digestPattern = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-f]{32,}$/
const bareIdPattern = /^[0-9a-f]{64}$/

/**
 * Reads an image reference; undefined where it isn't one (`InvalidImageName`). No tag and no digest
 * mean `:latest`. Source: github.com/distribution/reference (ParseDockerRef).
 */
export function parseImageName(text: string): ImageName | undefined {
  if (bareIdPattern.test(text)) return undefined
  const [rest, digest] = splitAt(text, text.indexOf('@'))
  if (digest !== undefined && !digestPattern.test(digest)) return undefined
  const colon = rest.lastIndexOf(':')
  const [name, tag] = splitAt(rest, colon > rest.lastIndexOf('/') ? colon : -1)
  if (tag !== undefined && !tagPattern.test(tag)) return undefined
  const { registry, repository } = splitRegistry(name)
  if (!registryPattern.test(registry) || !repositoryPattern.test(repository)) return undefined
  if (`${registry}/${repository}`.length > 255) return undefined
  const base = `${registry}/${repository}`
  const normalized = digest === undefined ? `${base}:${tag ?? 'latest'}` : `${base}@${digest}`
  return { registry, repository, tag, digest, normalized }
}

/** The complete form of a reference, for comparisons; an invalid one is returned unchanged. */
export function normalizeImageName(text: string): string {
  return parseImageName(text)?.normalized ?? text
}

function splitAt(text: string, index: number): readonly [string, string | undefined] {
  return index < 0 ? [text, undefined] : [text.slice(0, index), text.slice(index + 1)]
}

/** The first part is a registry only if it looks like a host: it has a dot or a port, or is `localhost`. */
function splitRegistry(name: string): { readonly registry: string; readonly repository: string } {
  const slash = name.indexOf('/')
  const first = slash < 0 ? '' : name.slice(0, slash)
  const isHost = first.includes('.') || first.includes(':') || first === 'localhost' || /[A-Z]/.test(first)
  const registry = isHost ? first : 'docker.io'
  const rest = isHost ? name.slice(slash + 1) : name
  const isIndex = registry === 'docker.io' || registry === 'index.docker.io'
  return {
    registry: isIndex ? 'docker.io' : registry,
    repository: isIndex && !rest.includes('/') ? `library/${rest}` : rest,
  }
}

/**
 * The problem of an entry in an image allowlist (`must …`): an image without tag and digest, or a path that ends in a
 * slash and a star (`pkg/kubelet/images/pullmanager/image_pull_policies.go`, getAllowlistImagePattern, 1.36).
 */
export function imagePatternProblem(pattern: string): string | undefined {
  if (pattern !== pattern.trim()) return 'must not begin or end with a space'
  const isPrefix = pattern.endsWith('/*')
  const rest = isPrefix ? pattern.slice(0, -1) : pattern
  if (rest.includes('*')) return 'must have no * but in a /* at its end'
  if (isPrefix) return rest === '/' ? 'must begin with a registry or a repository' : undefined
  if (trimTagAndDigest(pattern) === undefined) return 'must be the name of an image'
  return trimTagAndDigest(pattern) === pattern ? undefined : 'must have neither tag nor digest'
}

/** Whether an image is in the list, compared literally. */
export function isImageListed(image: string, patterns: readonly string[]): boolean {
  const name = trimTagAndDigest(image) ?? image
  return patterns.some((pattern) =>
    pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  )
}

/** The name as written, without tag and digest; undefined for an invalid one. */
export function trimTagAndDigest(image: string): string | undefined {
  const parsed = parseImageName(image)
  if (parsed === undefined) return undefined
  const [name = ''] = image.split('@', 1)
  return parsed.tag === undefined ? name : name.slice(0, -(parsed.tag.length + 1))
}
