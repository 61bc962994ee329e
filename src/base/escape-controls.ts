/**
 * Characters that are invisible or change the look of others: control characters; those that turn the direction of
 * text, join, separate or hide it (U+202E, U+200B, U+2028 and their kin); lone surrogates.
 */
const unseenInText = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]--[\n\t]]/gv
/** JSON and YAML already escape other control characters. */
const unseenInData = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]&&[\u{7f}-\u{10ffff}]]/gv

/**
 * Makes untrusted text safe for a terminal: characters that could move the cursor, change the screen, send keys or
 * disguise text become escapes (`^[`, `\u009b`, `\u202e`). Newlines and tabs stay.
 */
export function escapeControls(text: string): string {
  return text.replaceAll(unseenInText, (character) => {
    const code = character.codePointAt(0) ?? 0
    if (code < 0x80) return `^${String.fromCharCode(code ^ 0x40)}`
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${hex(code, 4)}`
  })
}

/** The same on one line. */
export function escapeLine(text: string): string {
  return escapeControls(text.replaceAll(/[\n\t]/gu, ' '))
}

/** Whether the text has characters that `escapeJson` and `escapeYaml` replace. */
export function hasUnseen(text: string): boolean {
  return text.search(unseenInData) >= 0
}

/** The same JSON with such characters escaped. */
export function escapeJson(text: string): string {
  return text.replaceAll(unseenInData, (character) =>
    Array.from({ length: character.length }, (_, index) => `\\u${hex(character.charCodeAt(index), 4)}`).join(
      '',
    ),
  )
}

/** The same for YAML in which all texts with `hasUnseen` are in double quotes. */
export function escapeYaml(text: string): string {
  return text.replaceAll(unseenInData, (character) => {
    const code = character.codePointAt(0) ?? 0
    return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`
  })
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0')
}
