import { PoddError } from '../base/errors.ts'

/** How many restarts for its memory led to this podd, one after the other. */
const restartsVariable = 'PODD_MEMORY_RESTARTS'

/** Reads and removes what an earlier podd in this process left in the environment. */
export function takeRestarts(env: Record<string, string | undefined>): number {
  const count = Number(env[restartsVariable] ?? 0)
  delete env[restartsVariable]
  return Number.isInteger(count) && count > 0 ? count : 0
}

export interface Replacement {
  /** Added to the environment of this process. */
  readonly environment: Readonly<Record<string, string>>
  readonly restarts: number
}

/**
 * Restarts the same program in this process; the pid stays the same, so that a supervisor notices no exit. Returns only
 * by throwing: PoddError INTERNAL, or the system's error.
 */
export function replaceProcess({ environment, restarts }: Replacement): void {
  if (process.execve === undefined) throw new PoddError('INTERNAL', 'this Node.js cannot replace its process')
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, args, {
    ...process.env,
    ...environment,
    ...(restarts === 0 ? {} : { [restartsVariable]: String(restarts) }),
  })
}
