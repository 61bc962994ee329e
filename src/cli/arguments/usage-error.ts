import { PoddError } from '../../base/errors.ts'

/** The command line is wrong: exit code 2, and nothing was done. */
export class UsageError extends PoddError {
  constructor(message: string, hint?: string) {
    super('USAGE', message, { hint })
  }
}
