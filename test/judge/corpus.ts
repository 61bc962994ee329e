import { containerCases } from './cases/container-cases.ts'
import { objectCases } from './cases/object-cases.ts'
import { schedulingCases } from './cases/scheduling-cases.ts'
import { documentCases, metadataCases } from './cases/metadata-cases.ts'
import { specCases } from './cases/spec-cases.ts'
import { textCases } from './cases/text-cases.ts'
import { mountCases, volumeCases, volumeListCases } from './cases/volume-cases.ts'
import { seededRandom } from '../support/walk-pods.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { JudgedDocument } from './judged-document.ts'
import { mutate } from './mutate.ts'
import { effectiveBases, ineffectiveBases } from './mutation-bases.ts'

/** Documents made by hand. */
export const handMade: readonly JudgedDocument[] = [
  ...specCases,
  ...metadataCases,
  ...documentCases,
  ...containerCases,
  ...volumeCases,
  ...mountCases,
  ...volumeListCases,
  ...schedulingCases,
  ...objectCases,
]

/** How many mutations are made of either kind of base. */
export const effectiveMutations = 4000
export const ineffectiveMutations = 1000

/** Seeded: the same each time. */
export function mutations(kind: 'effective' | 'ineffective'): readonly JudgedDocument[] {
  const [bases, count, seed] =
    kind === 'effective'
      ? [effectiveBases, effectiveMutations, 1]
      : [ineffectiveBases, ineffectiveMutations, 2]
  const random = seededRandom(seed)
  return Array.from({ length: count }, (_, index) => ({
    name: `${kind}-${index}`,
    value: mutated(bases[index % bases.length]!, random),
  }))
}

/** Mostly one change, sometimes two or three, whose causes have to be named all at once. */
function mutated(base: JsonObject, random: () => number): JsonObject {
  const changes = random() < 0.75 ? 1 : random() < 0.5 ? 2 : 3
  let document = base
  for (let change = 0; change < changes; change += 1) document = mutate(document, random)
  return document
}

/** What is judged, and where its recorded verdicts are. */
export interface Corpus {
  readonly name: 'hand-made' | 'texts' | 'effective' | 'ineffective'
  readonly documents: readonly { readonly name: string; readonly kind: string; readonly text: string }[]
  readonly type: 'application/json' | 'application/yaml'
}

export const corpora: readonly Corpus[] = [
  { name: 'hand-made', type: 'application/json', documents: handMade.map((document) => asText(document)) },
  {
    name: 'texts',
    type: 'application/yaml',
    documents: textCases.map(({ name, text }) => ({ name, kind: 'Pod', text })),
  },
  ...(['effective', 'ineffective'] as const).map((name) => ({
    name,
    type: 'application/json' as const,
    documents: mutations(name).map((document) => asText(document)),
  })),
]

function asText({ name, value }: JudgedDocument): Corpus['documents'][number] {
  const { kind } = value
  return { name, kind: typeof kind === 'string' ? kind : '', text: JSON.stringify(value) }
}
