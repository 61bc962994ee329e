export interface TokenEntry {
  readonly token: string
  readonly user: string
  readonly groups: readonly string[]
}

/**
 * Reads a file of tokens: a line for each, `token,user,uid,"group1,group2"`, the groups optional (kube-apiserver's
 * `--token-auth-file`, 1.36). Problems never contain a token.
 */
export function parseTokens(text: string): {
  readonly entries: readonly TokenEntry[]
  readonly problems: readonly string[]
} {
  const entries: TokenEntry[] = []
  const problems: string[] = []
  for (const [index, line] of text.split(/\r?\n/u).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue
    const [token = '', user = '', uid, groups = ''] = splitFields(line)
    if (token === '' || user === '' || uid === undefined)
      problems.push(`line ${index + 1} is not token,user,uid[,"groups"]`)
    else if (entries.some((entry) => entry.token === token))
      problems.push(`line ${index + 1} repeats the token of an earlier line`)
    else entries.push({ token, user, groups: groups.split(',').filter((group) => group !== '') })
  }
  return { entries, problems }
}

/** Fields of a line of CSV; one in quotes may contain commas. */
function splitFields(line: string): readonly string[] {
  const found = line.matchAll(/(?:^|,)\s*(?:"(?<quoted>(?:[^"]|"")*)"|(?<plain>[^,]*))/gu)
  return [...found].map(
    ({ groups }) => groups?.['quoted']?.replaceAll('""', '"') ?? groups?.['plain']?.trim() ?? '',
  )
}
