import { parseImageName } from './image-name.ts'

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
