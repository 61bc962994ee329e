import { putAside, readIfExists, removeAtomicFileTemps, writeFileAtomic } from '../base/atomic-file.ts'
import type { JsonObject } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import { readState } from '../base/state-file.ts'
import type { Migration } from '../base/state-file.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'

/** A state file that this podd can't read: corrupt, or of a newer podd's version. */
export interface UnreadableState {
  /** Its path: beside the original one, if it was put aside. */
  readonly path: string
  /** Why, after the path. */
  readonly message: string
}

/** Reports a state file that can't be read. Never throws. */
export type StateReport = (state: UnreadableState) => void

/** Reports by a log line and an event of the node. */
export function createStateReport(events: NodeEventRecorder, logger: Logger): StateReport {
  return ({ path, message }) => {
    logger.error({ path, reason: message }, 'cannot read a state file')
    events.recordNode({
      type: 'Warning',
      reason: 'StateUnreadable',
      message: `cannot read the state file ${path}: ${message}`,
    })
  }
}

/** The text of one file of podd's own. Both calls throw the system's errors as they are. */
export interface SmallFile {
  readonly path: string
  /** Undefined where the file doesn't exist. */
  read(): Promise<string | undefined>
  /** Replaces it; a crash leaves the old text or the new one. */
  write(text: string): Promise<void>
}

export function smallFile(path: string): SmallFile {
  return {
    path,
    async read() {
      await removeAtomicFileTemps(path)
      return readIfExists(path)
    },
    write: (text) => writeFileAtomic(path, text),
  }
}

/**
 * What a state file holds, in the form of the current version; undefined where there is none. One that can't be read (it
 * is corrupt, a newer podd wrote it, or `parse` finds that it lacks something) is put aside and reported, and counts as
 * none. Throws the system's error where the disk can't be read.
 * @param migrations one step for each version before the current one, oldest first
 * @param parse undefined where the content lacks what it must have
 */
export async function loadState<Content>(
  file: SmallFile,
  migrations: readonly Migration[],
  parse: (content: JsonObject) => Content | undefined,
  report?: StateReport,
): Promise<Content | undefined> {
  const text = await file.read()
  if (text === undefined) return undefined
  const reading = readState(text, migrations)
  const content = reading.kind === 'current' ? parse(reading.content) : undefined
  if (content !== undefined) return content
  const message = reading.kind === 'current' ? 'it lacks what it must have' : reading.message
  const path = await putAside(file.path)
  report?.({ path, message })
  return undefined
}
