/** Waits for `work` or for the signal, whichever comes first; `work` itself is not cancelled. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  let stopListening = (): void => {}
  const aborted = new Promise<never>((_, reject) => {
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    stopListening = () => signal.removeEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    stopListening()
  }
}
