import { describe, expect, it } from 'vitest'
import { DecodeUnavailable } from '../../../src/sources/decode-thread.ts'
import { holdsRemovals, readFailure } from '../../../src/sources/directory/pending-files.ts'

const systemError = (code: string): Error =>
  Object.assign(new Error(`${code}: said so`), { code, syscall: 'open' })

describe('a failure to read a file', () => {
  it.each([
    [systemError('EMFILE'), 'cannot be read: EMFILE', true],
    [systemError('EIO'), 'cannot be read: EIO', true],
    [systemError('EACCES'), 'cannot be read: EACCES', false],
    [systemError('ENOTDIR'), 'cannot be read: ENOTDIR', false],
    [new DecodeUnavailable('EAGAIN'), 'cannot be decoded for now: EAGAIN', true],
    [new Error('a fault'), 'cannot be read: a fault', false],
  ])('%s is told, and may pass or not', (error, reason, mayPass) => {
    expect(readFailure(error, undefined, 5000)).toEqual({
      reason,
      mayPass,
      delayMs: 1000,
      sinceMs: 5000,
      retryAtMs: 6000,
    })
  })

  it('holds removals up for five minutes, where it may pass', () => {
    const first = readFailure(systemError('EMFILE'), undefined, 5000)
    const later = readFailure(systemError('EMFILE'), first, 200_000)
    expect([first, later].map(({ sinceMs }) => sinceMs)).toEqual([5000, 5000])
    expect(holdsRemovals(later, 304_999)).toBe(true)
    expect(holdsRemovals(later, 305_000)).toBe(false)
    expect(holdsRemovals(readFailure(systemError('EACCES'), undefined, 5000), 5001)).toBe(false)
    expect(holdsRemovals(undefined, 0)).toBe(false)
  })

  it('is tried again after ever longer waits, half a minute at most', () => {
    const delays: number[] = []
    let failure: ReturnType<typeof readFailure> | undefined
    for (let attempt = 0; attempt < 7; attempt += 1) {
      failure = readFailure(systemError('EIO'), failure, 0)
      delays.push(failure.delayMs)
    }
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  })
})
