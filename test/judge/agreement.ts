import type { Corpus } from './corpus.ts'
import { compareVerdicts, isBelow, poddVerdict } from './verdict.ts'
import type { Verdict } from './verdict.ts'

/** How podd's verdicts on a corpus stand to the API server's. */
export interface Agreement {
  readonly documents: number
  /** Taken by the API server, and refused here as not supported and for nothing else: not counted below. */
  readonly decisions: readonly string[]
  /** Names of the documents that only one of the two takes. */
  readonly differing: readonly string[]
  /** Of those that both refuse. */
  readonly refused: number
  readonly otherFields: readonly string[]
  /** Of those, where words of the API server are known that podd doesn't say. */
  readonly otherWords: readonly string[]
}

export async function measureAgreement(
  { documents }: Pick<Corpus, 'documents'>,
  verdicts: readonly Verdict[],
): Promise<Agreement> {
  const decisions: string[] = []
  const differing: string[] = []
  const otherFields: string[] = []
  const otherWords: string[] = []
  let refused = 0
  for (const [index, { name, text }] of documents.entries()) {
    const verdict = verdicts[index]
    if (verdict === undefined) throw new Error(`no verdict on ${name}`)
    const podd = await poddVerdict(text)
    const { isDecision, sameVerdict, sameFields } = compareVerdicts(podd, verdict)
    if (isDecision && verdict.step === 'accepted') decisions.push(name)
    else if (!sameVerdict) differing.push(name)
    if (sameFields === undefined) continue
    refused += 1
    if (!sameFields) otherFields.push(name)
    const words = verdict.words?.filter((text) => !isBelow(text, podd.refused)) ?? []
    if (!words.every((text) => podd.words.includes(text))) otherWords.push(name)
  }
  return { documents: documents.length, decisions, differing, refused, otherFields, otherWords }
}

/** Percent of the verdicts, and of the fields of what both refuse, that agree. */
export function percentages({ documents, decisions, differing, refused, otherFields }: Agreement): {
  readonly verdicts: number
  readonly fields: number
} {
  const counted = documents - decisions.length
  return {
    verdicts: 100 * (1 - differing.length / counted),
    fields: refused === 0 ? 100 : 100 * (1 - otherFields.length / refused),
  }
}
