import { randomUUID } from 'node:crypto'

/** A number from 0 (included) to 1 (excluded), as Math.random gives it; tests inject their own. */
export type RandomSource = () => number

export const systemRandom: RandomSource = () => Math.random()

/** A fresh random UUID (version 4). */
export function newUuid(): string {
  return randomUUID()
}
