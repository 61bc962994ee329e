import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { RegistryCredential } from './registry-credential.ts'

/** Credentials, by the registry or the part of one that they are for. */
export type DockerConfig = ReadonlyMap<string, RegistryCredential>

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

function parseJson(text: string): Json | undefined {
  try {
    const json: Json = JSON.parse(text)
    return json
  } catch {
    // The parser's message may quote a credential.
    return undefined
  }
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

function textOf(entry: JsonObject, name: string): string {
  const value = entry[name]
  return typeof value === 'string' ? value : ''
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
