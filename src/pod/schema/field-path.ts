/** Where a field stands in its document: keys and list indexes from the top. */
export type FieldPath = readonly (string | number)[]

/** As Kubernetes writes it: `spec.containers[0].image`; keys that aren't plain names stand in brackets. */
export function formatFieldPath(path: FieldPath): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`
      if (!/^[A-Za-z_$][\w-]*$/.test(step)) return `[${step}]`
      return index === 0 ? step : `.${step}`
    })
    .join('')
}

/** Something wrong with one field, before it is known where in a file that is. */
export interface FieldProblem {
  readonly severity: 'error' | 'warning'
  readonly path: FieldPath
  readonly message: string
  readonly hint?: string | undefined
  /** The hint may be followed by the value as it is written, in quotes. */
  readonly wantsQuotes?: true
}
