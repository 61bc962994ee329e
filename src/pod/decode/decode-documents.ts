/* The documents of a text: pods, objects, lists of them, and what is wrong with each. */
import { errorMessage } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { idleWarning } from '../objects/document.ts'
import type { Problem, SourceDocument } from '../objects/document.ts'
import { holdsSecrets, objectKey } from '../objects/local-object.ts'
import { isKeptKind, isObjectKind, keptEntry, objectKindNames } from '../objects/object-kinds.ts'
import type { ObjectKind } from '../objects/object-kinds.ts'
import { checkValue } from '../schema/check-value.ts'
import type { FieldValidation } from '../schema/check-value.ts'
import { formatFieldPath, Issues } from '../schema/issues.ts'
import type { FieldPath, FieldProblem } from '../schema/issues.ts'
import { podListSchema } from '../schema/pod-schema.ts'
import { digestText } from '../values/hash.ts'
import { podKey } from '../values/ids.ts'
import { decodeObject, decodePod, digestWritten } from './decode-pod.ts'
import { judgeKind } from './judge-kind.ts'
import {
  describeBytes,
  endsInsideLine,
  readJsonDocument,
  readYamlDocuments,
  toText,
} from './read-documents.ts'
import type { Position, RawDocument } from './read-documents.ts'
import { substituteValues } from './substitute-values.ts'
import type { HostValues } from './substitute-values.ts'

/** The most that one file or response may hold, as in the kubelet. */
export const maxSourceBytes = 10 * 1024 * 1024

/** How many problems of one text are reported; the rest is counted. */
const maxProblems = 100
/** The longest message of a problem; quoted values may be as large as the text. */
const maxMessageCharacters = 2000

export interface DecodeOptions {
  /** The file or URL, as problems name it. */
  readonly path: string
  /** By default `Strict`. */
  readonly fieldValidation?: FieldValidation
  /** The values substituted for `${NAME}`; left out, nothing is substituted. */
  readonly values?: HostValues
  /** Whether each image must have a digest; by default it need not. */
  readonly requireDigest?: boolean
  /** Kinds of custom objects that are taken without effect; by default none. */
  readonly ignoreKinds?: readonly string[]
  /** What is said of an empty text; left out, what is true of a file that a source reads. */
  readonly whenEmpty?: string
}

export interface DecodeResult {
  /** The good documents, in the order of the text. Two of them may describe the same object. */
  readonly documents: readonly SourceDocument[]
  readonly problems: readonly Problem[]
  /** Keys (`documentKey`) of bad documents: the earlier documents of these keys are kept. */
  readonly heldObjects: readonly string[]
  /**
   * Whether a bad document has no readable name, so that it may be any of the earlier ones, or the text is truncated.
   */
  readonly holdsAll: boolean
}

/**
 * YAML or JSON, any number of documents, to typed Pods and the objects they refer to. Never throws because of the text:
 * each bad document becomes a problem with its place, and affects no other.
 */
export async function decodeDocuments(
  input: string | Uint8Array,
  options: DecodeOptions,
): Promise<DecodeResult> {
  const size = typeof input === 'string' ? Buffer.byteLength(input) : input.byteLength
  if (size > maxSourceBytes) return unreadable(options, `larger than ${maxSourceBytes / 2 ** 20} MiB`)
  const text = toText(input)
  if (text === undefined) return unreadable(options, ...describeBytes(input))
  // A full disk or a power cut may leave an empty file. It is an error in the kubelet too.
  if (text.trim() === '')
    return unreadable(
      options,
      options.whenEmpty ?? 'empty: what it gave before stays; delete the file to end that',
    )
  const json = readJsonDocument(text)
  if (json !== undefined) {
    const result = decodeAll([json], options)
    // Only the YAML reader can locate a problem, and it takes texts of bounded size only.
    if (result.problems.length === 0) return result
    const [read] = await readYamlDocuments(text)
    return read?.kind === 'read' ? decodeAll([read], options) : result
  }
  const result = decodeAll(await readYamlDocuments(text), options)
  const isCutOff = endsInsideLine(text) && result.heldObjects.length > 0
  return isCutOff ? { ...result, holdsAll: true } : result
}

/** The result for a text that can't be read at all. */
export function unreadable(options: DecodeOptions, message: string, position?: Position): DecodeResult {
  const problem: Problem = { severity: 'error', place: { path: options.path, ...position }, message }
  return { documents: [], problems: [problem], heldObjects: [], holdsAll: true }
}

