import { secretsOfUrl } from '../../base/http.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'

/** The replacement of a value that may be secret. */
const redacted = '<redacted>'
/** Shorter ones occur in ordinary words: they are redacted only where they are known to be values. */
const shortestSecret = 4
/** Of a value of several lines. */
const shortestLine = 8
/** Maps of values of ConfigMaps and Secrets. */
const valueMaps = ['data', 'stringData', 'binaryData']
/** A whole manifest as text. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
/** In podd's settings: values by the headers' names. */
const headerKey = /headers?$/iu
/** Keys of credentials in any file. */
const secretKey = /^(?:auth|identitytoken|registrytoken|password|token|hash)$/iu

/**
 * Collects and removes secrets in JSON: values of environment variables and headers, data of ConfigMaps and Secrets,
 * credentials. Then removes the same values from any text.
 */
export class Redaction {
  readonly #secrets = new Set<string>()
  #pattern: RegExp | undefined

  /**
   * Has `text` redact this value and its Base64 form.
   * @param isSecret whether it is known to be secret, however ordinary it looks
   */
  add(value: string, isSecret = false): void {
    if (value.length < shortestSecret || (!isSecret && isOrdinary(value))) return
    this.#secrets.add(value)
    this.#secrets.add(Buffer.from(value).toString('base64'))
    // As it stands in JSON, and where it is printed line by line.
    this.#secrets.add(JSON.stringify(value).slice(1, -1))
    if (!value.includes('\n') && !/[=:]/u.test(value)) return this.#forgetPattern()
    // Line by line, with the value that a line sets: `password = …`.
    for (const line of value.split('\n').map((text) => text.trim())) {
      const set = /^[^=:]{1,80}[=:](?<value>.+)$/u.exec(line)?.groups?.['value']?.trim() ?? ''
      for (const part of [line, set, set.replace(/^(["'])(.*)\1,?$/u, '$2')])
        if (part.length >= shortestLine) this.#secrets.add(part).add(Buffer.from(part).toString('base64'))
    }
    this.#forgetPattern()
  }

  /**
   * The same data without values that may be secret; `text` redacts these too.
   * @param isSecret it belongs to a Secret
   */
  json(value: Json, isSecret = false): Json {
    if (Array.isArray(value)) return value.map((item: Json) => this.json(item, isSecret))
    if (typeof value === 'string') this.#takeUrl(value)
    if (!isJsonObject(value)) return value
    const isOfSecret = isSecret || value['kind'] === 'Secret'
    const isVariable = typeof value['name'] === 'string' && typeof value['value'] === 'string'
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => {
        if (isVariable && key === 'value') return [key, this.#take(item, isOfSecret)]
        if (valueMaps.includes(key) && isJsonObject(item)) return [key, this.#takeMap(item, isOfSecret)]
        if (headerKey.test(key) && isJsonObject(item)) return [key, this.#takeHeaders(item)]
        if (secretKey.test(key) && typeof item === 'string') return [key, this.#takeCredential(item)]
        return [key, key === lastApplied ? this.#takeManifest(item, isOfSecret) : this.json(item, isOfSecret)]
      }),
    )
  }

  /** The text without any of these values, and without the credentials of URLs. */
  text(text: string): string {
    const named = text.replaceAll(/(?<=:\/\/)[^/\s"'@]+(?=@)/gu, redacted)
    if (this.#secrets.size === 0) return named
    // The longest first: one may contain another.
    this.#pattern ??= new RegExp(
      [...this.#secrets]
        .toSorted((a, b) => b.length - a.length)
        .map((secret) => secret.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, '\\$&'))
        .join('|'),
      'gu',
    )
    return named.replaceAll(this.#pattern, redacted)
  }

  #forgetPattern(): void {
    this.#pattern = undefined
  }

  #take(value: Json, isSecret: boolean): Json {
    if (typeof value === 'string') this.add(value, isSecret)
    return redacted
  }

  #takeHeaders(headers: JsonObject): Json {
    for (const value of Object.values(headers).flat())
      if (typeof value === 'string')
        // `Bearer TOKEN`: without its first word, too.
        for (const part of [value, ...value.split(' ').slice(1)]) this.add(part, true)
    return Object.keys(headers)
  }

  /**
   * What podd's settings hold and may not be shown: a value for manifests, that of a header. Words that occur everywhere
   * stay.
   */
  setting(text: string): void {
    // `Bearer TOKEN`: without its first word, too.
    for (const part of [text, ...text.split(' ').slice(1)]) this.add(part, /^\d+$/u.test(part))
  }

  /** The credentials before an `@`, the query and the fragment. */
  #takeUrl(value: string): void {
    if (!/^(?:https?|unix):\/\/.*[@?#]/u.test(value)) return
    for (const part of secretsOfUrl(value)) this.add(part, true)
  }

  /** A docker config has user and password in Base64. */
  #takeCredential(value: string): Json {
    this.add(value, true)
    const [user = '', ...password] = Buffer.from(value, 'base64').toString('utf8').split(':')
    if (password.length > 0 && /^[\x20-\x7e]+$/u.test(user)) this.add(password.join(':'), true)
    return redacted
  }

  #takeMap(values: JsonObject, isSecret: boolean): Json {
    return Object.fromEntries(
      Object.entries(values).map(([name, value]) => {
        if (typeof value !== 'string') return [name, redacted]
        this.add(value, isSecret)
        this.#addDecoded(value, isSecret)
        return [name, `<redacted, ${value.length} letters>`]
      }),
    )
  }

  #takeManifest(value: Json, isSecret: boolean): Json {
    if (typeof value === 'string') this.#takeJson(value, isSecret)
    return redacted
  }

  /** A Secret has its values in Base64; one of a registry holds a docker config in turn. */
  #addDecoded(value: string, isSecret: boolean): void {
    const bytes = Buffer.from(value, 'base64')
    if (bytes.toString('base64') !== value) return
    const text = bytes.toString('utf8')
    this.add(text, isSecret)
    this.#takeJson(text, isSecret)
  }

  /** The secrets in it, where it is JSON. */
  #takeJson(text: string, isSecret: boolean): void {
    try {
      const content: Json = JSON.parse(text)
      this.json(content, isSecret)
    } catch {
      // The whole text was added already.
    }
  }
}

/** Common values: removing them would make every text unreadable. */
function isOrdinary(value: string): boolean {
  return /^(?:true|false|null|none|default|info|debug|warn|error|\d{1,6}|\/[a-z/]{0,12})$/iu.test(value)
}
