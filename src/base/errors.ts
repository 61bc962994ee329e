/** What every podd error carries besides its message. */
export interface PoddErrorOptions {
  /** What went wrong below, if anything did. */
  readonly cause?: unknown
  /** What the user can do about it: one sentence, imperative. */
  readonly hint?: string | undefined
}

/**
 * The base of all errors that podd raises on purpose. `code` is stable and stands in docs/ERRORS.md;
 * code may be compared, message text never.
 */
export class PoddError extends Error {
  readonly code: string
  readonly hint: string | undefined

  constructor(code: string, message: string, options: PoddErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = code
    this.hint = options.hint
  }
}

/** The message of anything that was thrown, its hint not included. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The `code` of anything that was thrown (`ENOENT`, `RUNTIME_UNAVAILABLE`, …), or undefined. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** Whether the system refused a call (open, read, mmap, …), and not what was read or asked is wrong. */
export function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && typeof error.syscall === 'string'
}

/** What the system says while it is short of something, or a disk or a server doesn't answer. */
const passingCodes: readonly string[] = [
  'EAGAIN',
  'EBUSY',
  'EINTR',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'ESTALE',
  'ETIMEDOUT',
]

/** Whether the same call may go well later although nobody changes anything. */
export function mayPass(error: unknown): boolean {
  return isSystemError(error) && passingCodes.includes(errorCode(error) ?? '')
}
