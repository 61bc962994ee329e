/** A number from 0 (included) to 1 (excluded), as Math.random gives it; tests inject their own. */
export type RandomSource = () => number

export const systemRandom: RandomSource = () => Math.random()

/** A fresh random UUID (version 4). Loads Node's cryptography, which takes 5 ms, at the first. */
export function newUuid(): string {
  return process.getBuiltinModule('node:crypto').randomUUID()
}
