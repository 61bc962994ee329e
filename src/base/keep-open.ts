import type { Clock } from './clock.ts'
import { errorCode, errorMessage } from './errors.ts'

export interface KeepOpenOptions {
  readonly clock: Clock
  /** Ends it all. */
  readonly signal: AbortSignal
  /** Opens it once, calls `opened` when it is open, and resolves or rejects when it has ended. */
  readonly open: (opened: () => void) => Promise<void>
  readonly onOpened: () => void
  /** Called once each time it was lost, and once if it could not be opened to begin with. */
  readonly onLost: (reason: string) => void
  /** The pause before the first new attempt. It doubles up to the longest, and starts over when it was open for that long. */
  readonly firstDelayMs: number
  readonly longestDelayMs: number
}

/** Keeps something open for as long as the signal allows, whatever it ends with. Never rejects. */
export async function keepOpen(options: KeepOpenOptions): Promise<void> {
  const { clock, signal, open, onOpened, onLost, firstDelayMs, longestDelayMs } = options
  let delayMs = firstDelayMs
  let openSinceMs: number | undefined
  let lost = false
  const opened = (): void => {
    openSinceMs = clock.monotonicMs()
    lost = false
    onOpened()
  }
  while (!signal.aborted) {
    openSinceMs = undefined
    const reason = await open(opened).then(() => 'the other side ended it', errorMessage)
    if (signal.aborted) return
    if (!lost) onLost(reason)
    lost = true
    if (openSinceMs !== undefined && clock.monotonicMs() - openSinceMs >= longestDelayMs)
      delayMs = firstDelayMs
    await clock.sleep(delayMs, signal).catch(() => undefined)
    delayMs = Math.min(delayMs * 2, longestDelayMs)
  }
}

/**
 * Opens something for a moment, to know whether it can be: false where it ends unopened, or its error has
 * the code `refusal`. Rejects with any other error that comes before it was open.
 */
export async function canOpen(
  open: (opened: () => void, signal: AbortSignal) => Promise<void>,
  { refusal, signal }: { readonly refusal: string; readonly signal: AbortSignal | undefined },
): Promise<boolean> {
  const enough = new AbortController()
  const until = signal === undefined ? enough.signal : AbortSignal.any([signal, enough.signal])
  let isOpen = false
  const opened = (): void => {
    isOpen = true
    enough.abort()
  }
  try {
    await open(opened, until)
  } catch (error) {
    if (errorCode(error) === refusal) return false
    if (!isOpen) throw error
  }
  return isOpen
}
