const letters: Readonly<Record<string, string>> = {
  a: '\u{7}',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
}

/**
 * What text in such quotes stands for in Go (`strconv.UnquoteChar`); undefined where an escape is none. Of bytes
 * (`\xe9`, `\351`) those above 127 are the characters of that number.
 */
export function unquoteText(text: string, quote: string): string | undefined {
  let isWrong = false
  const value = text.replaceAll(
    /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-3][0-7]{2})|(.?))/gu,
    (written, byte?: string, four?: string, eight?: string, octal?: string, letter?: string) => {
      const code =
        octal === undefined ? Number.parseInt(byte ?? four ?? eight ?? '', 16) : Number.parseInt(octal, 8)
      if (letter === undefined && code <= 0x10_ff_ff) return String.fromCodePoint(code)
      const found = letter === quote ? quote : letters[letter ?? '']
      isWrong ||= found === undefined
      return found ?? written
    },
  )
  return isWrong ? undefined : value
}
