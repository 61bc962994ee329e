import { objectMetaSchema, podSchema } from '../src/pod/schema/pod-schema.ts'
import { objectKinds } from '../src/pod/objects/object-kinds.ts'
import type { AnyType, Field, Fields, Support } from '../src/pod/schema/types.ts'
import type { CoreFields } from './core-fields.ts'
import { listSupportTests } from './support-tests.ts'

/** What a field's answer follows from when a field above it decides. */
interface Inherited {
  readonly support: Exclude<Support, { readonly kind: 'supported' }>
  /** `Volume.nfs` */
  readonly via: string
}

interface Section {
  readonly name: string
  readonly fields: Fields | undefined
  readonly inherited: Inherited | undefined
}

/** Kinds that podd takes no documents of. */
const otherKinds: Readonly<Record<string, string>> = {
  PersistentVolume: 'storage drivers need a control plane',
  Event: 'podd writes events and reads none',
}

const tests = listSupportTests()

const answers = { supported: '✓', ignored: 'no effect', refused: 'refused' } as const

/** The text of docs/SUPPORT.md: podd's answer to every field of the API. */
export function supportDoc(core: CoreFields): string {
  const sections = collectSections(core)
  const counts = countAnswers(core, sections)
  return `# Support of the Pod API

<!-- Made from src/pod/schema and test/fixtures/core-v1-fields.json by \`npm run generate\`. -->

Every field has one of three answers:

- **✓**, supported: it does what Kubernetes says. The last column names the tests that prove it: \`volumes#projected\` is
  the test that says \`proves('projected', …)\` in \`test/e2e/volumes.test.ts\`. It runs on a real containerd.
- **no effect**: it is accepted, with a warning, and does nothing here, for the reason given.
- **refused**: a document that has it is an error, for the reason given. A value that asks for nothing (an empty list,
  and where it is noted others) is accepted all the same.

Unknown fields are errors too, with their line and column and the nearest known name; \`fieldValidation: Warn\` makes
them warnings, except in a securityContext. Of the ${counts.total} fields below ${counts.supported} are supported, ${counts.ignored} have no
effect and ${counts.refused} are refused. They are those of the Kubernetes 1.36 API.

## Documents

A file or an answer from a URL holds any number of YAML or JSON documents.

| Kind | Answer | |
|---|---|---|
| Pod | ✓ | \`apiVersion: v1\` |
| PodList | ✓ | each item is decoded on its own |
| List | ✓ | of any kinds in this table |
${Object.entries(objectKinds)
  .map(([kind, { schema }]) => `| ${kind} | ✓ | \`apiVersion: ${apiVersionOf(schema.fields)}\` |`)
  .join('\n')}
${Object.entries(otherKinds)
  .map(([kind, reason]) => `| ${kind} | refused | ${reason} |`)
  .join('\n')}
| anything else | refused | podd runs Pods |

YAML is read as Kubernetes reads it (go-yaml v2): unquoted \`yes\`, \`no\`, \`on\`, \`off\`, \`y\` and \`n\` are booleans, \`0644\`
and \`0o644\` are octal, \`1_000\` is a thousand, and times and dates are strings. A number or a boolean where a string
belongs (\`value: 8080\`) is an error: put quotes around it. So are a key that stands twice, an unknown tag, aliases that
add more than 100,000 values, more than 100 levels, a document in YAML of more than 3 MiB (what an API server takes for an
object) or of more than 100,000 keys and values (in JSON there may be more), and a file of more than 10 MiB. Null is the same as leaving the field out, and in a map of strings (labels,
\`data\`) the empty string. One bad document stops no other one: its own pod, if it ran, keeps running in its last good form. So do the pods of a file
that has become empty, as on a full disk: delete the file to end them.

What a dump of a live cluster carries (\`kubectl get pod -o yaml\`) is dropped with one warning for the document: status,
the metadata that a control plane writes, and the volume of the service account token with its mounts.

## ObjectMeta

${table(Object.entries(objectMetaSchema.fields).map(([name, field]) => schemaRow('ObjectMeta', name, field)))}

${sections.map((section) => renderSection(core, section)).join('\n\n')}
`
}

function apiVersionOf({ apiVersion }: Fields): string {
  return apiVersion?.type.kind === 'string' ? (apiVersion.type.values?.join() ?? '') : ''
}

