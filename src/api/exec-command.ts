/**
 * The words of a command, as a request to run one carries them: in the `command` parameters of its query, or in
 * the bytes right after its head, each word ended by a zero byte, where this header gives their number. A head has
 * no room for as many words as Linux takes.
 */
export const commandBytesHeader = 'podd-command-bytes'

/**
 * What the arguments of a process may take together: a quarter of its stack, which is 8 MiB nearly everywhere
 * (execve(2)); its environment counts too, which only the kernel knows.
 */
export const mostCommandBytes = 2 * 1024 * 1024

/** What one argument may take, less the zero byte that ends it (MAX_ARG_STRLEN, execve(2)). */
export const mostWordBytes = 128 * 1024 - 1

export function encodeCommand(words: readonly string[]): Buffer {
  return Buffer.from(words.map((word) => `${word}\0`).join(''))
}

export function decodeCommand(bytes: Buffer): readonly string[] {
  return bytes.toString('utf8').split('\0').slice(0, -1)
}
