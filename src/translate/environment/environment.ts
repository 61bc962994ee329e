/** The values of `$(NAME)`. */
export type Environment = ReadonlyMap<string, string>

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reference'; readonly name: string; readonly written: string }

/**
 * Splits a text into `$(NAME)` references and the text between them, as the kubelet does
 * (`third_party/forked/golang/expansion`, 1.36): `$$` is one `$`, an unclosed reference is text.
 */
export function* splitReferences(text: string): Generator<Part, void> {
  let at = 0
  // Searching again at each `$(` for a missing bracket would take quadratic time.
  let lastClose: number | undefined
  while (at < text.length) {
    const dollar = text.indexOf('$', at)
    if (dollar !== at) yield { kind: 'text', text: text.slice(at, dollar < 0 ? undefined : dollar) }
    if (dollar < 0) return
    const next = text[dollar + 1]
    if (next === '(') lastClose ??= text.lastIndexOf(')')
    if (next === '(' && lastClose !== undefined && lastClose > dollar) {
      const close = text.indexOf(')', dollar)
      const written = text.slice(dollar, close + 1)
      yield { kind: 'reference', name: written.slice(2, -1), written }
      at = close + 1
    } else {
      yield { kind: 'text', text: '$' }
      at = dollar + (next === '$' ? 2 : 1)
    }
  }
}

/**
 * Expands `$(NAME)` references: an unknown one stays as written, and values are not expanded again.
 * @param maxBytes what neither the text nor what it gives may take in UTF-8
 * @returns undefined where it would be more
 */
export function expandReferences(
  text: string,
  environment: Environment,
  maxBytes: number,
): string | undefined {
  // A character takes one byte or more.
  if (text.length > maxBytes) return undefined
  let expanded = ''
  for (const part of splitReferences(text)) {
    expanded += part.kind === 'text' ? part.text : (environment.get(part.name) ?? part.written)
    if (expanded.length > maxBytes) return undefined
  }
  return Buffer.byteLength(expanded) > maxBytes ? undefined : expanded
}
