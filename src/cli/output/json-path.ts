import { UsageError } from '../arguments/usage-error.ts'

/** One step into a value. */
export type JsonPathStep =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'equals'; readonly path: readonly JsonPathStep[]; readonly value: string }

const token =
  /\.?\[\?\(@(?<left>[^=]*?)\s*==\s*(?<quote>["']?)(?<right>.*?)\k<quote>\)\]|\.?\['(?<quoted>(?:\\.|[^'])*)'\]|\.?\[(?<index>-?\d+|\*)\]|\.(?<key>(?:\\.|[^.[\]\\])+)/uy

/**
 * Parses the common subset of kubectl's JSONPath: `{.status.conditions[?(@.type=="Ready")].status}`, keys with escaped
 * dots, indexes and `[*]`; braces and the first dot may be left out. Throws UsageError.
 */
export function readJsonPath(text: string): readonly JsonPathStep[] {
  const inner = text.replace(/^\{(.*)\}$/su, '$1').replace(/^\$/u, '')
  const path = /^[.[]/u.test(inner) ? inner : `.${inner}`
  const steps: JsonPathStep[] = []
  const scan = new RegExp(token)
  while (scan.lastIndex < path.length) {
    const { groups } = scan.exec(path) ?? {}
    if (groups === undefined) throw new UsageError(`${JSON.stringify(text)} is no JSONPath that podd knows`)
    const { left, right, quoted, index, key } = groups
    if (left !== undefined) steps.push({ kind: 'equals', path: readJsonPath(left), value: right ?? '' })
    else if (index === '*') steps.push({ kind: 'all' })
    else if (index !== undefined) steps.push({ kind: 'index', index: Number(index) })
    else steps.push({ kind: 'key', key: (quoted ?? key ?? '').replaceAll(/\\(.)/gu, '$1') })
  }
  return steps
}

/** The values at a path; none where there are none. */
export function selectJsonPath(value: unknown, steps: readonly JsonPathStep[]): readonly unknown[] {
  return steps.reduce<readonly unknown[]>(
    (values, step) => values.flatMap((each) => take(each, step)),
    [value],
  )
}

function take(value: unknown, step: JsonPathStep): readonly unknown[] {
  switch (step.kind) {
    case 'key': {
      const found = isMapping(value) ? value[step.key] : undefined
      return found === undefined ? [] : [found]
    }
    case 'index': {
      const found: unknown = Array.isArray(value) ? value.at(step.index) : undefined
      return found === undefined ? [] : [found]
    }
    case 'all':
      return Array.isArray(value) ? value : isMapping(value) ? Object.values(value) : []
    case 'equals':
      return Array.isArray(value)
        ? value.filter((item) => selectJsonPath(item, step.path).some((each) => String(each) === step.value))
        : []
  }
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
