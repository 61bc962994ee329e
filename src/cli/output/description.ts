import { escapeControls } from '../../base/text.ts'

/** Builds an indented text of labelled values, as `kubectl describe` writes it. */
export class Description {
  readonly #lines: string[] = []

  /** `Label:  value`; further lines of the value below it. */
  add(
    level: number,
    label: string,
    value: string | readonly string[],
    width = level === 0 ? 18 : 20 - 2 * level,
  ): void {
    const lines = linesOf(typeof value === 'string' ? [value] : value)
    const head = `${'  '.repeat(level)}${`${label}:`.padEnd(width)}`
    const [first = '<none>', ...rest] = lines
    this.#lines.push(`${head}${first}`.trimEnd())
    for (const line of rest) this.#lines.push(`${' '.repeat(head.length)}${line}`)
  }

  /** A label, with its content on lines of their own, one level deeper. */
  addBlock(level: number, label: string, lines: readonly string[]): void {
    if (lines.length === 0) {
      this.add(level, label, '<none>')
      return
    }
    this.#lines.push(`${'  '.repeat(level)}${label}:`)
    for (const line of linesOf(lines)) this.#lines.push(`${'  '.repeat(level + 1)}${line}`)
  }

  addLine(level: number, line: string): void {
    this.#lines.push(`${'  '.repeat(level)}${line}`)
  }

  toString(): string {
    return escapeControls(`${this.#lines.join('\n')}\n`)
  }
}

/** Further lines of a value are indented, so that they don't look like separate values. */
function linesOf(values: readonly string[]): readonly string[] {
  return values.flatMap((value) => value.trimEnd().replaceAll('\n', '\n  ').split('\n'))
}

/** As kubectl writes times: `Fri, 20 Nov 2026 11:08:02 +0000`. */
export function describeTime(time: string | undefined): string {
  const timeMs = time === undefined ? Number.NaN : Date.parse(time)
  return Number.isNaN(timeMs) ? '<unknown>' : new Date(timeMs).toUTCString().replace('GMT', '+0000')
}
