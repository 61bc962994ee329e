import { dirname } from 'node:path'
import { makeDirectory } from '../base/atomic-file.ts'
import type { Logger } from '../base/logger.ts'
import type { NodeJob } from '../control/node/node-jobs.ts'
import { watchNames } from '../host/watch-names.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'

/** Covers changes without an event: another file system was mounted over the directory. */
const periodMs = 60_000

const deadlineMs = 30_000

export interface KeepSocketOptions {
  readonly path: string
  /** Listens at the path again where its file is gone or was replaced; resolves with whether it was. */
  readonly renew: () => Promise<boolean>
  /** Runs the job as soon as possible. */
  readonly wake: () => void
  readonly events: NodeEventRecorder
  readonly logger: Logger
  /** Ends the watch of the directory. */
  readonly signal: AbortSignal
}

export const keepSocketName = 'keep-socket'

/**
 * Recreates the API's socket where it was removed or replaced, as soon as the directory's watch reports it. Its
 * directory is recreated too.
 */
export function keepSocketJob({ path, renew, wake, events, logger, signal }: KeepSocketOptions): NodeJob {
  const directory = dirname(path)
  let watching: AbortController | undefined

  /** Watches the current directory: the earlier one may have been removed. */
  function follow(): void {
    watching?.abort()
    watching = new AbortController()
    watchNames([path, directory], wake, AbortSignal.any([signal, watching.signal]))
  }

  return {
    name: keepSocketName,
    periodMs,
    deadlineMs,
    runsAtStart: true,
    async run() {
      await makeDirectory(directory, 0o711)
      const isRenewed = await renew()
      if (isRenewed || watching === undefined) {
        follow()
        // It may have been removed before the watch began.
        await renew()
      }
      if (!isRenewed) return
      const message = `The API socket ${path} was removed or replaced from outside podd, and podd listens there again`
      events.recordNode({ type: 'Warning', reason: 'ApiSocketRestored', message })
      logger.warn({ path }, 'restored the API socket')
    },
  }
}
