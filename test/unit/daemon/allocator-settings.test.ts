import { expect, it } from 'vitest'
import { takeAllocatorSettings } from '../../../src/daemon/run-daemon.ts'

it('takes the settings out of the environment and keeps all else', () => {
  const env: Record<string, string | undefined> = {
    PATH: '/bin',
    MALLOC_ARENA_MAX: '1',
    MALLOC_TRIM_THRESHOLD_: '65536',
    MALLOC_PERTURB_: '7',
  }
  expect(takeAllocatorSettings(env)).toEqual({ MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '65536' })
  expect(env).toEqual({ PATH: '/bin', MALLOC_PERTURB_: '7' })
  expect(takeAllocatorSettings(env)).toEqual({})
})
