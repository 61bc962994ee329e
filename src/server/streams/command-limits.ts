import { ApiError } from '../requests/api-error.ts'

/**
 * The largest size of all arguments of a process together: a quarter of its stack, which is 8 MiB nearly everywhere
 * (execve(2)); its environment counts too, which only the kernel knows.
 */
const mostCommandBytes = 2 * 1024 * 1024

/** The largest argument, without its final zero byte (MAX_ARG_STRLEN, execve(2)). */
const mostWordBytes = 128 * 1024 - 1

/** Rejects a command that the kernel would reject, and names the word that is too long. Throws ApiError. */
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
  if (total <= mostCommandBytes) return
  throw new ApiError(
    413,
    `the command has ${total} bytes, of which Linux takes ${mostCommandBytes} at most`,
    'Pass its input on standard input (-i), or in a file.',
  )
}
