/** The types of the Kubernetes API: for each its fields, or what it is a name for. */
export interface CoreFields {
  readonly types: ReadonlyMap<string, ReadonlyMap<string, CoreField>>
  /** Allowed words by the name of their type. */
  readonly enums: ReadonlyMap<string, readonly string[]>
}

export interface CoreField {
  /** `Volume`, `string`, `RestartPolicy`, …: what a list or a map holds. */
  readonly base: string
  readonly shape: 'single' | 'list' | 'map'
  readonly isOptional: boolean
}

/** Reads test/fixtures/core-v1-fields.json, whose field types look like `[]Volume?`. */
export function parseCoreFields(json: string): CoreFields {
  const data: unknown = JSON.parse(json)
  const types = new Map<string, ReadonlyMap<string, CoreField>>()
  for (const [name, fields] of entriesOf(valueOf(data, 'types'))) {
    if (typeof fields === 'string') continue
    const parsed = entriesOf(fields).map(([field, type]) => [field, parseType(String(type))] as const)
    types.set(name, new Map(parsed))
  }
  const enums = entriesOf(valueOf(data, 'enums')).map(
    ([name, words]) => [name, Array.isArray(words) ? words.map(String) : []] as const,
  )
  return { types, enums: new Map(enums) }
}

function parseType(text: string): CoreField {
  const isOptional = text.endsWith('?')
  // Kinds outside of core name core's types with a prefix.
  const type = (isOptional ? text.slice(0, -1) : text).replace(/^(\[\])?(?:core|api)(?=[A-Z])/, '$1')
  const map = /^map<\w+,(.*)>$/.exec(type)
  if (map?.[1] !== undefined) return { base: map[1], shape: 'map', isOptional }
  // The list of quantities by name is a type of its own there.
  if (type === 'ResourceList') return { base: 'Quantity', shape: 'map', isOptional }
  if (type.startsWith('[]') && type !== '[]byte') return { base: type.slice(2), shape: 'list', isOptional }
  return { base: type, shape: 'single', isOptional }
}

function valueOf(data: unknown, key: string): unknown {
  return new Map(entriesOf(data)).get(key)
}

function entriesOf(data: unknown): readonly [string, unknown][] {
  return typeof data === 'object' && data !== null ? Object.entries(data) : []
}
