/**
 * npm run fuzz: decodes and validates texts that are good documents cut off, mutated, or changed byte by byte, and says
 * how many. INPUTS=N sets how many (100,000), SEED=N where they begin. Fails where decoding throws or a verdict has no
 * problem to explain it.
 */
import { decodeDocuments } from '../../src/pod/decode/decode-documents.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { fuzzedText } from './fuzzed-text.ts'

const inputs = Number(process.env['INPUTS'] ?? 100_000)
const seed = Number(process.env['SEED'] ?? 1)
const random = seededRandom(seed)
const counts = { accepted: 0, refused: 0, blank: 0 }

for (let index = 0; index < inputs; index += 1) {
  const text = fuzzedText(random)
  try {
    const { documents, problems, heldObjects, holdsAll } = await decodeDocuments(text, { path: 'fuzz' })
    const isBad = problems.some(({ severity }) => severity === 'error')
    if (isBad && heldObjects.length === 0 && !holdsAll && documents.length === 0) {
      // Certainly of a kind that podd doesn't take.
      const isOther = problems.every(({ field }) => field?.endsWith('kind') === true)
      if (!isOther) throw new Error('a bad document holds nothing')
    }
    if (problems.some(({ message }) => message.includes('podd cannot check')))
      throw new Error('a fault of podd')
    counts[isBad ? 'refused' : documents.length > 0 ? 'accepted' : 'blank'] += 1
  } catch (error) {
    process.stderr.write(`seed ${seed}, input ${index}: ${JSON.stringify(text.toString())}\n`)
    throw error
  }
}
process.stdout.write(
  `${inputs} inputs of seed ${seed}: ${counts.accepted} accepted, ${counts.refused} refused, ${counts.blank} without documents\n`,
)
