import { ApiError } from '../requests/api-error.ts'

export type FieldValidationMode = 'Strict' | 'Warn' | 'Ignore'

/** meta/v1 CreateOptions, UpdateOptions and PatchOptions, as they stand in a query. */
export interface WriteOptions {
  /** The answer is as if it were done, and nothing is. */
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidationMode
  /** Empty where nothing is said. */
  readonly fieldManager: string
  /** Of an apply: takes fields over from other managers. */
  readonly force: boolean
}

/** Throws ApiError Invalid. */
export function readWriteOptions(query: URLSearchParams): WriteOptions {
  return {
    dryRun: readDryRun(query.getAll('dryRun')),
    fieldValidation: readFieldValidation(query.get('fieldValidation') ?? ''),
    fieldManager: query.get('fieldManager') ?? '',
    force: query.get('force') === 'true',
  }
}

/** Throws ApiError Invalid (`apimachinery/pkg/apis/meta/v1/validation`, ValidateDryRun, 1.36). */
export function readDryRun(values: readonly string[]): boolean {
  const given = values.filter((value) => value !== '')
  if (given.every((value) => value === 'All')) return given.length > 0
  const words = JSON.stringify(given)
  throw new ApiError(422, `dryRun: Unsupported value: ${words}: supported values: "All"`, undefined, {
    causes: [
      {
        reason: 'FieldValueNotSupported',
        message: `Unsupported value: ${words}: supported values: "All"`,
        field: 'dryRun',
      },
    ],
  })
}

/** As an API server does where nothing is said: it warns. */
function readFieldValidation(text: string): FieldValidationMode {
  if (text === '' || text === 'Warn') return 'Warn'
  if (text === 'Strict' || text === 'Ignore') return text
  const message = `Unsupported value: ${JSON.stringify(text)}: supported values: "Ignore", "Strict", "Warn"`
  throw new ApiError(422, `fieldValidation: ${message}`, undefined, {
    causes: [{ reason: 'FieldValueNotSupported', message, field: 'fieldValidation' }],
  })
}
