export type TomlValue = string | number | boolean | readonly string[]
/** A table: its plain values and the tables in it. */
export interface TomlTable {
  readonly [key: string]: TomlValue | TomlTable
}

/** Writes a table as TOML: plain values first, then one `[heading]` per table in it. */
export function formatToml(table: TomlTable, path: readonly string[] = []): string {
  const lines: string[] = []
  const below: string[] = []
  for (const [key, value] of Object.entries(table)) {
    if (isTable(value)) below.push(formatToml(value, [...path, key]))
    else lines.push(`${formatKey(key)} = ${formatValue(value)}\n`)
  }
  const heading = path.length > 0 && lines.length > 0 ? `\n[${path.map(formatKey).join('.')}]\n` : ''
  return `${heading}${lines.join('')}${below.join('')}`
}

function isTable(value: TomlValue | TomlTable): value is TomlTable {
  return typeof value === 'object' && !Array.isArray(value)
}

function formatKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key)
}

/** JSON's escapes are a subset of those of TOML's basic strings. */
function formatValue(value: TomlValue): string {
  return Array.isArray(value)
    ? `[${value.map((item) => JSON.stringify(item)).join(', ')}]`
    : JSON.stringify(value)
}
