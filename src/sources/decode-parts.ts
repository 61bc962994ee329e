import type { DecodeResult } from '../pod/decode/decode-documents.ts'
import type { Problem, SourceDocument } from '../pod/objects/document.ts'

/** A document, or some tokens of one that is large. */
type Item = { readonly document: SourceDocument } | { readonly tokens: readonly unknown[] }

/**
 * A piece of a result that is taken over in a few milliseconds: all of a large one at once would hold the event loop. `rest`
 * comes with the last one.
 */
export interface DecodePart {
  readonly items: readonly Item[]
  readonly problems: readonly Problem[]
  readonly rest?: Pick<DecodeResult, 'heldObjects' | 'holdsAll'>
}

/** How many values one part has. */
const mostPerPart = 4_000
/** A document with more values is sent as tokens. */
const mostPerDocument = 2_000

/** The tokens. Each is followed by its value, an object's key, the number of an earlier array or object, or nothing. */
const token = { value: 0, array: 1, object: 2, key: 3, again: 4, end: 5 } as const
type TokenKind = (typeof token)[keyof typeof token]

/** Cuts a result into parts. */
export function* splitResult({ documents, problems, ...rest }: DecodeResult): Generator<DecodePart, void> {
  let items: Item[] = []
  let left = mostPerPart
  for (const document of documents) {
    const weight = weigh(document)
    if (left < Math.min(weight, mostPerDocument)) {
      yield { items, problems: [] }
      items = []
      left = mostPerPart
    }
    if (weight <= mostPerDocument) {
      items.push({ document })
      left -= weight
      continue
    }
    let tokens: unknown[] = []
    for (const [kind, payload] of tokensOf(document, new Map())) {
      tokens.push(kind, payload)
      left -= 1
      if (left > 0) continue
      yield { items: [...items, { tokens }], problems: [] }
      items = []
      tokens = []
      left = mostPerPart
    }
    items.push({ tokens })
  }
  let given = 0
  for (; problems.length - given > mostPerDocument; given += mostPerDocument) {
    yield { items, problems: problems.slice(given, given + mostPerDocument) }
    items = []
  }
  yield { items, problems: problems.slice(given), rest }
}

/** The number of values in something, counted up to a limit. */
function weigh(value: unknown): number {
  const waiting = [value]
  let weight = 0
  while (waiting.length > 0 && weight <= mostPerDocument) {
    const next = waiting.pop()
    weight += 1
    if (typeof next !== 'object' || next === null) continue
    for (const each of Object.values(next)) waiting.push(each)
  }
  return weight
}

function* tokensOf(
  value: unknown,
  seen: Map<object, number>,
): Generator<readonly [TokenKind, unknown], void> {
  if (typeof value !== 'object' || value === null) return yield [token.value, value]
  const before = seen.get(value)
  if (before !== undefined) return yield [token.again, before]
  seen.set(value, seen.size)
  if (Array.isArray(value)) {
    yield [token.array, undefined]
    for (const item of value) yield* tokensOf(item, seen)
  } else {
    yield [token.object, undefined]
    for (const [key, item] of Object.entries(value)) {
      yield [token.key, key]
      yield* tokensOf(item, seen)
    }
  }
  return yield [token.end, undefined]
}

/** Puts a result together again. */
export class ResultJoiner {
  readonly #documents: SourceDocument[] = []
  readonly #problems: Problem[] = []
  readonly #builder = new ValueBuilder((document) => {
    if (isDocument(document)) this.#documents.push(document)
  })

  /** Returns the result with its last part. */
  add({ items, problems, rest }: DecodePart): DecodeResult | undefined {
    for (const item of items) {
      if ('document' in item) this.#documents.push(item.document)
      else this.#builder.add(item.tokens)
    }
    for (const problem of problems) this.#problems.push(problem)
    return rest && { documents: this.#documents, problems: this.#problems, ...rest }
  }
}

function isDocument(value: unknown): value is SourceDocument {
  return typeof value === 'object' && value !== null && 'manifest' in value && 'place' in value
}

/** Builds values of tokens, which may come in pieces. */
class ValueBuilder {
  readonly #onValue: (value: unknown) => void
  readonly #open: { readonly value: object; key: string }[] = []
  #seen: object[] = []

  constructor(onValue: (value: unknown) => void) {
    this.#onValue = onValue
  }

  add(tokens: readonly unknown[]): void {
    for (let at = 0; at < tokens.length; at += 2) this.#take(tokens[at], tokens[at + 1])
  }

  #take(kind: unknown, payload: unknown): void {
    const top = this.#open.at(-1)
    if (kind === token.key && top !== undefined) top.key = String(payload)
    else if (kind === token.value) this.#put(payload)
    else if (kind === token.again) this.#put(this.#seen[Number(payload)])
    else if (kind === token.array) this.#begin([])
    else if (kind === token.object) this.#begin({})
    else if (kind === token.end && top !== undefined) {
      this.#open.pop()
      if (this.#open.length > 0) return
      this.#seen = []
      this.#onValue(top.value)
    }
  }

  #begin(value: object): void {
    this.#seen.push(value)
    this.#put(value)
    this.#open.push({ value, key: '' })
  }

  #put(value: unknown): void {
    const top = this.#open.at(-1)
    if (top === undefined) return
    if (Array.isArray(top.value)) top.value.push(value)
    // `__proto__` is a key as any other.
    else
      Object.defineProperty(top.value, top.key, {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      })
  }
}
