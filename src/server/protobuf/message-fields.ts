import { isJsonObject } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'

/** One field of a message. */
export interface MessageField {
  readonly name: string
  /** Of the value: a scalar's name, or a message's. */
  readonly type: string
  readonly kind: 'single' | 'list' | 'map'
  /** A zero value says nothing. */
  readonly omitsZero: boolean
  /** In JSON the fields of the message are the outer one's. */
  readonly isInline: boolean
}

/** The fields of each message of proto/kubernetes.proto, by their numbers. */
export class Messages {
  readonly #definitions: JsonObject
  readonly #fields = new Map<string, ReadonlyMap<number, MessageField>>()

  private constructor(definitions: JsonObject) {
    this.#definitions = definitions
  }

  /** Loads them: few podds are ever sent such a message. */
  static async load(): Promise<Messages> {
    const { default: wire } = await import('../../cri-types/kubernetes.wire.json', { with: { type: 'json' } })
    return new Messages(wire.nested)
  }

  has(message: string): boolean {
    return Object.hasOwn(this.#definitions, message)
  }

  fieldsOf(message: string): ReadonlyMap<number, MessageField> {
    const known = this.#fields.get(message)
    if (known !== undefined) return known
    const definition = this.has(message) ? this.#definitions[message] : undefined
    const described = isJsonObject(definition) ? definition['fields'] : undefined
    const fields = new Map<number, MessageField>()
    for (const [name, field] of Object.entries(isJsonObject(described) ? described : {})) {
      if (!isJsonObject(field)) continue
      const { id, type, rule, keyType, options } = field
      if (typeof id !== 'number' || typeof type !== 'string') continue
      const has = (option: string): boolean => isJsonObject(options) && options[option] === true
      fields.set(id, {
        name,
        type,
        kind: keyType === undefined ? (rule === 'repeated' ? 'list' : 'single') : 'map',
        omitsZero: has('(omitzero)'),
        isInline: has('(inline)'),
      })
    }
    this.#fields.set(message, fields)
    return fields
  }
}
