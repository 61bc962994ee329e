import { type Clock, sleepUnlessAborted } from './clock.ts'
import { errorCode, errorMessage } from './errors.ts'

export interface KeepOpenOptions {
  readonly clock: Clock
  /** Ends it all. */
  readonly signal: AbortSignal
  /** Opens it once, calls `opened` when it is open, and resolves or rejects when it has ended. */
  readonly open: (opened: () => void) => Promise<void>
  readonly onOpened: () => void
  /** Called after each loss, and once if the first attempt to open it fails. */
  readonly onLost: (reason: string) => void
  /**
   * The pause before the first new attempt. It doubles up to the longest, and is reset when it was open for that long.
   */
  readonly firstDelayMs: number
  readonly longestDelayMs: number
}

/** Keeps something open until the signal is aborted, reopening it whenever it ends. Never rejects. */
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
    await sleepUnlessAborted(clock, delayMs, signal)
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

/** What a stream that is kept open reports beside its events. */
export type Openness =
  /** It was (re)opened. */
  | { readonly kind: 'opened' }
  /** It broke; it is being reopened. */
  | { readonly kind: 'lost'; readonly reason: string }

/** A stream of events that is reopened whenever it ends. */
export abstract class KeptStream<Event> {
  protected readonly clock: Clock

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Opens it once, calls `opened` when it is open, and resolves or rejects when it has ended. */
  protected abstract open(
    onEvent: (event: Event) => void,
    opened: () => void,
    signal: AbortSignal,
  ): Promise<void>

  /** Whether the runtime has this stream. Rejects where it can't be asked. */
  isServed(signal?: AbortSignal): Promise<boolean> {
    return canOpen((opened, until) => this.open(() => {}, opened, until), {
      refusal: 'RUNTIME_UNSUPPORTED',
      signal,
    })
  }

  /** Reports events until the signal is aborted, and resolves then. Never rejects. */
  run(onEvent: (event: Event | Openness) => void, signal: AbortSignal): Promise<void> {
    return keepOpen({
      clock: this.clock,
      signal,
      open: (opened) => this.open(onEvent, opened, signal),
      onOpened: () => onEvent({ kind: 'opened' }),
      onLost: (reason) => onEvent({ kind: 'lost', reason }),
      firstDelayMs: 50,
      longestDelayMs: 5000,
    })
  }
}
