/** Waits until all have come to an end, then gives what came of them, or throws what the first in the list threw. */
export async function settleAll<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work)
  return Promise.all(work)
}
