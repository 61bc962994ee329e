import { invalidMetaOptions } from '../requests/invalid-options.ts'
import { booleanParam } from '../requests/query.ts'

export type FieldValidationMode = 'Strict' | 'Warn' | 'Ignore'

/** meta/v1 CreateOptions, UpdateOptions and PatchOptions from a query. */
export interface WriteOptions {
  /** A dry run: answers as if it were done, and changes nothing. */
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidationMode
  /** Empty by default. */
  readonly fieldManager: string
  /** Of an apply: takes fields over from other managers. */
  readonly force: boolean
  /** Fields that occur twice in the body. */
  readonly duplicates?: readonly string[]
}

/** The options of a request by its kind in meta/v1. */
export type OptionsKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'DeleteOptions'

/** Throws ApiError Invalid. */
export function readWriteOptions(query: URLSearchParams, kind: OptionsKind): WriteOptions {
  return {
    dryRun: readDryRun(query.getAll('dryRun'), kind),
    fieldValidation: readFieldValidation(query.get('fieldValidation') ?? '', kind),
    fieldManager: query.get('fieldManager') ?? '',
    force: booleanParam(query, 'force'),
  }
}

/** Throws ApiError Invalid (`apimachinery/pkg/apis/meta/v1/validation`, ValidateDryRun, 1.36). */
export function readDryRun(values: readonly string[], kind: OptionsKind): boolean {
  const given = values.filter((value) => value !== '')
  if (given.every((value) => value === 'All')) return given.length > 0
  const message = `Unsupported value: ${JSON.stringify(given)}: supported values: "All"`
  throw invalidMetaOptions(kind, [{ field: 'dryRun', reason: 'FieldValueNotSupported', message }])
}

/** The default of an API server: it warns. */
function readFieldValidation(text: string, kind: OptionsKind): FieldValidationMode {
  if (text === '' || text === 'Warn') return 'Warn'
  if (text === 'Strict' || text === 'Ignore') return text
  const message = `Unsupported value: ${JSON.stringify(text)}: supported values: "", "Ignore", "Strict", "Warn"`
  throw invalidMetaOptions(kind, [{ field: 'fieldValidation', reason: 'FieldValueNotSupported', message }])
}
