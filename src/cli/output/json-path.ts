import { UsageError } from '../arguments/usage-error.ts'

/** One step into a value. */
export type JsonPathStep =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'exists'; readonly path: readonly JsonPathStep[] }
  | {
      readonly kind: 'compare'
      readonly path: readonly JsonPathStep[]
      readonly operator: string
      readonly value: string
    }

const token =
  /\.?\[\?\(@(?<left>[^=!<>&|()]*?)\s*(?:(?<operator>==|!=|<=|>=|<|>)\s*(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<bare>[^\s"'&|()]+))\s*)?\)\]|\.?\['(?<quoted>(?:\\.|[^'])*)'\]|\.?\[(?<index>-?\d+|\*)\]|\.(?<key>(?:\\.|[^.[\]\\])+)/uy

/**
 * Parses the common subset of kubectl's JSONPath: `{.status.conditions[?(@.type=="Ready")].status}`, filters with the
 * other comparisons and for what is there (`[?(@.ready)]`), keys with escaped dots, indexes and `[*]`; braces and the
 * first dot may be left out. Throws UsageError.
 */
export function readJsonPath(text: string): readonly JsonPathStep[] {
  const inner = text.replace(/^\{(.*)\}$/su, '$1').replace(/^\$/u, '')
  const path = /^[.[]/u.test(inner) ? inner : `.${inner}`
  const steps: JsonPathStep[] = []
  const scan = new RegExp(token)
  while (scan.lastIndex < path.length) {
    const { groups } = scan.exec(path) ?? {}
    if (groups === undefined) throw new UsageError(`${JSON.stringify(text)} is no JSONPath that podd knows`)
    const { left, operator, double, single, bare, quoted, index, key } = groups
    if (left !== undefined) {
      const of = left === '' ? [] : readJsonPath(left)
      const value = double ?? single ?? bare ?? ''
      steps.push(
        operator === undefined
          ? { kind: 'exists', path: of }
          : { kind: 'compare', path: of, operator, value },
      )
    } else if (index === '*') steps.push({ kind: 'all' })
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
    case 'exists':
      return Array.isArray(value) ? value.filter((item) => selectJsonPath(item, step.path).length > 0) : []
    case 'compare':
      return Array.isArray(value)
        ? value.filter((item) =>
            selectJsonPath(item, step.path).some((each) => compares(each, step.operator, step.value)),
          )
        : []
  }
}

/** Numbers by their value, all else by its text. What isn't there is not compared at all, as in kubectl. */
function compares(found: unknown, operator: string, given: string): boolean {
  const text = String(found)
  if (operator === '==') return text === given
  if (operator === '!=') return text !== given
  const number = Number(given)
  const isNumeric = typeof found === 'number' && given !== '' && !Number.isNaN(number)
  const order = isNumeric ? found - number : text < given ? -1 : Number(text > given)
  switch (operator) {
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    default:
      return order >= 0
  }
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
