/* Plugins that give credentials for images: their configuration, what each is asked, and its answer. */
import { errorMessage } from '../../base/errors.ts'
import { isJsonObject, objectOrEmpty, parseJson } from '../../base/json.ts'
import type { Json } from '../../base/json.ts'
import { parseDuration } from '../../config/option-type.ts'
import { checkValue } from '../../pod/schema/check-value.ts'
import { formatFieldPath } from '../../pod/schema/issues.ts'
import {
  any,
  defaulted,
  list,
  object,
  oneOf,
  readAs,
  refused,
  required,
  string,
} from '../../pod/schema/types.ts'
import type { Infer } from '../../pod/schema/types.ts'
import { parseLocation } from './keyring.ts'
import type { DockerConfig, RegistryCredential } from './keyring.ts'

/** The form of requests and responses. */
const providerApiVersion = 'credentialprovider.kubelet.k8s.io/v1'

/** A program that gives credentials for images. */
export interface CredentialProvider {
  /** The program's file name. */
  readonly name: string
  readonly matchImages: readonly string[]
  readonly defaultCacheMs: number
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

const providerSchema = object('CredentialProvider', {
  name: required(string),
  matchImages: required(list(string)),
  defaultCacheDuration: required(string),
  apiVersion: required(string),
  args: defaulted(list(string), []),
  env: defaulted(list(object('ExecEnvVar', { name: required(string), value: required(string) })), []),
  tokenAttributes: refused(any, 'podd has no service accounts whose tokens a plugin could be given'),
})

const configSchema = object('CredentialProviderConfig', {
  apiVersion: required(oneOf('kubelet.config.k8s.io/v1')),
  kind: required(oneOf('CredentialProviderConfig')),
  providers: required(list(providerSchema)),
})

export interface ProviderConfigReading {
  readonly providers: readonly CredentialProvider[]
  /** Problems, each with its field; where there are any, there are no providers. */
  readonly problems: readonly string[]
}

/**
 * The providers of one CredentialProviderConfig (`pkg/credentialprovider/plugin/config.go`,
 * validateCredentialProviderConfig, 1.36).
 */
export function readProviderConfig(document: Json): ProviderConfigReading {
  const { value, problems } = checkValue(configSchema, document)
  const errors = problems
    .filter(({ severity }) => severity === 'error')
    .map(({ path, message }) => (path.length === 0 ? message : `${formatFieldPath(path)}: ${message}`))
  const config = readAs(configSchema, value)
  if (config === undefined) return { providers: [], problems: errors }
  const found = config.providers.map((provider, index) => readProvider(provider, `providers[${index}]`))
  const wrong = [
    ...(found.length === 0 ? ['providers: at least one is required'] : []),
    ...found.flatMap((provider) => provider.problems),
    ...repeatedNames(config.providers.map(({ name }) => name)),
  ]
  if (wrong.length > 0) return { providers: [], problems: wrong }
  return { providers: found.flatMap(({ provider }) => provider ?? []), problems: [] }
}

function readProvider(
  provider: Infer<typeof providerSchema>,
  at: string,
): { readonly provider?: CredentialProvider; readonly problems: readonly string[] } {
  const { name, matchImages, args, env } = provider
  const problems: string[] = []
  if (!/^[^/\s\0]+$/u.test(name) || name === '.' || name === '..')
    problems.push(`${at}.name: must be the name of a file, without spaces and slashes`)
  if (provider.apiVersion !== providerApiVersion)
    problems.push(`${at}.apiVersion: must be ${providerApiVersion}`)
  if (matchImages.length === 0) problems.push(`${at}.matchImages: at least one is required`)
  for (const [index, image] of matchImages.entries())
    if (parseLocation(image) === undefined)
      problems.push(`${at}.matchImages[${index}]: ${JSON.stringify(image)} is no registry`)
  const cacheMs = readDuration(provider.defaultCacheDuration)
  if (typeof cacheMs === 'string') problems.push(`${at}.defaultCacheDuration: ${cacheMs}`)
  if (problems.length > 0 || typeof cacheMs === 'string') return { problems }
  const variables = Object.fromEntries(env.map((variable) => [variable.name, variable.value]))
  return { provider: { name, matchImages, defaultCacheMs: cacheMs, args, env: variables }, problems }
}

/** The problems of names that are used more than once. */
export function repeatedNames(names: readonly string[]): readonly string[] {
  const repeated = names.filter((name, index) => names.indexOf(name) !== index)
  return [...new Set(repeated)].map((name) => `providers: ${JSON.stringify(name)} is there twice`)
}

/** What a plugin reads from its standard input. */
export function formatProviderRequest(image: string): string {
  return JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion: providerApiVersion, image })
}

export interface ProviderResponse {
  readonly config: DockerConfig
  readonly cacheKeyType: CacheKeyType
  /** Undefined: the provider's default; 0: not at all. */
  readonly cacheMs: number | undefined
}

/** What a response may be cached for. */
type CacheKeyType = 'Image' | 'Registry' | 'Global'

const cacheKeyTypes: readonly CacheKeyType[] = ['Image', 'Registry', 'Global']

/**
 * Reads a plugin's output, or returns what is wrong with it, without quoting it
 * (`pkg/credentialprovider/plugin/plugin.go`, ExecPlugin and provide, 1.36).
 */
export function readProviderResponse(text: string): ProviderResponse | string {
  const json = parseJson(text)
  if (!isJsonObject(json)) return 'its output is not a JSON object'
  const { apiVersion, kind, cacheKeyType, cacheDuration, auth } = json
  if (kind !== 'CredentialProviderResponse') return 'its output is no CredentialProviderResponse'
  if (apiVersion !== providerApiVersion) return `the apiVersion of its output is not ${providerApiVersion}`
  const cacheType = cacheKeyTypes.find((type) => type === cacheKeyType)
  if (cacheType === undefined) return 'its output has no valid cacheKeyType: Image, Registry or Global'
  const cacheMs = readCacheDuration(cacheDuration)
  if (typeof cacheMs === 'string') return `the cacheDuration of its output ${cacheMs}`
  const config = new Map<string, RegistryCredential>()
  for (const [location, entry] of Object.entries(objectOrEmpty(auth))) {
    const credential = readCredential(entry)
    if (credential === undefined) return 'an entry of auth in its output lacks a username and a password'
    config.set(location, credential)
  }
  return { config, cacheKeyType: cacheType, cacheMs }
}

function readCredential(entry: Json): RegistryCredential | undefined {
  if (!isJsonObject(entry)) return undefined
  const { username = '', password = '' } = entry
  if (typeof username !== 'string' || typeof password !== 'string') return undefined
  return { username, password, email: '', identityToken: '', registryToken: '' }
}

function readCacheDuration(value: Json | undefined): number | string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') return 'is not text'
  const durationMs = readDuration(value)
  return typeof durationMs === 'number' ? durationMs : 'is not a duration'
}

/** Milliseconds, or a problem. */
function readDuration(text: string): number | string {
  try {
    const durationMs = parseDuration(text)
    return durationMs < 0 ? 'must not be negative' : durationMs
  } catch (error) {
    return errorMessage(error)
  }
}