function decodeAll(raw: Iterable<RawDocument>, options: DecodeOptions): DecodeResult {
  const decoder = new Decoder(options)
  let isEmpty = true
  for (const document of raw) {
    isEmpty = false
    decoder.take(document)
  }
  if (!isEmpty) return decoder.result()
  const message = 'holds nothing: there are only comments and empty documents in it'
  return {
    ...decoder.result(),
    problems: [{ severity: 'warning', place: { path: options.path }, message }],
  }
}

/** The known positions of a document's fields. */
type Written = Pick<Extract<RawDocument, { kind: 'read' }>, 'locate' | 'textOf'>

class Decoder {
  readonly #options: DecodeOptions
  readonly #documents: SourceDocument[] = []
  readonly #problems: Problem[] = []
  readonly #heldObjects = new Set<string>()
  /** Of the documents that are good, also of those without effect. */
  readonly #digests: string[] = []
  #holdsAll = false
  #idle: { readonly names: string[]; readonly place: Problem['place'] } | undefined
  /** Whether the newest document is incomplete and of a kind that podd takes. */
  #endsIncomplete = false

  constructor(options: DecodeOptions) {
    this.#options = options
  }

  result(): DecodeResult {
    // A server may give them in any order.
    const written = digestText(this.#digests.toSorted().join('\n'))
    return {
      documents: this.#documents.map((document) => ({ ...document, written })),
      problems: this.#boundedProblems(),
      heldObjects: [...this.#heldObjects],
      // A text whose last document is incomplete may be truncated there: earlier documents after it may be cut off too.
      holdsAll: this.#holdsAll || this.#endsIncomplete,
    }
  }

  #boundedProblems(): readonly Problem[] {
    if (this.#idle !== undefined) this.#problems.unshift(idleWarning(this.#idle.place, this.#idle.names))
    this.#idle = undefined
    const more = this.#problems.length - maxProblems
    if (more <= 0) return this.#problems
    const shown = this.#problems.slice(0, maxProblems)
    const isBad = this.#problems.some(({ severity }, index) => index >= maxProblems && severity === 'error')
    const severity = isBad ? 'error' : 'warning'
    return [...shown, { severity, place: { path: this.#options.path }, message: `and ${more} more` }]
  }

  take(document: RawDocument): void {
    this.#endsIncomplete = false
    if (document.kind === 'broken') {
      const place = { path: this.#options.path, ...document.position }
      this.#problems.push({ severity: 'error', place, message: document.message })
      this.#holdsAll = true
      return
    }
    for (const { written, name, position } of document.changedKeys) this.#warnOfKey(written, name, position)
    this.#takeObject(document.value, [], document)
  }

  #warnOfKey(written: string, name: string, position: Position): void {
    if (written === name) {
      const message = `key ${JSON.stringify(shorten(name))} stands twice, with the same value`
      this.#problems.push({ severity: 'warning', place: { path: this.#options.path, ...position }, message })
      return
    }
    const what = name === 'true' || name === 'false' ? 'a boolean' : 'a number'
    this.#problems.push({
      severity: 'warning',
      place: { path: this.#options.path, ...position },
      message: `YAML reads the key ${shorten(written)} as ${what}, so that it becomes ${JSON.stringify(name)}`,
      hint: `put quotes around it: ${JSON.stringify(shorten(written))}`,
    })
  }

  #takeObject(value: Json, at: FieldPath, written: Written): void {
    if (!isJsonObject(value)) {
      const isComment = typeof value === 'string' && /^\/[/*]/.test(value)
      const why = isComment ? ': comments begin with `#` here, not with `//` or `/*`, in JSON too' : ''
      this.#refuse(at, written, { path: [], message: `must be an object with apiVersion and kind${why}` })
      return
    }
    try {
      const isList = at.length === 0 && itemTypeOf(value) !== undefined
      const ready = isList ? value : this.#substitute(value, at, written)
      if (ready !== undefined) this.#takeKind(ready, at, written)
    } catch (error) {
      // A defect of podd must affect only this document.
      this.#refuse(at, written, { path: [], ...describeFault(value, error) }, value)
    }
  }

  /** Undefined where it can't be decoded. */
  #substitute(value: JsonObject, at: FieldPath, written: Written): JsonObject | undefined {
    const { values } = this.#options
    if (values === undefined) return value
    const { value: substituted, problems } = substituteValues(value, values)
    if (problems.length === 0) return substituted
    const isNamed = !problems.some(
      ({ path }) => path[0] === 'metadata' && (path[1] === 'name' || path[1] === 'namespace'),
    )
    for (const problem of problems) this.#refuse(at, written, problem, isNamed ? substituted : {})
    return undefined
  }

  #takeKind(value: JsonObject, at: FieldPath, written: Written): void {
    const kind = value['kind'] ?? (isKustomization(this.#options.path) ? 'Kustomization' : undefined)
    if (kind === undefined || kind === null || kind === '') {
      const message = 'Required value'
      this.#refuse(at, written, { path: ['kind'], reason: 'FieldValueRequired', message }, value)
    } else if (typeof kind !== 'string') {
      this.#refuse(at, written, { path: ['kind'], message: 'must be a string' }, value)
    } else if (kind === 'Pod') this.#takePod(value, at, written)
    else if (isObjectKind(kind)) this.#takeLocalObject(kind, value, at, written)
    // The namespace of a pod is just its name: there is nothing to be made.
    else if (kind === 'Namespace') this.#digests.push(digestWritten(value))
    else if (itemTypeOf(value) !== undefined && at.length === 0) this.#takeList(value, written)
    else {
      const verdict = judgeKind(kind, value['apiVersion'], this.#options.ignoreKinds)
      if (verdict.kind === 'idle') {
        this.#takeIdle(kind, value, at, written)
        return
      }
      const { message, hint, isOtherKind } = verdict
      const problem = { path: ['kind'], reason: 'RefusedHere', message, hint } as const
      this.#refuse(at, written, problem, value, !isOtherKind)
    }
  }

  /** All of a text are one warning; each field of them that a cluster would go by is one of its own. */
  #takeIdle(kind: string, value: JsonObject, at: FieldPath, written: Written): void {
    this.#digests.push(digestWritten(value))
    const named = nameOf(value)
    const place = { path: this.#options.path, ...written.locate(at) }
    this.#idle ??= { names: [], place }
    this.#idle.names.push(named === undefined ? kind : `${kind} ${named.name}`)
    if (!isKeptKind(kind)) return
    const issues = new Issues()
    keptEntry(kind).validate?.(value, issues)
    for (const problem of issues.problems) this.#report(problem, at, written)
  }

  #takeList(value: JsonObject, written: Written): void {
    const { items, ...envelope } = value
    const type = itemTypeOf(value) ?? {}
    const known = 'kind' in type && type['kind'] !== 'Pod' ? { kind: 'List', apiVersion: 'v1' } : {}
    const checked = checkValue(podListSchema, { ...envelope, ...known })
    for (const problem of checked.problems) this.#report(problem, [], written)
    if (checked.value === undefined) this.#holdsAll = true
    if (items === undefined || items === null) return
    if (!Array.isArray(items)) {
      this.#refuse([], written, { path: ['items'], message: 'Invalid value: must be a list' })
      return
    }
    items.forEach((item: Json, index) => {
      // The API leaves the type of the items of such a list out.
      this.#takeObject(isJsonObject(item) ? { ...type, ...item } : item, ['items', index], written)
    })
  }

  #takePod(value: JsonObject, at: FieldPath, written: Written): void {
    const { fieldValidation = 'Strict', requireDigest } = this.#options
    const { accepted, problems } = decodePod(value, fieldValidation, { requireDigest })
    const object = objectOf(value)
    for (const problem of problems) this.#report(problem, at, written, object)
    if (accepted !== undefined) {
      this.#digests.push(digestWritten(value))
      this.#documents.push({ ...accepted, place: { path: this.#options.path, ...written.locate(at) } })
    } else this.#hold(object === undefined ? undefined : [object])
  }

  #takeLocalObject(kind: ObjectKind, value: JsonObject, at: FieldPath, written: Written): void {
    const { fieldValidation = 'Strict', requireDigest } = this.#options
    const { accepted, problems } = decodeObject(kind, value, fieldValidation, { requireDigest })
    const named = nameOf(value)
    const key = named === undefined ? undefined : objectKey(kind, named.namespace, named.name)
    for (const problem of problems) this.#report(problem, at, written, key)
    if (accepted !== undefined) {
      this.#digests.push(digestWritten(value))
      this.#documents.push({ ...accepted, place: { path: this.#options.path, ...written.locate(at) } })
    } else this.#hold(key === undefined ? undefined : [key])
  }

  /** Reports something that is no valid document; `holds` where it may be a broken one of any kind. */
  #refuse(
    at: FieldPath,
    written: Written,
    problem: Omit<FieldProblem, 'severity'>,
    value: JsonObject = {},
    holds = true,
  ): void {
    const named = nameOf(value)
    this.#report({ ...problem, severity: 'error' }, at, written, objectOf(value))
    if (!holds) return
    this.#hold(named === undefined ? undefined : keysNamed(named))
  }

  /** Keeps the earlier form of a bad document; undefined: it may be any document. */
  #hold(keys: readonly string[] | undefined): void {
    if (keys === undefined) this.#holdsAll = true
    else for (const key of keys) this.#heldObjects.add(key)
  }

  #report(problem: FieldProblem, at: FieldPath, written: Written, object?: string): void {
    const path = [...at, ...problem.path]
    if (problem.severity === 'error' && missingReasons.has(problem.reason)) this.#endsIncomplete = true
    // Further problems are only counted.
    if (this.#problems.length >= maxProblems) {
      const { severity } = problem
      this.#problems.push({ severity, place: { path: this.#options.path }, message: '' })
      return
    }
    this.#problems.push({
      severity: problem.severity,
      place: { path: this.#options.path, ...written.locate([...at, ...(problem.near ?? problem.path)]) },
      ...(problem.reason !== undefined && { reason: problem.reason }),
      ...(path.length > 0 && { field: shorten(formatFieldPath(path)) }),
      message: shorten(problem.message),
      ...(problem.hint !== undefined && { hint: withQuoted(problem, written.textOf(path)) }),
      ...(object !== undefined && { object }),
    })
  }
}

