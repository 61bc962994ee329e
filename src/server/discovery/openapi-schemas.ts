import { describeSupport, fieldBelow } from '../../pod/schema/types.ts'
import type { AnyType, Field, Fields, ObjectType } from '../../pod/schema/types.ts'

/** A schema of OpenAPI 3.0. */
export type OpenApiSchema = Readonly<Record<string, unknown>>

/** Collects the schemas of objects by their names, each with those that it refers to. */
export class OpenApiSchemas {
  readonly #schemas = new Map<string, OpenApiSchema>()
  /** By the answer of a parent that isn't supported, else by an empty text. */
  readonly #names = new Map<ObjectType<Fields>, Map<string, string>>()

  /** The schemas by name, as `components.schemas` holds them. */
  toJson(): Readonly<Record<string, OpenApiSchema>> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** @param extra fields in addition to the type's own */
  add(type: ObjectType<Fields>, extra: OpenApiSchema = {}): string {
    return this.#add(type, undefined, extra)
  }

  /** A type has a schema for each answer that its fields inherit. */
  #add(type: ObjectType<Fields>, parent: Field['support'] | undefined, extra: OpenApiSchema = {}): string {
    const answer = parent === undefined || parent.kind === 'supported' ? '' : describeSupport(parent)
    const names = this.#names.get(type) ?? new Map<string, string>()
    const known = names.get(answer)
    if (known !== undefined) return known
    const name = this.#freeName(type.name)
    this.#names.set(type, names.set(answer, name))
    // It may refer to itself.
    this.#schemas.set(name, {})
    const fields = Object.entries(type.fields)
    const required = fields.flatMap(([field, { presence }]) => (presence === 'required' ? [field] : []))
    this.#schemas.set(name, {
      type: 'object',
      description: 'What podd does with each field; the Kubernetes documentation explains them.',
      properties: Object.fromEntries(
        fields.map(([field, entry]) => [field, this.#property(fieldBelow(parent, entry))]),
      ),
      ...(required.length > 0 && { required }),
      ...extra,
    })
    return name
  }

  /** Adds a hand-written schema. */
  set(name: string, schema: OpenApiSchema): void {
    this.#schemas.set(name, schema)
  }

  /** Types of the same name with different fields get a number. */
  #freeName(wanted: string): string {
    let name = wanted
    for (let count = 2; this.#schemas.has(name); count += 1) name = `${wanted}${count}`
    return name
  }

  #property({ type, presence, value, support }: Field): OpenApiSchema {
    const description = describeSupport(support)
    const schema = this.#schemaOf(type, support)
    const isPlain = presence === 'defaulted' && (typeof value !== 'object' || value === null)
    const extra = {
      description,
      ...(isPlain && { default: value }),
    }
    // A reference allows no other fields beside it (OpenAPI 3.0).
    return '$ref' in schema ? { allOf: [schema], ...extra } : { ...schema, ...extra }
  }

  #schemaOf(type: AnyType, support: Field['support']): OpenApiSchema {
    switch (type.kind) {
      case 'object':
        return { $ref: `#/components/schemas/${this.#add(type, support)}` }
      case 'list':
        return { type: 'array', items: this.#schemaOf(type.item, support) }
      case 'map':
        return { type: 'object', additionalProperties: this.#schemaOf(type.value, support) }
      case 'string':
        return {
          type: 'string',
          ...(type.values !== undefined && { enum: type.values }),
          ...(type.format !== undefined && { format: type.format }),
        }
      case 'int32':
      case 'int64':
        return { type: 'integer', format: type.kind }
      case 'bool':
        return { type: 'boolean' }
      case 'quantity':
        this.#schemas.set('Quantity', { type: 'string', description: 'A quantity, such as 500m or 64Mi.' })
        return { $ref: '#/components/schemas/Quantity' }
      case 'intOrString':
        return { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] }
      case 'any':
        return { type: 'object' }
    }
  }
}
