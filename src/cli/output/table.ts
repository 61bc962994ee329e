import { escapeLine } from '../../base/text.ts'

const gap = 3
/** With the gap, what kubectl's tabwriter makes of the narrowest column. */
const narrowest = 3

/** Lays rows out in columns. Later rows keep the widths of the first ones. */
export class Table {
  #widths: readonly number[] = []

  /** A line for each row, with its newline. */
  layOut(cells: readonly (readonly string[])[]): string {
    const rows = cells.map((row) => row.map((cell) => escapeLine(cell)))
    const count = Math.max(this.#widths.length, ...rows.map((row) => row.length))
    this.#widths = Array.from({ length: count }, (_, column) =>
      Math.max(this.#widths[column] ?? narrowest, ...rows.map((row) => cellWidth(row[column] ?? ''))),
    )
    return rows.map((row) => `${this.#line(row)}\n`).join('')
  }

  #line(row: readonly string[]): string {
    return row
      .map((cell, column) => {
        const isLast = column === row.length - 1
        return isLast ? cell : cell + ' '.repeat((this.#widths[column] ?? 0) + gap - cellWidth(cell))
      })
      .join('')
      .trimEnd()
  }
}

function cellWidth(cell: string): number {
  return Array.from(cell).length
}

export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** `1 pod`, `2 pods`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** In powers of 1000 with three digits, as crictl shows sizes. */
export function formatImageSize(sizeBytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let size = sizeBytes
  let unit = 0
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit += 1
  }
  return `${Number(size.toPrecision(3))}${units[unit] ?? 'B'}`
}