/** Its kind may be left out. */
function isKustomization(path: string): boolean {
  return /(?:^|\/)kustomization\.ya?ml$/u.test(path)
}

/** The problems of a document that is truncated at the end of a line. */
const missingReasons: ReadonlySet<string | undefined> = new Set(['FieldValueRequired', 'FieldValueNotFound'])

/** What the items of a list are, where they don't say it; undefined where it is no list that podd takes. */
function itemTypeOf({ kind, apiVersion }: JsonObject): JsonObject | undefined {
  if (typeof kind !== 'string' || !kind.endsWith('List')) return undefined
  const item = kind.slice(0, -'List'.length)
  if (item === '') return {}
  if (item === 'Pod') return { apiVersion: 'v1', kind: item }
  return isObjectKind(item) ? { ...(apiVersion !== undefined && { apiVersion }), kind: item } : undefined
}

function shorten(text: string): string {
  return text.length > maxMessageCharacters ? `${text.slice(0, maxMessageCharacters)}…` : text
}

/** The text of an error may quote a Secret's values. */
function describeFault(value: JsonObject, error: unknown): Pick<FieldProblem, 'message' | 'hint'> {
  const what = holdsSecrets(value) ? '' : `: ${errorMessage(error)}`
  return { message: `podd cannot check this document${what}`, hint: 'this is a fault of podd: report it' }
}

/** The value as written, which may differ from the number: `1.20` is 1.2. */
function withQuoted({ hint, wantsQuotes }: FieldProblem, text: string | undefined): string | undefined {
  return wantsQuotes === true && text !== undefined ? `${hint}: ${JSON.stringify(shorten(text))}` : hint
}

interface Named {
  readonly namespace: string
  readonly name: string
}

/** `namespace/name`, where the document has them. */
function objectOf(value: JsonObject): string | undefined {
  const named = nameOf(value)
  return named === undefined ? undefined : podKey(named)
}

/** The key of every kind of document that could have this name. */
function keysNamed(named: Named): readonly string[] {
  return [podKey(named), ...objectKindNames.map((kind) => objectKey(kind, named.namespace, named.name))]
}

/** Undefined where the document has no readable name. */
function nameOf(value: JsonObject): Named | undefined {
  const metadata = value['metadata']
  if (!isJsonObject(metadata)) return undefined
  const { name, namespace } = metadata
  if (typeof name !== 'string' || name === '') return undefined
  return { namespace: typeof namespace === 'string' && namespace !== '' ? namespace : 'default', name }
}
