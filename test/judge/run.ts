/**
 * npm run judge: what podd and a kube-apiserver say of the same documents, side by side. Needs PODD_JUDGE, the path of a
 * kube-apiserver that starts an etcd of its own. `--record` writes the fixtures that the unit tests hold podd to;
 * `--also=DIR` asks about the documents of a directory of manifests as well, and `--mutations=N` about N mutations of
 * them; `--seed=N` about mutations that nothing is recorded of, instead of the others; `--list` prints what differs.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { measureAgreement, percentages } from './agreement.ts'
import type { Corpus } from './corpus.ts'
import { asText, corpora, mutations } from './corpus.ts'
import { corporaOf } from './documents-in.ts'
import { Judge } from './judge.ts'
import { record } from './recording.ts'
import { poddVerdict } from './verdict.ts'
import type { Verdict } from './verdict.ts'

const fixtures = join(import.meta.dirname, '../fixtures/verdicts')

async function ask(
  judge: Judge,
  { documents, type }: Pick<Corpus, 'documents' | 'type'>,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = []
  for (let at = 0; at < documents.length; at += 4) {
    const asked = documents.slice(at, at + 4).map(async ({ kind, text, name }) => {
      const verdict = await judge.verdictOnText(kind, text, type)
      if (verdict === undefined) throw new Error(`${name}: the judge knows no ${kind}`)
      return verdict
    })
    verdicts.push(...(await Promise.all(asked)))
  }
  return verdicts
}

async function main(): Promise<void> {
  const program = process.env['PODD_JUDGE']
  if (program === undefined) throw new Error('PODD_JUDGE names no kube-apiserver')
  const has = (flag: string): boolean => process.argv.includes(flag)
  const valuesOf = (flag: string): readonly string[] =>
    process.argv.flatMap((argument) =>
      argument.startsWith(`${flag}=`) ? [argument.slice(flag.length + 1)] : [],
    )
  const seeds = valuesOf('--seed').map(Number)
  const judge = await Judge.start(program)
  try {
    const mutated = seeds.flatMap((seed) =>
      (['effective', 'ineffective'] as const).map((kind) => ({
        name: `${kind} of seed ${seed}`,
        type: 'application/json' as const,
        documents: mutations(kind, seed).map((document) => asText(document)),
      })),
    )
    const changes = Number(valuesOf('--mutations')[0] ?? 0)
    const real = valuesOf('--also').flatMap((directory) => corporaOf(directory, changes, seeds[0] ?? 1))
    for (const corpus of [...(seeds.length > 0 ? mutated : corpora), ...real]) {
      const verdicts = await ask(judge, corpus)
      const agreement = await measureAgreement(corpus, verdicts)
      const { verdicts: same, fields } = percentages(agreement)
      const { documents, decisions, refused } = agreement
      process.stdout.write(
        `${corpus.name}: ${documents} documents, ${decisions.length} decisions of support, ` +
          `verdicts ${same.toFixed(2)} %, fields of ${refused} refused ${fields.toFixed(2)} %\n`,
      )
      if (has('--list')) {
        const named = new Map(corpus.documents.map((document, index) => [document.name, index]))
        for (const [what, names] of [
          ['verdict', agreement.differing],
          ['fields', agreement.otherFields],
          ['words', agreement.otherWords],
        ] as const)
          for (const name of names) {
            const index = named.get(name) ?? 0
            const podd = await poddVerdict(corpus.documents[index]?.text ?? '')
            const sides = `podd ${JSON.stringify(podd)}\n    API server ${JSON.stringify(verdicts[index])}`
            process.stdout.write(`  ${what}: ${name}\n    ${sides}\n`)
          }
      }
      if (!has('--record') || !corpora.some(({ name }) => name === corpus.name)) continue
      mkdirSync(fixtures, { recursive: true })
      const recording = record(
        corpus.documents.map(({ text }) => text),
        verdicts,
        { withWords: corpus.name === 'hand-made' },
      )
      writeFileSync(join(fixtures, `${corpus.name}.json`), `${JSON.stringify(recording)}\n`)
    }
  } finally {
    await judge.end()
  }
}

await main()
