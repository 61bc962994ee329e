import { isJsonObject } from '../../base/json.ts'
import type { Json } from '../../base/json.ts'
import type { DockerConfig } from './docker-config.ts'
import { providerApiVersion, readDuration } from './provider-config.ts'
import type { RegistryCredential } from './registry-credential.ts'

/** What a plugin reads from its standard input. */
export function formatProviderRequest(image: string): string {
  return JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion: providerApiVersion, image })
}

/** What a response may be cached for. */
type CacheKeyType = 'Image' | 'Registry' | 'Global'

export interface ProviderResponse {
  readonly config: DockerConfig
  readonly cacheKeyType: CacheKeyType
  /** Undefined: the provider's default; 0: not at all. */
  readonly cacheMs: number | undefined
}

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
  for (const [location, entry] of Object.entries(isJsonObject(auth) ? auth : {})) {
    const credential = readCredential(entry)
    if (credential === undefined) return 'an entry of auth in its output lacks a username and a password'
    config.set(location, credential)
  }
  return { config, cacheKeyType: cacheType, cacheMs }
}

const cacheKeyTypes: readonly CacheKeyType[] = ['Image', 'Registry', 'Global']

function parseJson(text: string): Json | undefined {
  try {
    const json: Json = JSON.parse(text)
    return json
  } catch {
    // The caller reports the plugin's answer as none.
    return undefined
  }
}

function readCacheDuration(value: Json | undefined): number | string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') return 'is not text'
  const durationMs = readDuration(value)
  return typeof durationMs === 'number' ? durationMs : 'is not a duration'
}

function readCredential(entry: Json): RegistryCredential | undefined {
  if (!isJsonObject(entry)) return undefined
  const { username = '', password = '' } = entry
  if (typeof username !== 'string' || typeof password !== 'string') return undefined
  return { username, password, email: '', identityToken: '', registryToken: '' }
}
