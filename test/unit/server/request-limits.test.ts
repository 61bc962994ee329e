import { expect, it } from 'vitest'
import { RequestLimits } from '../../../src/server/http/tls-listener.ts'
import { statusResponse } from '../../../src/server/requests/request.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('has a client that asks too often wait a second, and no other one', async () => {
  const clock = new ManualClock()
  const limits = new RequestLimits(clock)
  for (let count = 0; count < 1000; count += 1) limits.take('ann')
  let refusal: unknown
  try {
    limits.take('ann')
  } catch (error) {
    refusal = error
  }
  expect(statusResponse(refusal)).toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
  limits.take('bob')
  await clock.advance(1000)
  for (let count = 0; count < 200; count += 1) limits.take('ann')
  expect(() => limits.take('ann')).toThrow('too many requests')
})
