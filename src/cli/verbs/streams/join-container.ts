import { commandProtocols } from '../../../api/remote-command.ts'
import { PoddError } from '../../../base/errors.ts'
import { podPath } from '../../arguments/namespace.ts'
import type { VerbContext } from '../../arguments/verb.ts'
import { runExec } from '../../client/exec-stream.ts'
import type { ExecStreams } from '../../client/exec-stream.ts'

export interface JoinedContainer {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  /** Whether it has a terminal of its own, and so a single output. */
  readonly tty: boolean
}

/**
 * Joins these streams with those of a container's own process, until it ends or the call does. Throws ServerError, or
 * PoddError ATTACH_FAILED, DAEMON_GONE or INTERRUPTED.
 */
export async function joinContainer(
  { client, signal }: Pick<VerbContext, 'client' | 'signal'>,
  { namespace, pod, container, tty }: JoinedContainer,
  streams: ExecStreams,
): Promise<void> {
  const query = new URLSearchParams({ container, stdout: 'true' })
  if (streams.stdin !== undefined) query.set('stdin', 'true')
  if (tty) query.set('tty', 'true')
  else query.set('stderr', 'true')
  if (streams.terminal !== undefined) {
    const { columns, rows } = streams.terminal.size()
    query.set('columns', String(columns))
    query.set('rows', String(rows))
  }
  const path = `${podPath(namespace, pod)}/attach?${query.toString()}`
  const socket = await client.openWebSocket(path, commandProtocols[0], signal)
  const outcome = await runExec(socket, streams, signal)
  if (outcome.kind === 'failed') throw new PoddError('ATTACH_FAILED', outcome.message)
}
