import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { validationDoc } from '../../../tools/validation-doc.ts'
import { measureAgreement, percentages } from '../../judge/agreement.ts'
import { corpora } from '../../judge/corpus.ts'
import { slowness } from '../../support/slowness.ts'
import { differences } from '../../judge/differences.ts'
import { otherWords } from '../../judge/other-words.ts'
import type { Recording } from '../../judge/recording.ts'
import { digestOf, recalled } from '../../judge/recording.ts'

const root = join(import.meta.dirname, '../../..')

/** Thousands of documents are decoded. */
const timeoutMs = 300_000 * slowness

/** Percent; what was measured, rounded down. */
const least = {
  'hand-made': { verdicts: 99.5, fields: 99.3 },
  texts: { verdicts: 96, fields: 100 },
  effective: { verdicts: 99.9, fields: 99.9 },
  ineffective: { verdicts: 100, fields: 100 },
} as const

const explained = new Set(differences.flatMap(({ documents }) => documents))

describe('podd and the API server', () => {
  it.each(corpora)(
    'agree on $name documents as they did when the API server was asked (npm run judge)',
    async (corpus) => {
      const path = join(root, 'test/fixtures/verdicts', `${corpus.name}.json`)
      const recording = JSON.parse(readFileSync(path, 'utf8')) as Recording
      expect(recording.digest).toBe(digestOf(corpus.documents.map(({ text }) => text)))
      const agreement = await measureAgreement(corpus, recalled(recording))
      const own = new Set(corpus.documents.map(({ name }) => name))
      const listed = [...explained].filter((name) => own.has(name))
      expect([...agreement.differing].sort()).toEqual(listed.sort())
      const { verdicts, fields } = percentages(agreement)
      expect(verdicts).toBeGreaterThanOrEqual(least[corpus.name].verdicts)
      expect(fields).toBeGreaterThanOrEqual(least[corpus.name].fields)
      const others = otherWords.flatMap(({ documents }) => documents).filter((name) => own.has(name))
      expect([...agreement.otherWords].sort()).toEqual(others.sort())
    },
    timeoutMs,
  )

  it('differ only as docs/VALIDATION.md says (`npm run generate` writes it)', () => {
    expect(readFileSync(join(root, 'docs/VALIDATION.md'), 'utf8')).toBe(validationDoc())
  })
})
