import { stringify } from 'yaml'
import { pick } from '../support/seeded-random.ts'
import { textCases } from './cases/text-cases.ts'
import { mutate } from './mutate.ts'
import { effectiveBases, ineffectiveBases } from './mutation-bases.ts'

const bases = [...effectiveBases, ...ineffectiveBases]
const texts = [...bases.map((base) => stringify(base)), ...textCases.map(({ text }) => text)]
const pieces = [
  '{',
  '}',
  '[',
  ']',
  ':',
  '- ',
  '"',
  "'",
  '\n',
  '---\n',
  '&a ',
  '*a',
  '!!',
  '|',
  '>',
  '%',
  '#',
  '\t',
  '\0',
  '\r',
  '<<: ',
  '\uFEFF',
]

/** A good document, spoiled in one of several ways. */
export function fuzzedText(random: () => number): Buffer {
  const chosen = random()
  if (chosen < 0.25) {
    const document = mutate(pick(random, bases), random)
    return Buffer.from(random() < 0.5 ? JSON.stringify(document) : stringify(document))
  }
  return spoiledText(random, pick(random, texts))
}

/** A text that is cut off, or changed in one place, or in a few of its bytes. */
export function spoiledText(random: () => number, text: string): Buffer {
  const chosen = 0.25 + random() * 0.75
  const bytes = Buffer.from(text)
  const at = Math.floor(random() * bytes.length)
  if (chosen < 0.5) return bytes.subarray(0, at)
  if (chosen < 0.65)
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + Math.floor(random() * 20))])
  if (chosen < 0.85)
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(pick(random, pieces)), bytes.subarray(at)])
  for (let flips = 0; flips < 1 + random() * 4; flips += 1) {
    bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
  }
  return bytes
}
