import { errorMessage } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import { parseDuration } from '../../config/option-type.ts'
import { checkValue } from '../../pod/schema/check-value.ts'
import { formatFieldPath } from '../../pod/schema/issues.ts'
import {
  conforms,
  fillDefaults,
  any,
  defaulted,
  list,
  object,
  oneOf,
  refused,
  required,
  string,
} from '../../pod/schema/types.ts'
import type { Infer } from '../../pod/schema/types.ts'
import { parseLocation } from './match-registry.ts'

/** The form of requests and responses. */
export const providerApiVersion = 'credentialprovider.kubelet.k8s.io/v1'

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

/** A program that gives credentials for images. */
export interface CredentialProvider {
  /** The program's file name. */
  readonly name: string
  readonly matchImages: readonly string[]
  readonly defaultCacheMs: number
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

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
    .map(({ path, message }) => sentence(formatFieldPath(path), message))
  const config = value === undefined ? undefined : fillDefaults(configSchema, value)
  if (config === undefined || !conforms(configSchema, config)) return { providers: [], problems: errors }
  const found = config.providers.map((provider, index) => readProvider(provider, `providers[${index}]`))
  const wrong = [
    ...(found.length === 0 ? ['providers: at least one is required'] : []),
    ...found.flatMap((provider) => provider.problems),
    ...repeatedNames(config.providers.map(({ name }) => name)),
  ]
  if (wrong.length > 0) return { providers: [], problems: wrong }
  return { providers: found.flatMap(({ provider }) => provider ?? []), problems: [] }
}

/** The problems of names that are used more than once. */
export function repeatedNames(names: readonly string[]): readonly string[] {
  const repeated = names.filter((name, index) => names.indexOf(name) !== index)
  return [...new Set(repeated)].map((name) => `providers: ${JSON.stringify(name)} is there twice`)
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

/** Milliseconds, or a problem. */
export function readDuration(text: string): number | string {
  try {
    const durationMs = parseDuration(text)
    return durationMs < 0 ? 'must not be negative' : durationMs
  } catch (error) {
    return errorMessage(error)
  }
}

function sentence(field: string, message: string): string {
  return field === '' ? message : `${field}: ${message}`
}
