import type { RoutedKind } from '../../api/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import { ApiError } from '../requests/api-error.ts'

/** Whether an object meets a selector. */
export type FieldSelector = (object: ResourceObject) => boolean

/**
 * Parses `field=value, field==value, field!=value`, all of which must hold; `\` escapes `,`, `=` and itself in a value
 * (`k8s.io/apimachinery/pkg/fields/selector.go`, 1.36). The kind defines the fields.
 * @throws ApiError BadRequest
 */
export function parseFieldSelector(text: string, kind: RoutedKind): FieldSelector {
  const terms = (text.match(/(?:\\.|[^,\\]|\\$)+/gsu) ?? []).map((term) => parseTerm(term, text, kind))
  return (object) => terms.every((isMet) => isMet(object))
}

function parseTerm(term: string, text: string, kind: RoutedKind): FieldSelector {
  const [, field = '', operator, escaped = ''] = /^(.*?)(!=|==|=)(.*)$/su.exec(term) ?? []
  if (operator === undefined) {
    throw new ApiError(400, `invalid selector: '${text}'; can't understand '${term}'`)
  }
  const value = unescape(escaped)
  const read = fieldOf(kind, field)
  if (read === undefined) throw new ApiError(400, `field label not supported: ${field}`)
  return (object) => (read(object) === value) === (operator !== '!=')
}

function fieldOf(kind: RoutedKind, field: string): ((object: ResourceObject) => string) | undefined {
  if (field === 'metadata.name') return ({ metadata }) => metadata.name
  if (field === 'metadata.namespace') return ({ metadata }) => metadata.namespace ?? ''
  return Object.hasOwn(kind.fields, field) ? kind.fields[field] : undefined
}

function unescape(text: string): string {
  return text.replaceAll(/\\(?<escaped>.?)|[,=]/gsu, (found, escaped?: string) => {
    if (escaped === undefined)
      throw new ApiError(400, `invalid field selector: unescaped character in value: ${found}`)
    if (!['\\', ',', '='].includes(escaped))
      throw new ApiError(400, `invalid field selector: invalid escape sequence: ${found}`)
    return escaped
  })
}
