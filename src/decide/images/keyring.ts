import type { DockerConfig } from './docker-config.ts'
import { matchesLocation, parseLocation } from './match-registry.ts'
import { credentialHash } from './registry-credential.ts'
import type { RegistryCredential } from './registry-credential.ts'

/** The Secret that a credential is from. */
export interface SecretCoordinates {
  /** The source of the Secret, which takes the place of Kubernetes' UID. */
  readonly source: string
  readonly namespace: string
  readonly name: string
}

/** A credential that fits an image. */
export interface PullCredential {
  readonly credential: RegistryCredential
  readonly hash: string
  /** Undefined where all pods of the node may use it. */
  readonly secret: SecretCoordinates | undefined
}

/** One docker config with its origin. */
export interface KeyringPart {
  readonly config: DockerConfig
  readonly secret?: SecretCoordinates | undefined
}

const defaultRegistry = 'index.docker.io'

/**
 * The credentials that fit an image, the most specific entry first, and in the order of the parts where entries are
 * equal. Credentials of the default registry apply where nothing else fits (`pkg/credentialprovider/keyring.go`,
 * BasicDockerKeyring, 1.36).
 * @param image the registry and the repository, without tag and digest
 */
export function lookUpCredentials(parts: readonly KeyringPart[], image: string): readonly PullCredential[] {
  const byKey = new Map<string, PullCredential[]>()
  for (const { config, secret } of parts) {
    for (const [location, credential] of config) {
      const key = keyOf(location)
      if (key === undefined) continue
      const found = { credential, hash: credentialHash(credential), secret }
      byKey.set(key, [...(byKey.get(key) ?? []), found])
    }
  }
  const target = parseLocation(image)
  if (target === undefined) return []
  const keys = [...byKey.keys()].sort((a, b) => (a < b ? 1 : -1))
  const matching = keys.filter((key) => {
    const pattern = parseLocation(key)
    return pattern !== undefined && matchesLocation(pattern, target)
  })
  if (matching.length > 0) return matching.flatMap((key) => byKey.get(key) ?? [])
  return isDefaultRegistry(image) ? (byKey.get(defaultRegistry) ?? []) : []
}

/** Without duplicates. */
export function withoutRepeats(credentials: readonly PullCredential[]): readonly PullCredential[] {
  const isSame = (a: PullCredential, b: PullCredential): boolean => a.hash === b.hash
  return credentials.filter((one, index) => credentials.findIndex((other) => isSame(one, other)) === index)
}

/** The key of an entry: without its scheme, and without the version of the registry's API. */
function keyOf(location: string): string | undefined {
  const parsed = parseLocation(location.replace(/^https?:\/\//u, ''))
  if (parsed === undefined) return undefined
  const path = /^\/v[12]\//u.test(parsed.path) ? parsed.path.slice('/v1'.length) : parsed.path
  const host = `${parsed.labels.join('.')}${parsed.port === '' ? '' : `:${parsed.port}`}`
  return path === '/' ? host : `${host}${path}`
}

/** Whether Docker Hub serves an image of this name. */
export function isDefaultRegistry(image: string): boolean {
  const slash = image.indexOf('/')
  const first = slash < 0 ? image : image.slice(0, slash)
  if (first === '') return false
  if (slash < 0 || first === 'docker.io' || first === defaultRegistry) return true
  return !/[.:]/u.test(first)
}
