/**
 * Runs around each file of unit and component tests: none may leave something that runs on by itself, for its worker goes on to
 * other files. A stream without an end would take a core until the last file has ended.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect } from 'vitest'

const isBusy = (): boolean => process.getActiveResourcesInfo().includes('Immediate')

afterAll(async () => {
  let looks = 0
  for (; looks < 20 && isBusy(); looks += 1) await sleep(5)
  expect(looks, 'a test of this file has left something that runs on, turn after turn').toBeLessThan(20)
})
