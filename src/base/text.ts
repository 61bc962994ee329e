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

/** Escape sequences for terminals, such as colours. */
const escapeSequences = new RegExp(
  `${String.fromCodePoint(0x1b)}(?:\\[[\\d;?]*[ -/]*[@-~]|[@-Z\\\\-_])`,
  'gu',
)

/** The text without escape sequences for terminals; parts of one stay. */
export function withoutEscapeSequences(text: string): string {
  return text.replaceAll(escapeSequences, '')
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

/** Formats a size as the kubelet does (`12.3 GiB`). */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const at = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)))
  return at === 0 ? `${bytes} B` : `${(bytes / 1024 ** at).toFixed(1)} ${units[at]}`
}

/**
 * The known name that was probably meant, or undefined where none is similar. Case is ignored, and a transposition
 * counts as one error.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const limit = Math.max(1, Math.floor(name.length / 3))
  const lower = name.toLowerCase()
  let best: string | undefined
  let bestDistance = limit + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) > limit) continue
    const distance = editDistance(lower, candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Optimal string alignment distance. */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let cost = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, substitution)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (beforePrevious[j - 2] ?? 0) + 1)
      }
      current.push(cost)
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length] ?? 0
}

/** `1s`, `1m30s`, `2h0m0s`, `250ms`, as Go prints a duration. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor(ms / 60_000) % 60
  const seconds = `${(ms % 60_000) / 1000}s`
  if (hours > 0) return `${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${minutes}m${seconds}` : seconds
}

/**
 * A relative path without empty steps, `.` and a slash at its end: `./a//b/` is `a/b`, and nothing at all is
 * `.` (Go's path.Clean, for paths that hold no `..`).
 */
export function cleanPath(path: string): string {
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  return names.length === 0 ? '.' : names.join('/')
}
