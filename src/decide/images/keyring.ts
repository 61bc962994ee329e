/* Credentials for registries: which fit an image, docker configs as they are written, and the patterns in them. */
import { createHash } from 'node:crypto'
import { isJsonObject, parseJson } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { AuthConfig, Sent } from '../../cri-types/cri-v1.ts'

/** A registry credential; never logged, nor part of an error or an event. */
export interface RegistryCredential {
  readonly username: string
  readonly password: string
  readonly email: string
  /** Exchanged for an access token by the runtime. */
  readonly identityToken: string
  /** A bearer token for the registry itself. */
  readonly registryToken: string
}

/** Credentials, by the registry or the part of one that they are for. */
export type DockerConfig = ReadonlyMap<string, RegistryCredential>

/** The Secret that a credential is from. */
export interface SecretCoordinates {
  /** The source of the Secret, which takes the place of Kubernetes' UID. */
  readonly source: string
  readonly namespace: string
  readonly name: string
}

/** One docker config with its origin. */
export interface KeyringPart {
  readonly config: DockerConfig
  readonly secret?: SecretCoordinates | undefined
}

/** A credential that fits an image. */
export interface PullCredential {
  readonly credential: RegistryCredential
  readonly hash: string
  /** Undefined where all pods of the node may use it. */
  readonly secret: SecretCoordinates | undefined
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

/** Without duplicates. */
export function withoutRepeats(credentials: readonly PullCredential[]): readonly PullCredential[] {
  const isSame = (a: PullCredential, b: PullCredential): boolean => a.hash === b.hash
  return credentials.filter((one, index) => credentials.findIndex((other) => isSame(one, other)) === index)
}

/**
 * Identifies credentials without revealing them: hexadecimal SHA-256 of their JSON form, in which empty fields are left
 * out (`pkg/credentialprovider/keyring.go`, hashAuthConfig, 1.36). It is kept on disk: the form never changes.
 */
export function credentialHash(credential: RegistryCredential): string {
  const { username, password, email, identityToken, registryToken } = credential
  const fields = [
    ['username', username],
    ['password', password],
    ['email', email],
    ['identitytoken', identityToken],
    ['registrytoken', registryToken],
  ].filter(([, value]) => value !== '')
  return createHash('sha256')
    .update(JSON.stringify(Object.fromEntries(fields)))
    .digest('hex')
}

/** The CRI form. With an identity token the user name is only a placeholder. */
export function toAuthConfig(credential: RegistryCredential): Sent<AuthConfig> {
  const { username, password, identityToken, registryToken } = credential
  if (identityToken !== '' && password === '') return { identityToken }
  return {
    ...(username !== '' && { username }),
    ...(password !== '' && { password }),
    ...(identityToken !== '' && { identityToken }),
    ...(registryToken !== '' && { registryToken }),
  }
}

export interface DockerConfigReading {
  readonly config: DockerConfig
  /** Problems; none contains a value. */
  readonly problems: readonly string[]
}

/** Settings of Docker's command line that run programs on the user's behalf; no kubelet runs them either. */
const helperFields: readonly string[] = ['credsStore', 'credHelpers']

/**
 * The credentials of a `config.json`, or of the older `.dockercfg`, which has no `auths`
 * (`pkg/credentialprovider/config.go`, 1.36). An entry that cannot be read is a problem and leaves the others as they are.
 */
export function readDockerConfig(text: string, form: 'config.json' | 'dockercfg'): DockerConfigReading {
  // A parser's message may quote a credential.
  const json = parseJson(text)
  // As Go reads it; the API server takes such a Secret.
  if (json === null) return { config: new Map(), problems: [] }
  if (!isJsonObject(json)) return { config: new Map(), problems: ['it is not a JSON object'] }
  const problems = helperFields
    .filter((field) => form === 'config.json' && field in json)
    .map((field) => `${field} is ignored: credential helpers of Docker are not run`)
  const auths = form === 'dockercfg' ? json : (json['auths'] ?? {})
  if (!isJsonObject(auths))
    return { config: new Map(), problems: [...problems, 'auths is not a JSON object'] }
  const config = new Map<string, RegistryCredential>()
  for (const [location, entry] of Object.entries(auths)) {
    const read = readEntry(entry)
    if (typeof read === 'string') problems.push(`the entry of ${JSON.stringify(location)} ${read}`)
    else config.set(location, read)
  }
  return { config, problems }
}

/** The credentials, or what is wrong with the entry. */
function readEntry(entry: Json): RegistryCredential | string {
  if (!isJsonObject(entry)) return 'is not a JSON object'
  const names = ['username', 'password', 'email', 'auth', 'identitytoken', 'registrytoken']
  const wrong = names.find((name) => name in entry && typeof entry[name] !== 'string')
  if (wrong !== undefined) return `has a ${wrong} that is not text`
  const credential = {
    username: textOf(entry, 'username'),
    password: textOf(entry, 'password'),
    email: textOf(entry, 'email'),
    identityToken: textOf(entry, 'identitytoken'),
    registryToken: textOf(entry, 'registrytoken'),
  }
  const auth = textOf(entry, 'auth')
  if (auth === '') return credential
  const pair = decodePair(auth)
  return pair === undefined
    ? 'has an auth that is not base64 of username:password'
    : { ...credential, ...pair }
}

/** With and without padding. */
function decodePair(auth: string): Pick<RegistryCredential, 'username' | 'password'> | undefined {
  const packed = auth.replaceAll(/[\r\n]/gu, '')
  if (!/^[A-Za-z0-9+/]*={0,2}$/u.test(packed)) return undefined
  if (packed.endsWith('=') ? packed.length % 4 !== 0 : packed.length % 4 === 1) return undefined
  const text = Buffer.from(packed, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  return colon < 0 ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) }
}

function textOf(entry: JsonObject, name: string): string {
  const value = entry[name]
  return typeof value === 'string' ? value : ''
}

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

/** As `matchesLocation`, for texts; an invalid location matches nothing. */
export function matchesLocationText(pattern: string, target: string): boolean {
  const [from, to] = [parseLocation(pattern), parseLocation(target)]
  return from !== undefined && to !== undefined && matchesLocation(from, to)
}

/**
 * Whether a location matches a pattern: the same port, as many labels, each of which matches, and the pattern's path as
 * a prefix (`pkg/credentialprovider/keyring.go`, URLsMatch, 1.36).
 */
function matchesLocation(pattern: RegistryLocation, target: RegistryLocation): boolean {
  return (
    pattern.port === target.port &&
    pattern.labels.length === target.labels.length &&
    target.path.startsWith(pattern.path) &&
    pattern.labels.every((label, index) => matchesGlob(label, target.labels[index] ?? ''))
  )
}

/** `*` stands for any characters. Each part is searched once: a pattern can't make it slow. */
function matchesGlob(glob: string, text: string): boolean {
  const [first = '', ...parts] = glob.split('*')
  const last = parts.pop()
  if (last === undefined) return glob === text
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - at >= last.length && text.endsWith(last)
}
