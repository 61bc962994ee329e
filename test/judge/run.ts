/**
 * npm run judge: what podd and a kube-apiserver say of the same documents, side by side. Needs PODD_JUDGE, the path of a
 * kube-apiserver that starts an etcd of its own. `--record` writes the fixtures that the unit tests hold podd to;
 * `--also=DIR` asks about the documents of a directory of manifests as well; `--list` names what differs.
 */
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { isJsonObject } from '../../src/base/json.ts'
import { measureAgreement, percentages } from './agreement.ts'
import { corpora } from './corpus.ts'
import type { Corpus } from './corpus.ts'
import { Judge } from './judge.ts'
import { record } from './recording.ts'
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

/** Documents of the kinds that podd takes, one each, in the files of a directory and those below it. */
function* documentsIn(directory: string): Generator<Corpus['documents'][number]> {
  for (const entry of readdirSync(directory, { recursive: true })) {
    const path = join(directory, String(entry))
    if (!/\.(?:ya?ml|json)$/.test(path) || !statSync(path).isFile()) continue
    for (const [index, document] of parseAllDocuments(readFileSync(path, 'utf8')).entries()) {
      const value: unknown = 'toJS' in document && document.errors.length === 0 ? document.toJS() : undefined
      if (!isJsonObject(value) || typeof value['kind'] !== 'string' || !kinds.has(value['kind'])) continue
      const metadata = isJsonObject(value['metadata']) ? { ...value['metadata'], namespace: 'default' } : {}
      const text = JSON.stringify({ ...value, metadata })
      yield { name: `${path}#${index}`, kind: value['kind'], text }
    }
  }
}

const kinds: ReadonlySet<string> = new Set([
  'Pod',
  'ConfigMap',
  'Secret',
  'PersistentVolumeClaim',
  'RuntimeClass',
  'PriorityClass',
])

async function main(): Promise<void> {
  const program = process.env['PODD_JUDGE']
  if (program === undefined) throw new Error('PODD_JUDGE names no kube-apiserver')
  const has = (flag: string): boolean => process.argv.includes(flag)
  const also = process.argv.filter((argument) => argument.startsWith('--also=')).map((text) => text.slice(7))
  const judge = await Judge.start(program)
  try {
    const real = also.map((directory) => ({
      name: directory,
      type: 'application/json' as const,
      documents: [...documentsIn(directory)],
    }))
    for (const corpus of [...corpora, ...real]) {
      const verdicts = await ask(judge, corpus)
      const agreement = await measureAgreement(corpus, verdicts)
      const { verdicts: same, fields } = percentages(agreement)
      const { documents, decisions, refused } = agreement
      process.stdout.write(
        `${corpus.name}: ${documents} documents, ${decisions.length} decisions of support, ` +
          `verdicts ${same.toFixed(2)} %, fields of ${refused} refused ${fields.toFixed(2)} %\n`,
      )
      if (has('--list')) {
        for (const name of agreement.differing) process.stdout.write(`  verdict: ${name}\n`)
        for (const name of agreement.otherFields) process.stdout.write(`  fields: ${name}\n`)
      }
      if (!has('--record') || !corpora.some(({ name }) => name === corpus.name)) continue
      mkdirSync(fixtures, { recursive: true })
      const recording = record(
        corpus.documents.map(({ text }) => text),
        verdicts,
      )
      writeFileSync(join(fixtures, `${corpus.name}.json`), `${JSON.stringify(recording)}\n`)
    }
  } finally {
    await judge.end()
  }
}

await main()
