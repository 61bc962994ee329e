import { expect, it } from 'vitest'
import {
  activeHold,
  containerHold,
  nextImageHold,
  noHolds,
  sandboxHold,
  withHold,
  withoutReasons,
  withoutReferenceHolds,
} from '../../../src/decide/plan/backoff.ts'
import type { Holds } from '../../../src/decide/plan/backoff.ts'

const hold = (reason: string) => ({ untilMs: 1000, waiting: { reason, message: '' } })

const all: Holds = [
  [sandboxHold, 'FailedMount'] as const,
  [containerHold('a'), 'CreateContainerConfigError'] as const,
  [nextImageHold('a'), 'ErrImagePull'] as const,
  [containerHold('b'), 'ImagePullBackOff'] as const,
].reduce((holds, [key, reason]) => withHold(holds, key, hold(reason)), noHolds)

it('ends the holds on the sandbox and on what could not be configured where an object changed', () => {
  const left = withoutReferenceHolds(all)
  expect(left.sandbox).toBeUndefined()
  expect(left.containers).toEqual({
    a: { 'next-image': hold('ErrImagePull') },
    b: { container: hold('ImagePullBackOff') },
  })
})

it('ends holds by their reasons alone, and leaves the one on the sandbox', () => {
  const left = withoutReasons(all, (reason) => reason.includes('Image'))
  expect(left.sandbox).toEqual(hold('FailedMount'))
  expect(left.containers).toEqual({ a: { container: hold('CreateContainerConfigError') }, b: {} })
})

it.each([
  ['before its end', 999, true],
  ['at its end', 1000, false],
  ['as long before its end as a hold may last', 1000 - 300_000, true],
  ['longer before its end, as where the clock was set back', 1000 - 300_001, false],
])('counts a hold %s or not', (_when, nowMs, isActive) => {
  expect(activeHold({ holds: all, nowMs }, sandboxHold) !== undefined).toBe(isActive)
})
