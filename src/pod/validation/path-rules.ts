import { cleanPath } from '../../base/text.ts'
import type { FieldPath, Issues } from '../schema/issues.ts'

/** The path has no `..`. */
export function noBacksteps(value: string, path: FieldPath, issues: Issues, near?: FieldPath): void {
  if (value.split('/').includes('..')) issues.invalid(path, value, "must not contain '..'", near)
}

/** A path inside a volume. */
export function localPath(value: string, path: FieldPath, issues: Issues, near?: FieldPath): void {
  if (value.startsWith('/')) issues.invalid(path, value, 'must be a relative path', near)
  noBacksteps(value, path, issues, near)
}

/** The path of a file in a volume. Source: pkg/apis/core/validation (validateLocalNonReservedPath), 1.36. */
export function filePathInVolume(value: string, path: FieldPath, issues: Issues, near?: FieldPath): void {
  if (value === '') {
    issues.required(path, undefined, near)
    return
  }
  localPath(value, path, issues, near)
  if (value.startsWith('..')) {
    if (!value.startsWith('../')) issues.invalid(path, value, "must not start with '..'", near)
  } else if (cleanPath(value) === '.') issues.refused(near ?? path, `${JSON.stringify(value)} names no file`)
}
