/**
 * Text from elsewhere as a terminal may have it: control characters, which could move the cursor, change what stands
 * there or send keys, are shown instead (`^[`, `\u009b`). Newlines and tabs stay.
 */
export function escapeControls(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, (control) => {
    const code = control.charCodeAt(0)
    return code < 0x80 ? `^${String.fromCharCode(code ^ 0x40)}` : `\\u00${code.toString(16)}`
  })
}

/** The same on one line. */
export function escapeLine(text: string): string {
  return escapeControls(text.replaceAll(/[\n\t]/gu, ' '))
}
