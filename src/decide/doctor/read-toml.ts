/** The subset of TOML that podd reads: tables of texts, numbers, truth values and lists; no dates, no inline tables. */
export type TomlData = string | number | boolean | readonly TomlData[]

export interface TomlLine {
  /** The tables that it is in, from the top. */
  readonly table: readonly string[]
  readonly key: string
  readonly value: TomlData
}

export interface TomlReading {
  /** Headings of tables, in their order. */
  readonly tables: readonly (readonly string[])[]
  readonly lines: readonly TomlLine[]
  /** The first part that could not be read, with its line; undefined where all could. */
  readonly problem: string | undefined
}

/** Reads a small TOML file, such as containerd's `hosts.toml`. Never throws. */
export function readToml(text: string): TomlReading {
  const reader = new Reader(text)
  const tables: string[][] = []
  const lines: TomlLine[] = []
  let table: string[] = []
  for (;;) {
    reader.skip(true)
    if (reader.isAtEnd) return { tables, lines, problem: undefined }
    const heading = reader.take(/\[(?!\[)/uy) !== undefined
    const keys = reader.keys()
    if (keys === undefined) break
    if (heading) {
      if (reader.take(/[ \t]*\]/uy) === undefined) break
      table = keys
      tables.push(keys)
    } else {
      if (reader.take(/[ \t]*=/uy) === undefined) break
      const value = reader.value()
      const key = keys.at(-1)
      if (value === undefined || key === undefined) break
      lines.push({ table: [...table, ...keys.slice(0, -1)], key, value })
    }
    if (!reader.endsLine()) break
  }
  return { tables, lines, problem: `line ${reader.line} is not TOML that podd can read` }
}

/** Linear: each character is examined a few times at most. */
class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length
  }

  /** Counted from 1. */
  get line(): number {
    return this.#text.slice(0, this.#at).split('\n').length
  }

  /** Blanks, and where lines may end, comments and line ends too. */
  skip(overLines: boolean): void {
    this.take(overLines ? /(?:[ \t\r\n]|#[^\n]*)*/uy : /[ \t]*/uy)
  }

  /** The text at this position that matches the sticky pattern. */
  take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  keys(): string[] | undefined {
    const keys: string[] = []
    do {
      this.skip(false)
      const key = this.take(/[A-Za-z0-9_-]+/uy) ?? this.#quoted()
      if (key === undefined) return undefined
      keys.push(key)
      this.skip(false)
    } while (this.take(/\./uy) !== undefined)
    return keys
  }

  value(depth = 0): TomlData | undefined {
    this.skip(false)
    const quoted = this.#quoted()
    if (quoted !== undefined) return quoted
    const word = this.take(/(?:true|false|[+-]?[0-9][0-9_.]*)(?![A-Za-z0-9_.])/uy)
    if (word !== undefined)
      return word === 'true' || (word === 'false' ? false : Number(word.replaceAll('_', '')))
    if (depth > 3 || this.take(/\[/uy) === undefined) return undefined
    const items: TomlData[] = []
    for (;;) {
      this.skip(true)
      if (this.take(/\]/uy) !== undefined) return items
      const item = this.value(depth + 1)
      if (item === undefined) return undefined
      items.push(item)
      this.skip(true)
      if (this.take(/,/uy) === undefined && !/\]/u.test(this.#text.charAt(this.#at))) return undefined
    }
  }

  endsLine(): boolean {
    return this.take(/[ \t\r]*(?:#[^\n]*)?(?:\n|$)/uy) !== undefined
  }

  #quoted(): string | undefined {
    const literal = this.take(/'[^'\n]*'/uy)
    if (literal !== undefined) return literal.slice(1, -1)
    const basic = this.take(/"(?:[^"\\\n]|\\.)*"/uy)
    try {
      return basic === undefined ? undefined : String(JSON.parse(basic))
    } catch {
      // An escape that JSON doesn't have: the problem names this line as one that can't be read.
      return undefined
    }
  }
}
