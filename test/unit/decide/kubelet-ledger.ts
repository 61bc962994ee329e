/**
 * Which of our tests stands for a case of the kubelet's own tests (Kubernetes 1.36): a title in the section's
 * file, one in another file, or the reason why there is none. The cases are told in our words.
 */
export type Answer = string | { readonly file: string; readonly title: string } | { readonly none: string }

export interface LedgerSection {
  /** File and function of the kubelet's test. */
  readonly test: string
  /** Where our titles are, unless they name another file. */
  readonly file: string
  readonly cases: Readonly<Record<string, Answer>>
}

/** A title in a file of test/. */
export function at(file: string, title: string): Answer {
  return { file, title }
}

export function none(reason: string): Answer {
  return { none: reason }
}

/** The same answer to several cases. */
export function all(answer: Answer, ...cases: readonly string[]): Readonly<Record<string, Answer>> {
  return Object.fromEntries(cases.map((name) => [name, answer]))
}
