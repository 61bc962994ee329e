import type { Alias, Document } from 'yaml'
import type { FieldPath } from '../schema/field-path.ts'
import { keyName } from './yaml-value.ts'
import type { YamlLibrary } from './yaml-value.ts'

/** The position of a field in the text of a document. */
export interface Found {
  /** The position of the field's key where it exists, else of the deepest field on its path. */
  readonly offset: number
  /** The position of its value; undefined without such a field. */
  readonly node: unknown
}

interface Entry {
  readonly mark: unknown
  readonly value: unknown
}

/**
 * Finds fields of a document by their paths. Each mapping is indexed once, when a field of it is first looked for, so
 * that finding many fields of a large one is fast.
 */
export class FieldLocator {
  readonly #yaml: YamlLibrary
  readonly #document: Document
  readonly #targetOf: (alias: Alias) => unknown
  readonly #entries = new Map<unknown, ReadonlyMap<unknown, Entry>>()

  /** @param targetOf resolves an alias; the library would walk through the document each time */
  constructor(yaml: YamlLibrary, document: Document, targetOf: (alias: Alias) => unknown) {
    this.#yaml = yaml
    this.#document = document
    this.#targetOf = targetOf
  }

  find(path: FieldPath): Found {
    let node: unknown = this.#document.contents
    let offset = this.#startOf(node) ?? 0
    for (const step of path) {
      const found = this.#descend(this.#behind(node), step)
      if (found === undefined) return { offset, node: undefined }
      offset = this.#startOf(found.mark) ?? offset
      node = found.value
    }
    return { offset, node: this.#behind(node) }
  }

  #descend(node: unknown, step: string | number): Entry | undefined {
    if (this.#yaml.isSeq(node)) {
      const item = typeof step === 'number' ? node.items[step] : undefined
      return item === undefined ? undefined : { mark: item, value: item }
    }
    return this.#entriesOf(node).get(step)
  }

  /** The fields of a mapping with those merged into it; own fields come before merged ones. */
  #entriesOf(node: unknown): ReadonlyMap<unknown, Entry> {
    const known = this.#entries.get(node)
    if (known !== undefined) return known
    const entries = new Map<unknown, Entry>()
    this.#entries.set(node, entries)
    if (!this.#yaml.isMap(node)) return entries
    const merged: unknown[] = []
    for (const { key, value } of node.items) {
      if (!this.#yaml.isScalar(key)) continue
      if (key.value === '<<') merged.push(this.#behind(value))
      const name = keyName(key)
      if (!entries.has(name)) entries.set(name, { mark: key, value })
    }
    for (const source of new Set(merged)) {
      for (const [name, entry] of this.#entriesOf(source)) if (!entries.has(name)) entries.set(name, entry)
    }
    return entries
  }

  #behind(node: unknown): unknown {
    return this.#yaml.isAlias(node) ? this.#targetOf(node) : node
  }

  #startOf(node: unknown): number | undefined {
    return this.#yaml.isNode(node) ? node.range?.[0] : undefined
  }
}
