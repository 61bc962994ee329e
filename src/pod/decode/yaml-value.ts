import type * as yaml from 'yaml'
import type { Alias, Document, Pair, Scalar } from 'yaml'
import type { Json } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { isUnspeakable, resolvePlain } from './plain-scalar.ts'
import { unknownTag, unrenderedTemplate } from './yaml-message.ts'

/** The YAML library, loaded when it is first needed (see read-documents.ts). */
export type YamlLibrary = typeof yaml

/** Deeper nesting than any manifest has; beyond it a document is refused. */
const maxDepth = 100
/** The most values that aliases may add to a document, so that a few lines can't expand to gigabytes. */
const maxAliasedValues = 100_000

/** A document that is YAML but can't become JSON; `offset` counts from the document's start. */
export class YamlValueError extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.name = 'YamlValueError'
    this.offset = offset
  }
}

interface Anchored {
  readonly node: unknown
  readonly value: Json
  /** Values in it, itself included. */
  readonly count: number
}

type Entry = readonly [key: string, value: Json]

const coreTag = 'tag:yaml.org,2002:'
const scalarTags = new Set(['int', 'float', 'bool', 'null'].map((name) => `${coreTag}${name}`))
const binaryTag = `${coreTag}binary`
const knownTags = new Set([
  ...scalarTags,
  binaryTag,
  ...['str', 'map', 'seq', 'timestamp'].map((name) => `${coreTag}${name}`),
])

/** The JSON of a document. */
export interface YamlValue {
  readonly value: Json
  /** Keys that YAML reads as a boolean, or as a number that is written otherwise. */
  readonly changedKeys: readonly ChangedKey[]
  /** The node that an alias refers to. */
  readonly targetOf: (alias: Alias) => unknown
}

interface ChangedKey {
  readonly written: string
  readonly name: string
  readonly offset: number
}

/** The name that a key has in JSON, where it is a plain scalar. */
export function keyName(key: Scalar): string {
  const name = readScalar(key)
  return typeof name === 'number' || typeof name === 'boolean' ? String(name) : String(key.value)
}

/** Converts a document to JSON by Kubernetes' rules (see plain-scalar.ts). Throws YamlValueError. */
export function yamlToJson(yaml: YamlLibrary, document: Document): YamlValue {
  const reader = new YamlReader(yaml)
  const value = reader.read(document.contents, 0)
  return { value, changedKeys: reader.changedKeys, targetOf: (alias) => reader.targets.get(alias) }
}

class YamlReader {
  readonly targets = new Map<Alias, unknown>()
  readonly changedKeys: ChangedKey[] = []
  readonly #yaml: YamlLibrary
  readonly #anchors = new Map<string, Anchored | 'open'>()
  #values = 0
  #aliasedValues = 0

  constructor(yaml: YamlLibrary) {
    this.#yaml = yaml
  }

  read(node: unknown, depth: number): Json {
    const { isNode, isAlias } = this.#yaml
    if (!isNode(node)) return null
    const offset = node.range?.[0] ?? 0
    if (depth > maxDepth) throw new YamlValueError(`nested deeper than ${maxDepth} levels`, offset)
    if (isAlias(node)) return this.#readAlias(node, offset)
    if (node.tag !== undefined && !knownTags.has(node.tag)) {
      throw new YamlValueError(unknownTag, offset)
    }
    const { anchor } = node
    const before = this.#values
    if (anchor !== undefined) this.#anchors.set(anchor, 'open')
    const value = this.#readContent(node, depth)
    this.#values += 1
    if (anchor !== undefined) this.#anchors.set(anchor, { node, value, count: this.#values - before })
    return value
  }

  #readContent(node: unknown, depth: number): Json {
    const { isMap, isSeq, isScalar } = this.#yaml
    if (isMap(node)) return this.#readMap(node.items, depth)
    if (isSeq(node)) return node.items.map((item) => this.read(item, depth + 1))
    return isScalar(node) ? readScalar(node) : null
  }

  #readAlias(alias: Alias, offset: number): Json {
    const anchored = this.#anchors.get(alias.source)
    if (anchored === undefined) {
      const message =
        'an alias whose anchor does not stand before it; a value that begins with `*` needs quotes'
      throw new YamlValueError(message, offset)
    }
    if (anchored === 'open') throw new YamlValueError('an alias that refers to what it stands in', offset)
    this.#values += anchored.count
    this.#aliasedValues += anchored.count
    if (this.#aliasedValues > maxAliasedValues) {
      throw new YamlValueError(`aliases add more than ${maxAliasedValues} values`, offset)
    }
    this.targets.set(alias, anchored.node)
    return anchored.value
  }

  #readMap(pairs: readonly Pair[], depth: number): Json {
    const own = new Map<string, Json>()
    const merged: Entry[] = []
    for (const pair of pairs) {
      const offset = this.#offsetOf(pair.key)
      if (isMergeKey(pair.key)) {
        for (const entry of mergeEntries(this.read(pair.value, depth + 1), offset)) merged.push(entry)
        continue
      }
      const key = this.#readKey(pair.key, depth, offset)
      if (own.has(key)) throw new YamlValueError(`key ${JSON.stringify(key)} stands twice`, offset)
      own.set(key, this.read(pair.value, depth + 1))
    }
    // Own keys come before merged ones, and the first merged mapping before the next.
    return Object.fromEntries([...merged.reverse(), ...own])
  }

  #readKey(node: unknown, depth: number, offset: number): string {
    const key = this.read(node, depth + 1)
    if (typeof key === 'string') return key
    if (typeof key === 'number' || typeof key === 'boolean') {
      const name = String(key)
      const written = this.#yaml.isScalar(node) ? node.value : undefined
      if (typeof written === 'string' && written !== name) this.changedKeys.push({ written, name, offset })
      return name
    }
    // `{{ .Values.name }}` is a mapping with a mapping as its key.
    throw new YamlValueError(isJsonObject(key) ? unrenderedTemplate : 'a key must be a string', offset)
  }

  #offsetOf(node: unknown): number {
    return this.#yaml.isNode(node) ? (node.range?.[0] ?? 0) : 0
  }
}

function readScalar(node: Scalar): Json {
  const text = typeof node.value === 'string' ? node.value : ''
  if (node.tag === binaryTag) return readBinary(text, node.range?.[0] ?? 0)
  if (node.tag === undefined) {
    if (node.type !== 'PLAIN') return text
    if (isUnspeakable(text)) {
      throw new YamlValueError(
        'a number that JSON has no word for; put quotes around it',
        node.range?.[0] ?? 0,
      )
    }
    return resolvePlain(text)
  }
  return scalarTags.has(node.tag) ? resolvePlain(text) : text
}

/** Base64 as go-yaml decodes it: padding is required. */
function readBinary(text: string, offset: number): string {
  const packed = text.replaceAll(/\s/g, '')
  if (packed.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(packed)) {
    throw new YamlValueError('!!binary takes base64', offset)
  }
  return Buffer.from(packed, 'base64').toString('utf8')
}

function isMergeKey(key: unknown): boolean {
  return typeof key === 'object' && key !== null && 'source' in key && key.source === '<<' && !isQuoted(key)
}

function isQuoted(key: object): boolean {
  return 'type' in key && key.type !== 'PLAIN'
}

/** The mappings merged by `<<`: one, or a list in which the first wins. */
function mergeEntries(value: Json, offset: number): readonly Entry[] {
  const maps = Array.isArray(value) ? value : [value]
  return maps.flatMap((map) => {
    if (!isJsonObject(map)) throw new YamlValueError('<< takes a mapping, or a list of mappings', offset)
    return Object.entries(map)
  })
}