/** Every type once, by the best answer that any way to it gives; in the order of first meeting. */
function collectSections(core: CoreFields): readonly Section[] {
  const found = new Map<string, Section>()
  const visit = (section: Section): void => {
    const coreFields = core.types.get(section.name)
    const known = found.get(section.name)
    if (coreFields === undefined || (known !== undefined && rank(known) <= rank(section))) return
    found.set(section.name, section)
    for (const [name, { base }] of coreFields) {
      const field = section.fields?.[name]
      visit({
        name: base,
        fields: field === undefined ? undefined : fieldsOf(field.type),
        inherited: section.inherited ?? inheritedFrom(section.name, name, field),
      })
    }
  }
  visit({ name: 'Pod', fields: podSchema.fields, inherited: undefined })
  for (const [kind, { schema }] of Object.entries(objectKinds)) {
    visit({ name: kind, fields: schema.fields, inherited: undefined })
  }
  for (const [kind, reason] of Object.entries(otherKinds)) {
    visit({ name: kind, fields: undefined, inherited: { support: { kind: 'refused', reason }, via: kind } })
  }
  return [...found.values()]
}

/** Better answers come first. */
function rank({ inherited }: Section): number {
  if (inherited === undefined) return 0
  return inherited.support.kind === 'ignored' ? 1 : 2
}

function inheritedFrom(type: string, name: string, field: Field | undefined): Inherited | undefined {
  if (field === undefined || field.support.kind === 'supported') return undefined
  return { support: field.support, via: `${type}.${name}` }
}

function fieldsOf(type: AnyType): Fields | undefined {
  switch (type.kind) {
    case 'object':
      return type.fields
    case 'list':
      return fieldsOf(type.item)
    case 'map':
      return fieldsOf(type.value)
    default:
      return undefined
  }
}

function renderSection(core: CoreFields, { name, fields, inherited }: Section): string {
  const names = [...(core.types.get(name)?.keys() ?? [])]
  if (inherited !== undefined) {
    const answer = inherited.support.kind === 'refused' ? 'Refused' : 'Without effect'
    const listed = names.map((fieldName) => `\`${fieldName}\``).join(', ')
    return `## ${name}\n\n${answer} with \`${inherited.via}\`: ${listed}.`
  }
  const rows = names.map((fieldName): Row => {
    const field = fields?.[fieldName]
    return field === undefined ? [fieldName, answers.supported, '', ''] : schemaRow(name, fieldName, field)
  })
  return `## ${name}\n\n${table(rows)}`
}

type Row = readonly [name: string, answer: string, note: string, test: string]

function schemaRow(type: string, name: string, { support, presence, value }: Field): Row {
  const notes: string[] = []
  if (presence === 'required') notes.push('required')
  if (presence === 'defaulted' && isWorthTelling(value)) notes.push(`default \`${String(value)}\``)
  if (support.kind !== 'supported') notes.push(support.reason)
  else if (support.note !== undefined) notes.push(support.note)
  if (support.kind === 'refused' && support.harmless !== undefined && support.harmless.length > 0) {
    notes.push(
      `accepted: ${support.harmless.map((harmless) => `\`${JSON.stringify(harmless)}\``).join(', ')}`,
    )
  }
  const provenBy = tests.filter(({ fields }) => fields.includes(`${type}.${name}`))
  const ids = support.kind === 'supported' ? provenBy.map(({ file, id }) => `${file}#${id}`) : []
  return [name, answers[support.kind], notes.join('; '), ids.join(', ')]
}

function isWorthTelling(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value) && value !== ''
}

function table(rows: readonly Row[]): string {
  const lines = rows.map(
    ([name, answer, note, test]) => `| \`${name}\` | ${answer} | ${[note, test].map(inCell).join(' | ')} |`,
  )
  return ['| Field | Answer | | Test |', '|---|---|---|---|', ...lines].join('\n')
}

function inCell(text: string): string {
  return text.replaceAll('|', '\\|')
}

function countAnswers(
  core: CoreFields,
  sections: readonly Section[],
): {
  readonly total: number
  readonly supported: number
  readonly ignored: number
  readonly refused: number
} {
  const counts = { total: 0, supported: 0, ignored: 0, refused: 0 }
  for (const { name, fields, inherited } of sections) {
    for (const fieldName of core.types.get(name)?.keys() ?? []) {
      counts.total += 1
      counts[(inherited?.support ?? fields?.[fieldName]?.support)?.kind ?? 'supported'] += 1
    }
  }
  return counts
}
