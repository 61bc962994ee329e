/**
 * Which of our tests stands for a case of the kubelet's own tests (Kubernetes 1.36): the id of one in the section's
 * file, or in another file, or the reason why there is none. A test gets its id from a line `// id: restarts-ended` right
 * above its title, or from `proves` (test/support/proves.ts). The cases are told in our words.
 */
export type Answer = string | { readonly file: string; readonly id: string } | { readonly none: string }

export interface LedgerSection {
  /** File and function of the kubelet's test. */
  readonly test: string
  /** Where our tests are, unless an answer names another file. */
  readonly file: string
  readonly cases: Readonly<Record<string, Answer>>
}

/** A test in a file of test/. */
export function at(file: string, id: string): Answer {
  return { file, id }
}

export function none(reason: string): Answer {
  return { none: reason }
}

/** The same answer to several cases. */
export function all(answer: Answer, ...cases: readonly string[]): Readonly<Record<string, Answer>> {
  return Object.fromEntries(cases.map((name) => [name, answer]))
}
