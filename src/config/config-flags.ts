import type { OptionKey, PoddConfig } from './options.ts'
import { completeConfig, listOptions } from './options.ts'
import type { ConfigFile } from './read-config-file.ts'
import { PoddError } from '../base/errors.ts'

/** One flag of `podd run` as it was written. */
interface FlagValue {
  /** Without its dashes. */
  readonly flag: string
  /** Empty for a switch that stands alone. */
  readonly text: string
}

/**
 * The values that flags give. Throws PoddError BAD_FLAG for the first one that is wrong; `warn` is called for values
 * without effect.
 */
export function readConfigFlags(
  flags: readonly FlagValue[],
  warn: (message: string) => void = () => undefined,
): ConfigFile['values'] {
  const values: Partial<Record<OptionKey, unknown>> = {}
  for (const { flag, text } of flags) {
    const found = listOptions().find(([, option]) => option.flag === flag)
    if (found === undefined) throw new PoddError('BAD_FLAG', `unknown flag --${flag}`)
    const [key, option] = found
    const decoded = option.type.fromText(text)
    if (decoded.kind === 'bad') throw new PoddError('BAD_FLAG', `--${flag} ${decoded.message}`)
    for (const warning of decoded.warnings ?? []) warn(`--${flag}: ${warning}`)
    const merged = key in values ? option.type.merge?.(values[key], decoded.value) : undefined
    values[key] = merged ?? decoded.value
  }
  return values
}

/** Merges settings: flags override the file, which overrides the defaults. */
export function mergeConfig(file: ConfigFile['values'], flags: ConfigFile['values']): PoddConfig {
  return completeConfig({ ...file, ...flags })
}
