import type { Json, JsonObject } from '../../src/base/json.ts'
import { isJsonObject } from '../../src/base/json.ts'
import { decodeDocuments } from '../../src/pod/decode/decode-documents.ts'
import { resolveClasses } from '../../src/decide/admission/resolve-classes.ts'
import type { Problem, SourceDocument } from '../../src/pod/objects/document.ts'
import { isPodDocument } from '../../src/pod/objects/document.ts'

/**
 * What was said of a document. The API server looks in three steps, and says nothing of a later one where an earlier one
 * fails: types, unknown fields, values. podd looks at all of them at once.
 */
export interface Verdict {
  readonly step: 'accepted' | 'types' | 'unknown' | 'values' | 'admission'
  /** Sorted, each once. Types: without indexes, as the API server names them; empty where it names none. */
  readonly fields: readonly string[]
  /** `field: message` of each cause; of values alone. */
  readonly words?: readonly string[]
}

/** What podd says, step by step; its admission is that of `podd validate`, without a config and other documents. */
export interface PoddVerdict {
  readonly accepted: boolean
  /** Refused for what Kubernetes takes and podd doesn't, and for nothing else. */
  readonly isDecision: boolean
  readonly types: readonly string[]
  readonly unknown: readonly string[]
  readonly values: readonly string[]
  /** Fields that podd doesn't support: it looks at no values below them. */
  readonly refused: readonly string[]
  /** `field: message` of each error. */
  readonly words: readonly string[]
}

/** What an API server answered. */
export function readAnswer(status: number, body: Json): Verdict {
  if (status === 201) return { step: 'accepted', fields: [] }
  const answer: JsonObject = isJsonObject(body) ? body : {}
  const message = typeof answer['message'] === 'string' ? answer['message'] : ''
  if (status === 422) {
    const details = isJsonObject(answer['details']) ? answer['details'] : {}
    const causes = Array.isArray(details['causes']) ? (details['causes'] as readonly Json[]) : []
    const named = causes.flatMap((cause) =>
      isJsonObject(cause) && typeof cause['field'] === 'string'
        ? [{ field: cause['field'], message: textOf(cause['message']) }]
        : [],
    )
    return {
      step: 'values',
      fields: sorted(named.map(({ field }) => field)),
      words: sorted(named.map(({ field, message }) => `${field}: ${message}`)),
    }
  }
  if (status !== 400) return { step: 'admission', fields: [] }
  if (message.includes('strict decoding error')) {
    const fields = [...message.matchAll(/unknown field "([^"]*)"/g)].map(([, field]) => field ?? '')
    return { step: 'unknown', fields: sorted(fields) }
  }
  const [, path] = /Go struct field \w+\.(\S+) of type/.exec(message) ?? []
  return { step: 'types', fields: path === undefined ? [] : [withoutEmbedded(path)] }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** Go names the types that are embedded in others: `spec.volumes.VolumeSource.hostPath`. */
function withoutEmbedded(path: string): string {
  return path
    .split('.')
    .filter((step) => !/^[A-Z]\w+$/.test(step))
    .join('.')
}

export async function poddVerdict(text: string): Promise<PoddVerdict> {
  const { documents, problems } = await decodeDocuments(text, { path: 'document' })
  const errors = problems.filter(({ severity }) => severity === 'error')
  const fieldsOf = (isOf: (problem: Problem) => boolean): readonly string[] =>
    sorted(errors.filter((problem) => isOf(problem)).map(({ field }) => field ?? ''))
  return {
    accepted: errors.length === 0 && documents.length > 0 && !isRefusedByClasses(documents),
    isDecision: errors.length > 0 && errors.every(({ reason }) => reason === 'RefusedHere'),
    types: sorted(
      fieldsOf(({ reason }) => reason === 'FieldValueTypeInvalid').map((field) => withoutIndexes(field)),
    ),
    unknown: fieldsOf(({ reason }) => reason === 'UnknownField'),
    values: fieldsOf(({ reason }) => reason !== undefined && !otherSteps.has(reason)),
    refused: fieldsOf(({ reason }) => reason === 'RefusedHere'),
    words: errors.map(({ field, message }) => `${field ?? ''}: ${message}`),
  }
}

/** As the admission of both, where there are no classes but those of every cluster. */
function isRefusedByClasses(documents: readonly SourceDocument[]): boolean {
  const facts = { runtimeClasses: new Map(), priorityClasses: new Map(), handlers: undefined }
  const resolved = documents
    .filter((document) => isPodDocument(document))
    .map(({ pod }) => resolveClasses(pod.spec, facts))
  return resolved.some(({ kind }) => kind === 'refused')
}

const otherSteps: ReadonlySet<string> = new Set(['FieldValueTypeInvalid', 'UnknownField', 'RefusedHere'])

function withoutIndexes(field: string): string {
  return field.replaceAll(/\[[^\]]*\]/g, '')
}

function sorted(fields: readonly string[]): readonly string[] {
  return [...new Set(fields)].sort()
}

/** How podd's verdict stands to the API server's. */
export interface Comparison {
  /** podd refuses what it doesn't support, and says nothing else. */
  readonly isDecision: boolean
  readonly sameVerdict: boolean
  /** Of documents that both refuse. */
  readonly sameFields: boolean | undefined
}

export function compareVerdicts(podd: PoddVerdict, judge: Verdict): Comparison {
  const isAccepted = judge.step === 'accepted'
  const sameVerdict = podd.accepted === isAccepted
  const { isDecision } = podd
  if (!sameVerdict || isAccepted) return { isDecision, sameVerdict, sameFields: undefined }
  return { isDecision, sameVerdict, sameFields: sameFields(podd, judge) }
}

function sameFields(podd: PoddVerdict, { step, fields }: Verdict): boolean {
  switch (step) {
    case 'types':
      // It stops at the first one, and names no field for some.
      return fields.every((field) => podd.types.includes(field))
    case 'unknown':
      return same(podd.unknown, fields)
    case 'values':
      return same(
        podd.values,
        fields.filter((field) => !isBelow(field, podd.refused)),
      )
    case 'admission':
    case 'accepted':
      return true
  }
}

/** Whether something of the API server's is about one of these fields, or about what is below it. */
export function isBelow(text: string, fields: readonly string[]): boolean {
  return fields.some((field) => text.startsWith(field) && !/^\w/.test(text.slice(field.length)))
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((field, index) => field === b[index])
}
