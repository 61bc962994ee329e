/** Where a field stands in its document: keys and list indexes from the top. */
export type FieldPath = readonly (string | number)[]

/** The maps of the API: what stands below them is a key, and not a field. */
const maps: ReadonlySet<string | number | undefined> = new Set([
  'annotations',
  'binaryData',
  'data',
  'labels',
  'limits',
  'matchLabels',
  'nodeSelector',
  'podFixed',
  'requests',
  'stringData',
])

/** As Kubernetes writes it: `spec.containers[0].image`; keys of maps stand in brackets. */
export function formatFieldPath(path: FieldPath): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`
      if (step.startsWith('[')) return step
      if (maps.has(path[index - 1])) return `[${step}]`
      return index === 0 ? step : `.${step}`
    })
    .join('')
}

/**
 * What kind of fault an error is: the `reason` that the API server gives a cause of its Status
 * (k8s.io/apimachinery/pkg/util/validation/field, ErrorType), and two that it has no word for: a name that the schema
 * doesn't have, and what Kubernetes takes and podd doesn't.
 */
export type FaultReason =
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueInvalid'
  | 'FieldValueNotFound'
  | 'FieldValueNotSupported'
  | 'FieldValueRequired'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'RefusedHere'
  | 'UnknownField'

/** Something wrong with one field, before it is known where in a file that is. */
export interface FieldProblem {
  readonly severity: 'error' | 'warning'
  readonly path: FieldPath
  /** Where it stands in the text, where that is more than `path` says. */
  readonly near?: FieldPath | undefined
  /** Of an error about a field. */
  readonly reason?: FaultReason | undefined
  readonly message: string
  /** It is about all of the field: the API server looks at no value below it. */
  readonly isWhole?: true
  readonly hint?: string | undefined
  /** The hint may be followed by the value as it is written, in quotes. */
  readonly wantsQuotes?: true
}
