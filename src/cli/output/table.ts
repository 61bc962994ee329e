import { escapeLine } from '../../base/text.ts'

const gap = 3
/** With the gap, what kubectl's tabwriter makes of the narrowest column. */
const narrowest = 3

/** Lays rows out in columns. Later rows keep the widths of the first ones. */
export class Table {
  #widths: readonly number[] = []

  /**
   * A line for each row, with its newline.
   * @param paint gives a cell its colour, which takes no room
   */
  layOut(cells: readonly (readonly string[])[], paint: Paint = (text) => text): string {
    const rows = cells.map((row) => row.map((cell) => escapeLine(cell)))
    const count = Math.max(this.#widths.length, ...rows.map((row) => row.length))
    this.#widths = Array.from({ length: count }, (_, column) =>
      Math.max(this.#widths[column] ?? narrowest, ...rows.map((row) => cellWidth(row[column] ?? ''))),
    )
    return rows.map((row) => `${this.#line(row, paint)}\n`).join('')
  }

  #line(row: readonly string[], paint: Paint): string {
    return row
      .map((cell, column) => {
        const isLast = column === row.length - 1
        const shown = paint(cell, column)
        return isLast ? shown : shown + ' '.repeat((this.#widths[column] ?? 0) + gap - cellWidth(cell))
      })
      .join('')
      .trimEnd()
  }
}

type Paint = (cell: string, column: number) => string

const goodStates: readonly string[] = [
  'Running',
  'Completed',
  'Succeeded',
  'Ready',
  'Complete',
  'Active',
  'Healthy',
  'Following',
]
const startingStates =
  /^(?:Pending|ContainerCreating|PodInitializing|Init:\d+\/\d+|Terminating|NotReady|Progressing|Suspended|Held.*)$/u

/** A word of a column like STATUS in the colour of a terminal: green where all is well, yellow on the way, red otherwise. */
export function paintState(word: string): string {
  const colour = goodStates.includes(word) ? 32 : startingStates.test(word) ? 33 : 31
  return `\u{1b}[${colour}m${word}\u{1b}[0m`
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

/** Two lines of a narrow terminal. */
const maxLetters = 160

const headLetters = 60

/** One line of at most two lines' length; of a longer one how it begins, and how it ends: the cause stands there. */
export function shorten(text: string): string {
  const line = text.trim().replaceAll(/\s+/gu, ' ')
  if (line.length <= maxLetters) return line
  const head = cutAfter(line.slice(0, headLetters))
  const tail = line.slice(line.length - (maxLetters - head.length - 2))
  const colon = tail.indexOf(': ')
  // From a whole clause on, unless little is left then.
  const isNear = colon >= 0 && colon < tail.length / 2
  return `${head}… ${isNear ? tail.slice(colon + 2) : tail}`
}

/** Up to the end of a clause, or else of a word. */
function cutAfter(text: string): string {
  const at = Math.max(text.lastIndexOf(': ') + 2, 0)
  return at > text.length / 2
    ? text.slice(0, at)
    : text.slice(0, Math.max(text.lastIndexOf(' ') + 1, 0)) || text
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
