import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { sendRequest } from './send-request.ts'

/** How long a response may take before podd's health is checked, and the interval of these checks. */
const askAfterMs = 5_000
/** The timeout of that check: a busy host makes podd slow. */
const aliveMs = 10_000

/**
 * Waits for `ask` without a time limit, as long as the daemon answers other calls: a stopped or hanging one still
 * accepts connections. Throws PoddError DAEMON_SILENT where it answers no call, and what `ask` throws.
 */
export async function awaitAnswer<T>(
  {
    socketPath,
    clock,
    signal,
  }: {
    readonly socketPath: string
    readonly clock: Clock
    readonly signal: AbortSignal
  },
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const silent = new AbortController()
  const answered = new AbortController()
  const checking = (async () => {
    while (!answered.signal.aborted) {
      await clock.sleep(askAfterMs, answered.signal)
      if (!(await isAlive(socketPath, clock, answered.signal))) silent.abort()
    }
    // Only `answered` rejects the wait; `isAlive` doesn't throw.
  })().catch(() => {})
  try {
    return await ask(AbortSignal.any([signal, silent.signal]))
  } catch (error) {
    throw silent.signal.aborted && !signal.aborted ? daemonSilent(socketPath, error) : error
  } finally {
    answered.abort()
    await checking
  }
}

/** The error for a daemon that accepts connections and doesn't answer. */
export function daemonSilent(socketPath: string, cause: unknown): PoddError {
  return new PoddError('DAEMON_SILENT', `podd at ${socketPath} does not answer`, {
    cause,
    hint: `It is stopped, hangs, or the host is overloaded. \`fuser ${socketPath}\` names the process; \`systemctl restart podd\` restarts it, and the pods keep running.`,
  })
}

/**
 * Whether the daemon answers in time. A failed connection counts as an answer, since the waiting call reports the
 * reason.
 */
async function isAlive(socketPath: string, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const given = new AbortController()
  const timer = clock.startTimer(aliveMs, () => given.abort())
  const cut = AbortSignal.any([signal, given.signal])
  // Only the time limit counts here.
  await sendRequest(socketPath, { method: 'GET', path: '/healthz' }, cut).catch(() => {})
  const isLate = given.signal.aborted
  timer.cancel()
  given.abort()
  return !isLate
}
