/** How many values were at most each bound, as Prometheus counts them. */
export interface HistogramCounts {
  /** Rising; the last one, `+Inf`, is left out. */
  readonly buckets: readonly { readonly bound: number; readonly count: number }[]
  readonly count: number
  readonly sum: number
}

/** Counts values by their size: what a metric of durations is made of. It costs some numbers, whatever it has counted. */
export class Histogram {
  readonly #bounds: readonly number[]
  /** How many values are in each bucket alone. */
  readonly #counts: number[]
  #count = 0
  #sum = 0

  /** @param bounds rising */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = bounds.map(() => 0)
  }

  observe(value: number): void {
    const bucket = this.#bounds.findIndex((bound) => value <= bound)
    if (bucket !== -1) this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#count += 1
    this.#sum += value
  }

  get count(): number {
    return this.#count
  }

  read(): HistogramCounts {
    let count = 0
    const buckets = this.#bounds.map((bound, index) => {
      count += this.#counts[index] ?? 0
      return { bound, count }
    })
    return { buckets, count: this.#count, sum: this.#sum }
  }
}
