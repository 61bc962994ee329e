import { mostCommandBytes, mostWordBytes } from '../../api/exec-command.ts'
import { ApiError } from '../requests/api-error.ts'

/** Refuses what the kernel would: here it can be said which word is too long. Throws ApiError. */
export function refuseLong(words: readonly string[]): void {
  const sizes = words.map((word) => Buffer.byteLength(word))
  const at = sizes.findIndex((bytes) => bytes > mostWordBytes)
  if (at >= 0) {
    throw new ApiError(
      413,
      `word ${at + 1} of the command has ${sizes[at]} bytes, of which Linux takes ${mostWordBytes} at most`,
      'Pass it on standard input (-i), or in a file.',
    )
  }
  // Each has a zero byte at its end, and a pointer.
  const total = sizes.reduce((sum, bytes) => sum + bytes + 9, 0)
  if (total > mostCommandBytes) throw tooLong(total)
}

export function tooLong(bytes: number): ApiError {
  return new ApiError(
    413,
    `the command has ${bytes} bytes, of which Linux takes ${mostCommandBytes} at most`,
    'Pass what it works on on standard input (-i), or in a file.',
  )
}
