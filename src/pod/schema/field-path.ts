/** The path of a field in its document: keys and list indexes from the top. */
export type FieldPath = readonly (string | number)[]

/** The maps of the API: their children are keys, not fields. */
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

/** As Kubernetes writes it: `spec.containers[0].image`; keys of maps are in brackets. */
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
 * The type of an error: the `reason` of a cause in the API server's Status
 * (k8s.io/apimachinery/pkg/util/validation/field, ErrorType), and two of podd's own: an unknown field, and a value that
 * Kubernetes accepts and podd doesn't.
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

/** A problem of one field, before its position in a file is known. */
export interface FieldProblem {
  readonly severity: 'error' | 'warning'
  readonly path: FieldPath
  /** Its position in the text, where `path` is not precise enough. */
  readonly near?: FieldPath | undefined
  /** Of an error about a field. */
  readonly reason?: FaultReason | undefined
  readonly message: string
  /** Whether it concerns the whole field: the API server reports nothing below it. */
  readonly isWhole?: true
  readonly hint?: string | undefined
  /** Whether the hint may be followed by the value as written, in quotes. */
  readonly wantsQuotes?: true
}
