import type { FileHandle } from 'node:fs/promises'
import { readFully } from './find-tail.ts'
import { RecordAge, parseLogRecord } from './log-record.ts'

/** A file up to this size is read from its start. */
const smallBytes = 16 * 1024 * 1024
/** Between two looks into a file, at least. */
const leastStepBytes = 1024 * 1024
/** How many looks a file of any size takes. */
const mostLooks = 1024
/** A look reads so much, and then so much, to find a record's beginning. */
const lookBytes = [4 * 1024, 64 * 1024]
const newline = 0x0a

/**
 * Where to begin reading the first `sizeBytes` bytes of a log for what was written at `sinceMs` or later: at the beginning
 * of a record before which all is older. Looks at no more than 1024 places, evenly apart and at least 1 MiB. It doesn't
 * search by halves, for times don't grow where the clock was set back: only where less was written between
 * two places before that happened does it miss what bears the later times.
 */
export async function findSince(handle: FileHandle, sizeBytes: number, sinceMs: number): Promise<number> {
  if (sizeBytes <= smallBytes) return 0
  const age = new RecordAge(sinceMs)
  const stepBytes = Math.max(leastStepBytes, Math.ceil(sizeBytes / mostLooks))
  let start = 0
  for (let at = stepBytes; at < sizeBytes; at += stepBytes) {
    const offset = await findOldRecord(handle, at, sizeBytes, age)
    if (offset === undefined) break
    start = offset
  }
  return start
}

/** Where the first record after `at` begins; undefined where it is new, or isn't found. */
async function findOldRecord(
  handle: FileHandle,
  at: number,
  sizeBytes: number,
  age: RecordAge,
): Promise<number | undefined> {
  for (const length of lookBytes) {
    const block = Buffer.allocUnsafe(Math.min(length, sizeBytes - at))
    await readFully(handle, block, at)
    for (let end = block.indexOf(newline); end !== -1;) {
      const start = end + 1
      end = block.indexOf(newline, start)
      if (end === -1) break
      const record = parseLogRecord(block, start, end)
      if (record === undefined) continue
      return age.isOld(block, start, record.timeEnd) ? at + start : undefined
    }
  }
  return undefined
}
