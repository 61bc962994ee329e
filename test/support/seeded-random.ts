/*
 * What random tests draw from, and the two engines that run those that last: steps that are drawn one after the other
 * (`RandomSteps`), and blows that fall at random moments into what was begun (`strikeAtRandom`). Both do the same again for
 * the same seed, and name it, with what led there, where anything fails.
 */
import { setTimeout as sleep } from 'node:timers/promises'

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

/** The seed that this variable of the environment names, else the given one, else one that hardly anybody took before. */
export function seedOf(variable: string, otherwise = Date.now() % 1_000_000): number {
  return Number(process.env[variable] ?? otherwise)
}

/** Steps that befall what is tested, one after the other, as often as their weights say. */
export class RandomSteps<Step extends string> {
  readonly random: () => number
  readonly #seed: number
  readonly #steps: readonly (readonly [Step, number])[]
  readonly #story: string[] = []
  readonly #counts = new Map<Step, number>()

  constructor(seed: number, steps: readonly (readonly [Step, number])[]) {
    this.#seed = seed
    this.#steps = steps
    this.random = seededRandom(seed)
  }

  /**
   * Draws a step and takes it.
   * @param take tells what it did
   * @param adapt which step is taken where this one was drawn, and can't be taken now
   */
  async step(
    take: (step: Step) => string | Promise<string>,
    adapt: (drawn: Step) => Step = (drawn) => drawn,
  ): Promise<void> {
    const step = adapt(pickWeighted(this.random, this.#steps))
    this.#counts.set(step, (this.#counts.get(step) ?? 0) + 1)
    const at = this.#story.push(`${new Date().toISOString()} ${step}`) - 1
    this.#story[at] += ` ${await take(step)}`
  }

  /** What this throws is told with the seed and the last steps. */
  async explain<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      const last = this.#story.slice(-60).join('\n')
      throw new Error(`seed ${this.#seed}: ${String(error)}\nlast steps:\n${last}`, { cause: error })
    }
  }

  /** The seed, and how often each step was taken. */
  get summary(): string {
    return `seed ${this.#seed}: ${this.#story.length} steps (${countsOf(this.#counts)})`
  }
}

function countsOf(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([what, count]) => `${what} ${count}`).join(', ')
}

/** What the blow falls into, and within which time. */
export interface Moment {
  readonly kind: string
  readonly withinMs: number
}

/** A blow that falls again and again. */
export interface Struck<Each extends Moment> {
  readonly open: () => Promise<void>
  /** Begins something for the blow to fall into. */
  readonly begin: (round: number, random: () => number) => Promise<Each>
  readonly strike: () => Promise<void>
  /** Fails where not all is as it has to be afterwards. */
  readonly judge: (round: number, moment: Each, random: () => number) => Promise<void>
  /** What there is to tell of all rounds so far. */
  readonly outcome: () => string
  readonly close?: () => void
}

/** Strikes so many times, each at a random moment after something was begun. Says every tenth time how it goes, and in the end. */
export async function strikeAtRandom<Each extends Moment>(
  struck: Struck<Each>,
  { seed, rounds }: { readonly seed: number; readonly rounds: number },
): Promise<string> {
  const random = seededRandom(seed)
  const counts = new Map<string, number>()
  const summary = (done: number): string =>
    `seed ${seed}: ${done} times (${countsOf(counts)}): ${struck.outcome()}`
  console.log(`seed ${seed}`)
  try {
    await struck.open()
    for (let round = 0; round < rounds; round += 1) {
      const moment = await struck.begin(round, random)
      await sleep(random() * moment.withinMs)
      await struck.strike()
      try {
        await struck.judge(round, moment, random)
      } catch (error) {
        const where = `seed ${seed}, round ${round}, in ${JSON.stringify(moment)}`
        throw new Error(`${where}: ${String(error)}`, { cause: error })
      }
      counts.set(moment.kind, (counts.get(moment.kind) ?? 0) + 1)
      if ((round + 1) % 10 === 0) console.log(summary(round + 1))
    }
    return summary(rounds)
  } finally {
    struck.close?.()
  }
}
