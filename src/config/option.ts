import type { Json } from '../base/json.ts'
import type { OptionType } from './option-type.ts'

/** One setting: the single place for its names, type, default and words about it. */
export interface Option<T> {
  /** The name in the file; dots lead into mappings. */
  readonly field: string
  /** The flag of `podd run`, without its dashes; undefined for a setting of the file alone. */
  readonly flag?: string
  readonly type: OptionType<T>
  readonly default: NoInfer<T>
  /** A description of the default where `default` can't show it. */
  readonly defaultText?: string
  /** The origin of the field name: a `kubelet` field may stand in a KubeletConfiguration too. */
  readonly owner: 'kubelet' | 'podd'
  /**
   * Whether a value may be a secret, or hold one: `false` for one that everybody may see who may see anything of podd;
   * otherwise what may be shown of it. Left out, it is a secret as a whole.
   */
  readonly secret?: false | Shown<NoInfer<T>>
  /**
   * A Go zero value (`0s`, `""`, `0`) in a KubeletConfiguration means unset, as the kubelet's optional fields are no
   * pointers (pkg/kubelet/apis/config/v1beta1/defaults.go, 1.36).
   */
  readonly zeroIsDefault?: boolean
  /** One or two sentences; the type implies the unit. */
  readonly doc: string
}

/** As a method, so that an option of any type is one of `unknown`. */
type Shown<T> = { shown(value: T): Json }['shown']

/** What is shown of a value that may be secret. */
export const redacted = '<redacted>'

/** The names of a mapping, each with a list as the kubelet has the values of headers. */
export function withoutValues(mapping: Readonly<Record<string, unknown>>): Json {
  return Object.fromEntries(
    Object.entries(mapping).map(([name, value]) => [name, Array.isArray(value) ? [redacted] : redacted]),
  )
}

/** Infers the type of the option's values. */
export function option<T>(described: Option<T>): Option<T> {
  return described
}
