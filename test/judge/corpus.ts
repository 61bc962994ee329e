import { basename, join } from 'node:path'
import { containerCases } from './cases/container-cases.ts'
import { objectCases } from './cases/object-cases.ts'
import { schedulingCases } from './cases/scheduling-cases.ts'
import { documentCases, metadataCases } from './cases/metadata-cases.ts'
import { specCases } from './cases/spec-cases.ts'
import { textCases } from './cases/text-cases.ts'
import { valueCases } from './cases/value-cases.ts'
import { mountCases, volumeCases, volumeListCases } from './cases/volume-cases.ts'
import { seededRandom } from '../support/seeded-random.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { documentsIn } from './directory-documents.ts'
import type { JudgedDocument } from './judged-document.ts'
import { mutate } from './mutate.ts'
import { effectiveBases, ineffectiveBases } from './mutation-bases.ts'

/** Made by hand in the manner of what charts, installers, converters and people write, named `helm-3` after its file and place. */
const originCases = [...documentsIn(join(import.meta.dirname, 'origins'))].map(({ value, name }) => ({
  name: basename(name).replace(/\.yaml#(\d+)\.0$/, '-$1'),
  value,
}))

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
  ...valueCases,
  ...originCases,
]

/** How many mutations are made of either kind of base. */
export const effectiveMutations = 4000
export const ineffectiveMutations = 1000

/** The same each time for equal seeds; those that are recorded have none. */
export function mutations(kind: 'effective' | 'ineffective', seed?: number): readonly JudgedDocument[] {
  const [bases, count, recordedSeed] =
    kind === 'effective'
      ? [effectiveBases, effectiveMutations, 1]
      : [ineffectiveBases, ineffectiveMutations, 2]
  const random = seededRandom(seed ?? recordedSeed)
  return Array.from({ length: count }, (_, index) => ({
    name: seed === undefined ? `${kind}-${index}` : `${kind}-${index} of seed ${seed}`,
    value: mutated(bases[index % bases.length]!, random),
  }))
}

/** Mostly one change, sometimes two or three, whose causes have to be named all at once. */
export function mutated(base: JsonObject, random: () => number): JsonObject {
  const changes = random() < 0.75 ? 1 : random() < 0.5 ? 2 : 3
  let document = base
  for (let change = 0; change < changes; change += 1) document = mutate(document, random)
  return document
}

/** What is judged. */
export interface Corpus {
  readonly name: string
  readonly documents: readonly { readonly name: string; readonly kind: string; readonly text: string }[]
  readonly type: 'application/json' | 'application/yaml'
}

/** One whose verdicts are recorded under its name. */
export interface RecordedCorpus extends Corpus {
  readonly name: 'hand-made' | 'texts' | 'effective' | 'ineffective'
}

export const corpora: readonly RecordedCorpus[] = [
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

export function asText({ name, value }: JudgedDocument): Corpus['documents'][number] {
  const { kind } = value
  return { name, kind: typeof kind === 'string' ? kind : '', text: JSON.stringify(value) }
}
