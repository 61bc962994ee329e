import { createHash } from 'node:crypto'
import type { Verdict } from './verdict.ts'

/** What the API server said of a list of documents, in their order. */
export interface Recording {
  /** Of the documents: a changed one needs a new recording (`npm run judge -- --record`). */
  readonly digest: string
  readonly fields: readonly string[]
  /** A letter for the step, and the numbers of its fields. */
  readonly verdicts: readonly string[]
  /** What was said of the values of a document, by its number; of the documents made by hand. */
  readonly words?: Readonly<Record<string, readonly string[]>>
}

const letters = { accepted: 'a', types: 't', unknown: 'u', values: 'v', admission: 'f' } as const

export function record(
  texts: readonly string[],
  verdicts: readonly Verdict[],
  { withWords }: { readonly withWords: boolean },
): Recording {
  const fields = [...new Set(verdicts.flatMap((verdict) => verdict.fields))].sort()
  const numbers = new Map(fields.map((field, index) => [field, index]))
  return {
    digest: digestOf(texts),
    fields,
    verdicts: verdicts.map(
      ({ step, fields: own }) => letters[step] + own.map((field) => numbers.get(field)).join(','),
    ),
    ...(withWords && {
      words: Object.fromEntries(
        verdicts.flatMap(({ words }, index) => (words === undefined ? [] : [[String(index), words]])),
      ),
    }),
  }
}

export function recalled({ fields, verdicts, words }: Recording): readonly Verdict[] {
  return verdicts.map((text, index) => {
    const step = steps.find((name) => letters[name] === text[0])
    if (step === undefined) throw new Error(`no step: ${text}`)
    const numbers = text.slice(1) === '' ? [] : text.slice(1).split(',')
    const said = words?.[String(index)]
    return {
      step,
      fields: numbers.map((number) => fields[Number(number)] ?? ''),
      ...(said !== undefined && { words: said }),
    }
  })
}

const steps = ['accepted', 'types', 'unknown', 'values', 'admission'] as const

export function digestOf(texts: readonly string[]): string {
  return createHash('sha256').update(texts.join('\0')).digest('hex').slice(0, 16)
}
