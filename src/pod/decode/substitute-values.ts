import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldPath, FieldProblem } from '../schema/issues.ts'
import { nearestName } from '../../base/text.ts'

/** The values of `${NAME}` on this host. */
export type HostValues = Readonly<Record<string, string>>

/** The most bytes that all values may add to one document. */
const maxAddedCharacters = 1024 * 1024

export interface Substituted {
  /** Where a name is unknown the text stays unchanged. */
  readonly value: JsonObject
  readonly problems: readonly FieldProblem[]
}

/**
 * Substitutes a host's values for `${NAME}` in all strings of a document except its `apiVersion` and `kind`; `$${` is
 * an escaped `${`. Keys stay unchanged, and values are not expanded again, so that no value changes a document's
 * structure.
 */
export function substituteValues({ apiVersion, kind, ...rest }: JsonObject, values: HostValues): Substituted {
  const substitution = new Substitution(values)
  const result = substitution.object(rest, [])
  return {
    value: {
      ...(apiVersion !== undefined && { apiVersion }),
      ...(kind !== undefined && { kind }),
      ...result,
    },
    problems: substitution.problems,
  }
}

class Substitution {
  readonly problems: FieldProblem[] = []
  readonly #values: HostValues
  #added = 0

  constructor(values: HostValues) {
    this.#values = values
  }

  object(value: JsonObject, at: FieldPath): JsonObject {
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, item]) =>
        item === undefined ? [] : [[key, this.#any(item, [...at, key])]],
      ),
    )
  }

  #any(value: Json, at: FieldPath): Json {
    if (typeof value === 'string') return value.includes('${') ? this.#text(value, at) : value
    if (Array.isArray(value)) return value.map((item: Json, index) => this.#any(item, [...at, index]))
    return isJsonObject(value) ? this.object(value, at) : value
  }

  #text(text: string, path: FieldPath): string {
    return text.replaceAll(/\$\$\{|\$\{([^${}]*)(\}?)/gu, (found, name: string | undefined, end: string) => {
      if (name === undefined) return '${'
      const value = end === '' || !Object.hasOwn(this.#values, name) ? undefined : this.#values[name]
      if (value === undefined) {
        this.#refuse(path, found, end === '' ? undefined : name)
        return found
      }
      this.#added += value.length
      if (this.#added <= maxAddedCharacters) return value
      if (this.#added - value.length <= maxAddedCharacters)
        this.problems.push({
          severity: 'error',
          path,
          message: `the values of this host add more than ${maxAddedCharacters / 2 ** 20} MiB to this document`,
        })
      return found
    })
  }

  #refuse(path: FieldPath, found: string, name: string | undefined): void {
    const near = name === undefined ? undefined : nearestName(name, Object.keys(this.#values))
    const escaped = `for the text itself, write $${found}`
    this.problems.push({
      severity: 'error',
      path,
      message: name === undefined ? `${found} is not closed` : `this host has no value ${found}`,
      hint: near === undefined ? escaped : `did you mean \${${near}}? ${escaped}`,
    })
  }
}
