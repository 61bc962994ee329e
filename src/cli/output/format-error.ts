import { PoddError, errorMessage } from '../../base/errors.ts'

/** Formats an error with its hint for commands. */
export function formatError(error: unknown): string {
  const message = `podd: ${errorMessage(error)}`
  if (error instanceof PoddError) return error.hint === undefined ? message : `${message}\n${error.hint}`
  // A defect in podd: a report needs the stack.
  return error instanceof Error && error.stack !== undefined ? `podd: ${error.stack}` : message
}
