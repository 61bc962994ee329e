import { seededRandom } from '../support/seeded-random.ts'
import type { Corpus } from './corpus.ts'
import { asText, mutated } from './corpus.ts'
import { documentsIn } from './directory-documents.ts'
import type { JudgedDocument } from './judged-document.ts'

/** The documents of a directory's manifests, and as many of their mutations as are asked for. */
export function corporaOf(directory: string, mutations: number, seed: number): readonly Corpus[] {
  const documents = [...distinct(documentsIn(directory))]
  const random = seededRandom(seed)
  const changed = Array.from({ length: documents.length === 0 ? 0 : mutations }, (_, index) => {
    const { name, value } = documents[index % documents.length]!
    return asText({ name: `mutation ${index} of ${name}`, value: mutated(value, random) })
  })
  const type = 'application/json' as const
  return [
    { name: directory, type, documents: documents.map((document) => asText(document)) },
    { name: `mutations of ${directory}`, type, documents: changed },
  ].filter(({ documents: own }) => own.length > 0)
}

function* distinct(documents: Iterable<JudgedDocument>): Generator<JudgedDocument> {
  const seen = new Set<string>()
  for (const document of documents) {
    const text = JSON.stringify(document.value)
    if (!seen.has(text)) yield document
    seen.add(text)
  }
}
