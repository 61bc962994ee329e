/** Waits for all; returns their results, or throws the error of the first in the list that failed. */
export async function settleAll<T>(work: readonly Promise<T>[]): Promise<T[]> {
  // The list may grow meanwhile: only its current entries are awaited.
  return Promise.allSettled(work).then((results) =>
    results.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    }),
  )
}
