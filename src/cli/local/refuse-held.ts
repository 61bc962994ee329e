import type { DaemonStatus } from '../../api/routes.ts'
import { PoddError } from '../../base/errors.ts'

/**
 * Throws PoddError WAIT_FAILED where one of these files is of a held source: it has no effect until the source is
 * resumed.
 * @param done the participle for the message: `written`
 */
export function refuseHeld({ sources }: DaemonStatus, paths: readonly string[], done: string): void {
  const held = sources.find(
    ({ heldSince, path }) =>
      heldSince !== undefined && paths.some((own) => own === path || own.startsWith(`${path}/`)),
  )
  if (held === undefined) return
  throw new PoddError(
    'WAIT_FAILED',
    `the source ${held.source} is held: nothing of ${held.path} is applied`,
    {
      hint: `The manifests are ${done}; \`podd resume ${held.source}\` applies that.`,
    },
  )
}
