import { UsageError } from './usage-error.ts'

const podHint = 'Write POD or pod/POD.'

/**
 * The name in a POD argument: `web`, `pod/web`, `pods/web` or `po/web`. Throws UsageError for any other kind.
 * @param verb the word of the verb, for the message
 */
export function readPodName(word: string, verb: string, hint = podHint): string {
  const slash = word.indexOf('/')
  if (slash === -1) return word
  const name = word.slice(slash + 1)
  if (!isPodWord(word.slice(0, slash))) throw podsOnly(word, verb, hint)
  if (name === '' || name.includes('/')) throw new UsageError(`${JSON.stringify(word)} names no pod`, podHint)
  return name
}

/** Whether it is a name of the kind, in whatever case. */
export function isPodWord(word: string): boolean {
  return /^(?:pods?|po)$/iu.test(word)
}

/** `word` names another kind, or an object of one. */
export function podsOnly(word: string, verb: string, hint = podHint): UsageError {
  return new UsageError(`podd ${verb} takes pods only, not ${JSON.stringify(word)}`, hint)
}
