/** A number from 0 (included) to 1 (excluded), like Math.random; tests inject their own. */
export type RandomSource = () => number

export const systemRandom: RandomSource = () => Math.random()

/** A fresh random UUID (version 4). The first call loads Node's cryptography, which takes 5 ms. */
export function newUuid(): string {
  return process.getBuiltinModule('node:crypto').randomUUID()
}
