import { cleanPath } from '../../base/text.ts'
import type { Issues } from '../schema/issues.ts'

/** The path has no `..`. */
export function noBacksteps(value: string, issues: Issues, near?: Issues): void {
  if (value.split('/').includes('..')) issues.invalid(value, "must not contain '..'", near)
}

/** A path inside a volume. */
export function localPath(value: string, issues: Issues, near?: Issues): void {
  if (value.startsWith('/')) issues.invalid(value, 'must be a relative path', near)
  noBacksteps(value, issues, near)
}

/** The path of a file in a volume. Source: pkg/apis/core/validation (validateLocalNonReservedPath), 1.36. */
export function filePathInVolume(value: string, issues: Issues, near?: Issues): void {
  if (value === '') {
    issues.required(undefined, near)
    return
  }
  localPath(value, issues, near)
  if (value.startsWith('..')) {
    if (!value.startsWith('../')) issues.invalid(value, "must not start with '..'", near)
  } else if (cleanPath(value) === '.') {
    const at = near ?? issues
    at.refused(`${JSON.stringify(value)} names no file`)
  }
}
