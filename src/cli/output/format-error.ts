import { PoddError, errorMessage } from '../../base/errors.ts'

/** What went wrong and what to do about it, as commands say it. */
export function formatError(error: unknown): string {
  const message = `podd: ${errorMessage(error)}`
  if (error instanceof PoddError) return error.hint === undefined ? message : `${message}\n${error.hint}`
  // A fault of podd's own: whoever reports it needs the place.
  return error instanceof Error && error.stack !== undefined ? `podd: ${error.stack}` : message
}
