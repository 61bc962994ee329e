/** A number from 0 up to 1, the same each time for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export function pick<T>(random: () => number, among: readonly T[]): T {
  const found = among[Math.floor(random() * among.length)]
  if (found === undefined) throw new Error('nothing to pick from')
  return found
}

/** One of these, as often as its weight says. */
export function pickWeighted<T>(random: () => number, among: readonly (readonly [T, number])[]): T {
  let at = random() * among.reduce((sum, [, weight]) => sum + weight, 0)
  const found = among.find(([, weight]) => (at -= weight) < 0) ?? among.at(-1)
  if (found === undefined) throw new Error('nothing to pick from')
  return found[0]
}
