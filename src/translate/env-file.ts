/**
 * The value of one key in a file of `NAME='value'` lines; undefined where the file doesn't name it. Values
 * stand in single quotes, literally, and may span lines; a comment may follow them. A blank right after `=`
 * makes the value empty (`pkg/kubelet/util/env/env_util.go`, 1.36).
 * @throws Error where a line before the key is of another form; the message says no more than which line
 */
export function readEnvFile(text: string, key: string): string | undefined {
  const lines = text.split(/\r?\n/u)
  for (let at = 0; at < lines.length; at += 1) {
    const line = (lines[at] ?? '').replace(/^[ \t]+/u, '')
    if (line === '' || line.startsWith('#')) continue
    const [name, rest] = splitLine(line, at)
    if (/^[ \t]/u.test(rest)) {
      if (name !== key) continue
      return ''
    }
    if (!rest.startsWith("'")) throw badLine(at, 'value must be enclosed in single quotes')
    const start = at
    let value = rest.slice(1)
    while (!value.includes("'")) {
      at += 1
      const more = lines[at]
      if (more === undefined) throw badLine(start, 'unclosed single quote')
      value += `\n${more}`
    }
    const end = value.indexOf("'")
    if (!/^[ \t]*(?:#|$)/u.test(value.slice(end + 1))) {
      throw badLine(at, 'unexpected content after closing quote')
    }
    if (name === key) return value.slice(0, end)
  }
  return undefined
}

function splitLine(line: string, at: number): readonly [name: string, rest: string] {
  const equals = line.indexOf('=')
  if (equals < 0) throw badLine(at, "missing '='")
  const name = line.slice(0, equals)
  if (name.trim() === '') throw badLine(at, 'empty variable name')
  if (/[ \t]$/u.test(name)) throw badLine(at, "whitespace before '=' is not allowed")
  return [name, line.slice(equals + 1)]
}

function badLine(at: number, what: string): Error {
  return new Error(`invalid environment variable format at line ${at + 1}: ${what}`)
}
