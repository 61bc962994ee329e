import type { FileHandle } from 'node:fs/promises'
import { readFully } from './find-tail.ts'
import { RecordAge, parseLogRecord } from './log-record.ts'

/** A file up to this size is read from its start. */
const smallBytes = 16 * 1024 * 1024
/** The least distance between two samples of a file, in bytes. */
const leastStepBytes = 1024 * 1024
/** The most samples of a file. */
const mostLooks = 1024
/** The bytes that a sample reads, first and then, to find a record's beginning. */
const lookBytes = [4 * 1024, 64 * 1024]
const newline = 0x0a

/**
 * The offset from which to read the first `sizeBytes` bytes of a log for records of `sinceMs` or later: the beginning
 * of a record before which all are older. Samples at most 1024 places, at even distances of at least 1 MiB. It is no
 * binary search, since times decrease where the clock was set back; it misses later times only where they lie between
 * two samples.
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

/** The beginning of the first record after `at`; undefined where it is new, or isn't found. */
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
