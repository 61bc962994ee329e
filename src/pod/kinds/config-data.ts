import type { FieldPath } from '../schema/field-path.ts'
import type { Issues } from '../validation/issues.ts'
import { configMapKey } from '../validation/name-rules.ts'

/** The most that the keys and values of a ConfigMap or Secret may take (MaxSecretSize). */
const maxDataBytes = 1024 * 1024

type Values = Readonly<Record<string, string>>

/** The data of a ConfigMap or Secret, by notation. */
export interface ConfigData {
  readonly base64: Values
  readonly text: Values
}

/** Key to content; text takes precedence over base64. */
export function dataOf({ base64, text }: ConfigData): ReadonlyMap<string, Buffer> {
  return new Map([
    ...Object.entries(base64).map(([key, value]) => [key, Buffer.from(value, 'base64')] as const),
    ...Object.entries(text).map(([key, value]) => [key, Buffer.from(value)] as const),
  ])
}

/** The API server names no field. */
export function limitSize(data: ConfigData, near: FieldPath, issues: Issues): void {
  const bytes = [...dataOf(data).values()].reduce((sum, value) => sum + value.byteLength, 0)
  if (bytes > maxDataBytes) issues.tooLong(['[]'], maxDataBytes, near)
}

export function validateBase64(values: Values, path: FieldPath, issues: Issues): void {
  for (const [key, value] of Object.entries(values)) {
    issues.name([...path, key], key, configMapKey)
    if (!isBase64(value)) issues.invalid([...path, key], '…', 'must be base64')
  }
}

/** As Go's decoder reads it: padding is required; line breaks are allowed. */
function isBase64(value: string): boolean {
  const packed = value.replaceAll(/[\r\n]/g, '')
  return packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed)
}
