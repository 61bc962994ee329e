import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { ifThere } from '../base/errors.ts'
import { planLogRotation } from '../decide/node/plan-logs.ts'
import type { LogAction, LogFacts, LogLimits } from '../decide/node/plan-logs.ts'

export interface RotateLogOptions {
  /** The container's log directory. */
  readonly directory: string
  readonly restartCount: number
  readonly limits: LogLimits
  /** Wall milliseconds. */
  readonly nowMs: number
  /** Has the runtime reopen the live file; rejects where it can't. */
  readonly reopen: () => Promise<void>
  readonly signal: AbortSignal
}

/**
 * Rotates one log that has grown past its limit. Every line stays in one of the files, in the order of their names,
 * also where podd is killed during it or the runtime doesn't answer: the runtime then keeps writing to the renamed
 * file, and the next run has the live one created. Returns whether anything was done; throws what the file system and
 * `reopen` throw.
 */
export async function rotateLog(options: RotateLogOptions): Promise<boolean> {
  const { directory, limits, nowMs, signal } = options
  const live = `${options.restartCount}.log`
  const facts = await readLogFacts(directory, live, limits)
  if (facts === undefined) return false
  const actions = planLogRotation(facts, limits, nowMs)
  for (const action of actions) {
    signal.throwIfAborted()
    await execute(action, options, live)
  }
  return actions.length > 0
}

/**
 * Undefined where there is no directory. Of a log below its limit only the live file is looked at, and the disk isn't
 * touched: the runtime has it open, which keeps its metadata in memory.
 */
async function readLogFacts(
  directory: string,
  live: string,
  limits: LogLimits,
): Promise<LogFacts | undefined> {
  const liveSizeBytes = statSync(join(directory, live), { throwIfNoEntry: false })?.size
  if (liveSizeBytes !== undefined && liveSizeBytes < limits.maxSizeBytes)
    return { live, liveSizeBytes, rotated: [] }
  const names = await ifThere(readdir(directory))
  return names && { live, liveSizeBytes, rotated: names.filter((name) => name.startsWith(`${live}.`)) }
}

async function execute(action: LogAction, log: RotateLogOptions, live: string): Promise<void> {
  switch (action.kind) {
    case 'remove':
      return rm(join(log.directory, action.name), { force: true })
    case 'compress':
      return compress(join(log.directory, action.name), log.signal)
    case 'rotate':
      await rename(join(log.directory, live), join(log.directory, action.to))
      return log.reopen()
    case 'reopen':
      return log.reopen()
  }
}

/** Readers find the plain file until the compressed one is complete. */
async function compress(path: string, signal: AbortSignal): Promise<void> {
  const temporary = `${path}.tmp`
  try {
    await pipeline(createReadStream(path), createGzip(), createWriteStream(temporary, { mode: 0o640 }), {
      signal,
    })
    await rename(temporary, `${path}.gz`)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await rm(path, { force: true })
}
