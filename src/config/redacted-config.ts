import type { Json } from '../base/json.ts'
import { isJsonObject } from '../base/json.ts'
import { secretsOfUrl } from '../base/http-forms.ts'
import { redacted } from './option.ts'
import type { Option } from './option.ts'
import { listOptions } from './options.ts'
import type { PoddConfig } from './options.ts'

/**
 * The settings as they may be shown, by their keys in the code: the one view of them that leaves the process (`/configz`,
 * support bundles), by what the table of options says of each.
 */
export function redactConfig(config: PoddConfig): Readonly<Record<string, Json>> {
  return Object.fromEntries(
    listOptions().flatMap(([key, option]) => {
      const value = config[key]
      return value === undefined ? [] : [[key, redactValue(option, value)]]
    }),
  )
}

/** What may be shown of an option's value; of an option that doesn't say, nothing. */
export function redactValue({ secret }: Pick<Option<unknown>, 'secret'>, value: unknown): Json {
  if (secret === undefined) return redacted
  return secret === false ? asJson(value) : secret(value)
}

/** The settings that a KubeletConfiguration has too, under its fields, as they may be shown. */
export function kubeletConfigOf(config: PoddConfig): Readonly<Record<string, Json>> {
  const shown: Record<string, Json> = {}
  for (const [key, option] of listOptions()) {
    const value = config[key]
    if (option.owner !== 'kubelet' || value === undefined) continue
    const isPlain = typeof value === 'boolean' || (typeof value === 'number' && !key.endsWith('Ms'))
    const isShown = option.secret === false && !isPlain
    shown[option.field] = isShown ? option.type.format(value) : redactValue(option, value)
  }
  return shown
}

/** All texts that the settings hold and `redactConfig` hides, to be taken out of whatever else is shown. */
export function secretTexts(config: PoddConfig): readonly string[] {
  const texts = listOptions().flatMap(([key, option]) => {
    if (option.secret === false) return []
    const shown = new Set(textsIn(redactValue(option, config[key])))
    return textsIn(asJson(config[key])).filter((text) => !shown.has(text))
  })
  return texts.concat(texts.flatMap((text) => secretsOfUrl(text)))
}

function textsIn(value: Json): readonly string[] {
  if (typeof value === 'string') return value === '' ? [] : [value]
  if (Array.isArray(value)) return value.flatMap((item: Json) => textsIn(item))
  return isJsonObject(value) ? Object.values(value).flatMap((item) => textsIn(item ?? null)) : []
}

function asJson(value: unknown): Json {
  const json: Json = JSON.parse(JSON.stringify(value ?? null))
  return json
}
