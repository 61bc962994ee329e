import { element } from './dom.ts'

/** A cell: text, or what stands in it. */
export type Cell = string | readonly Node[]

export interface Column {
  readonly title: string
  /** It holds a figure with a chart. */
  readonly isFigure?: true
}

/** A table that is a list of cards where the screen is narrow. */
export function table(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
): HTMLElement {
  const headings = columns.map(({ title }) => element('th', { scope: 'col', role: 'columnheader' }, title))
  const body = rows.map((cells) =>
    element(
      'tr',
      { role: 'row' },
      ...cells.map((cell, at) => {
        const { title = '', isFigure } = columns[at] ?? {}
        return element(
          'td',
          { role: 'cell', 'data-label': title, class: isFigure && 'figure' },
          // A card shows its label and its value beside each other.
          element('span', {}, ...(typeof cell === 'string' ? [cell] : cell)),
        )
      }),
    ),
  )
  // Elements that are displayed as blocks lose their roles in some browsers.
  return element(
    'table',
    { role: 'table', 'aria-label': caption },
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...headings)),
    element('tbody', { role: 'rowgroup' }, ...body),
  )
}
