/** The README's picture of a terminal, drawn from the words that test/e2e/guide.test.ts holds to what podd prints. */

const columns = 100
const rowHeight = 18
const characterWidth = 7.8
const margin = 16
const barHeight = 28

/** The text of docs/terminal.svg: `$ ` begins what was typed, all else was printed. */
export function terminalSvg(transcript: string): string {
  const rows = transcript
    .trimEnd()
    .split('\n')
    .flatMap((line) => wrap(line, line.startsWith('$ ') ? 'typed' : 'printed'))
  const width = Math.round(columns * characterWidth + 2 * margin)
  const height = barHeight + rows.length * rowHeight + 2 * margin
  const lines = rows.map(({ text, kind }, at) => {
    const y = barHeight + margin + (at + 1) * rowHeight - 5
    return `<text x="${margin}" y="${y}" class="${kind}" xml:space="preserve">${escape(text)}</text>`
  })
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (colour, at) => `<circle cx="${margin + 4 + at * 18}" cy="14" r="5" fill="${colour}"/>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A terminal in which podd is used">
<!-- Made from docs/terminal.txt by \`npm run generate\`. -->
<style>
text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #d0d7de }
.typed { fill: #7ee787 }
</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
${[...dots, ...lines].join('\n')}
</svg>
`
}

interface Row {
  readonly text: string
  readonly kind: 'typed' | 'printed'
}

function wrap(line: string, kind: Row['kind']): readonly Row[] {
  if (line.length <= columns) return [{ text: line, kind }]
  const space = line.lastIndexOf(' ', columns)
  const end = space > columns / 2 ? space : columns
  return [{ text: line.slice(0, end), kind }, ...wrap(`  ${line.slice(end).trimStart()}`, kind)]
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
