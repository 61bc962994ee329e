import { expect, it } from 'vitest'
import { MakingCalls } from '../../../src/control/runtime/making-calls.ts'
import type { RuntimeService } from '../../../src/cri/cri-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('knows the calls under way by when they were sent', async () => {
  const clock = new ManualClock()
  const sandbox = Promise.withResolvers<{ podSandboxId: string }>()
  const start = Promise.withResolvers<object>()
  const service: Partial<RuntimeService> = {
    runPodSandbox: () => sandbox.promise,
    startContainer: () => start.promise as ReturnType<RuntimeService['startContainer']>,
  }
  const calls = new MakingCalls(service as RuntimeService, clock)
  expect(calls.isAnyInFlight(0)).toBe(false)
  await clock.advance(1000)
  const made = calls.runtime.runPodSandbox({ config: {} })
  expect([calls.isAnyInFlight(999), calls.isAnyInFlight(1000)]).toEqual([false, true])
  await clock.advance(1000)
  const started = calls.runtime.startContainer({ containerId: 'c' })
  sandbox.resolve({ podSandboxId: 's' })
  expect(await made).toEqual({ podSandboxId: 's' })
  expect([calls.isAnyInFlight(1999), calls.isAnyInFlight(2000)]).toEqual([false, true])
  start.reject(new Error('refused'))
  await expect(started).rejects.toThrow('refused')
  expect(calls.isAnyInFlight(2000)).toBe(false)
})
